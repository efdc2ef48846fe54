"""An image that a Dockerfile of the user's own makes: its tag, and its build.

The tag has a hash of all that the build can see, so that a change is a new image, and the same
files are never built twice.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Collection
from pathlib import Path

from cluster_kit.errors import EngineError, ManifestError
from cluster_kit.host import Host
from cluster_kit.image.base_image import present
from cluster_kit.image.kit_image import Say, build_command, turn
from cluster_kit.image.pip_config import build_secrets
from cluster_kit.parts import Dockerfile
from cluster_kit.platforms.docker.build_context import files_of, ignore_file, patterns_of
from cluster_kit.platforms.docker.docker_errors import disk_hint
from cluster_kit.problem import Problem
from cluster_kit.resolved import Cluster
from cluster_kit.util.toml_text import to_toml

_NOT_THERE = re.compile(r"failed to resolve source metadata for|pull access denied")
_NOT_VALID = re.compile(r"dockerfile parse error|cannot be empty|no build stage in current context")
_SOLVED = "failed to solve"
_STEP = re.compile(r"#\d+ ")
_RULER = "------"
_SAID = 25
"""Lines of a failed build that a message has at most: the last step's, and where it stands."""


def built_tag(dockerfile: Dockerfile, written: Collection[Path]) -> tuple[str, list[Problem]]:
    """The tag of its image, cluster-kit/built:<12 hex digits of a hash of all that it sees>.

    It is "" if a file cannot be read; then there is a problem.

    Args:
        written: what the kit itself writes below the directory, which changes with each run.
    """
    file, context = Path(dockerfile.file), Path(dockerfile.context)
    digest = hashlib.sha256()
    try:
        ignored = ignore_file(file, context)
        patterns = patterns_of(ignored.read_text(errors="replace") if ignored.is_file() else "")
        _add(digest, "Dockerfile", file.read_bytes(), 0)
        for path in files_of(context, patterns):
            if path not in (file, ignored) and not any(path.is_relative_to(one) for one in written):
                _add(digest, path.relative_to(context).as_posix(), *_content(path))
    except OSError as error:
        rule = f"{error.filename} cannot be read: {error.strerror}"
        hint = f"make it readable, or leave it out of the build: name it in {context}/.dockerignore"
        return "", [_of_build(dockerfile, rule, hint)]
    return f"cluster-kit/built:{digest.hexdigest()[:12]}", []


def _content(path: Path) -> tuple[bytes, int]:
    """What a file holds, or where a link leads; and the kind and permissions of it."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return str(path.readlink()).encode(errors="surrogateescape"), stat.S_IFMT(mode)
    if not stat.S_ISREG(mode):
        return b"", mode
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest(), mode


def _add(digest: hashlib._Hash, name: str, content: bytes, mode: int) -> None:
    head = f"{name}\0{mode:o}\0{len(content)}\0"
    digest.update(head.encode(errors="surrogateescape") + content)


def ensure(host: Host, cluster: Cluster, say: Say, each: Say) -> bool:
    """Build a cluster's image if it is absent; returns whether it was built.

    Args:
        say: is told what happens.
        each: is given every line that the build writes.
    Raises:
        ManifestError: the Dockerfile is not valid, or what it is built on is not there.
        EngineError: the build failed otherwise.
    """
    if cluster.dockerfile is None or present(host, cluster.image):
        return False
    with turn(host, cluster.image, say):
        if present(host, cluster.image):
            return False
        say(f"building {cluster.image} from {cluster.dockerfile.file}")
        _build(host, cluster, cluster.dockerfile, each)
    return True


def _build(host: Host, cluster: Cluster, dockerfile: Dockerfile, each: Say) -> None:
    file = Path(dockerfile.file)
    with build_secrets(host) as secrets:
        command = build_command(
            host, cluster.image, {}, secrets, Path(dockerfile.context), file=file
        )
        done = host.processes.stream(command, each)
    if done.ok:
        return
    said = _failure(done.tail(_SAID))
    if _NOT_THERE.search(said):
        rule = f"what it is built on is not on this engine, and no registry gave it:\n{said}"
        hint = "fix its FROM, or bring that image there: `docker build -t NAME .`, `docker load`"
        raise ManifestError(cluster.source, [_of_build(dockerfile, rule, hint)])
    if _NOT_VALID.search(said):
        rule = f"not a valid Dockerfile:\n{said}"
        raise ManifestError(cluster.source, [_of_build(dockerfile, rule, f"fix {file}")])
    fix = f"fix the step that failed in {file}"
    if _SOLVED not in said:
        fix = "see what differs on this engine: `cluster-kit doctor`"
    message = f"building {cluster.image} failed (exit {done.code}):\n{said}"
    raise EngineError(message, disk_hint(said) or fix)


def _failure(said: str) -> str:
    """The part of a build's last lines that is about what failed, indented."""
    lines = said.splitlines()
    if _RULER in lines:
        lines = lines[lines.index(_RULER) :]
    elif _SOLVED in said:
        lines = [line for line in lines if not _STEP.match(line)]
    return "\n".join(f"      {line}" for line in lines)


def _of_build(dockerfile: Dockerfile, rule: str, hint: str) -> Problem:
    return Problem("build", to_toml(dockerfile.named), rule, hint)
