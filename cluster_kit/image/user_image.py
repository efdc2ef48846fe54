"""Users' images: named by the manifest, built from a Dockerfile, or built with requirements.

The trainer is mounted into a user's image. Before anything starts, a container of the image reports
what the image lacks. It runs like a task: as the caller, read-only, without a network.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from cluster_kit.errors import EngineError, ManifestError, Problem
from cluster_kit.host import Host
from cluster_kit.image.base_image import CONFINED, TMP, bind, choose_base, present
from cluster_kit.image.kit_image import (
    SOURCE,
    Say,
    build_command,
    ensure_image,
    image_present,
    lock_file,
    turn,
)
from cluster_kit.image.pip_config import build_access, build_secrets
from cluster_kit.platforms.docker.build_context import files_of, ignore_file, patterns_of
from cluster_kit.platforms.docker.docker_connection import disk_hint
from cluster_kit.programs.catalog import DATA_SETS_IN_IMAGE, PROGRAMS
from cluster_kit.programs.resolve import EXTRA, digest
from cluster_kit.resolved import OUTPUT, TRAINER, Cluster, Dockerfile
from cluster_kit.util import paths
from cluster_kit.util.masking import without_url_passwords
from cluster_kit.util.terminal import counted
from cluster_kit.util.toml_text import to_toml

OLDEST_PYTHON = (3, 9)
_NO_PYTHON = (
    "executable file not found",
    "no such file or directory: unknown",
    "exec python3 failed",  # the message of Docker's own init
)
_PACKAGES = {"PIL": "pillow", "grpc": "grpcio"}
"""The pip package of a module whose name differs from the package's."""
_LOOKED_S = 120.0


@dataclass(frozen=True)
class Found:
    """The contents of an image.

    `tensorflow` is its version, "" if unknown, None without TensorFlow. `native`: whether it has
    the libraries that start servers without Python. `lacks` are missing modules and directories
    that a cluster needs. `output` is the reason why /output cannot be written, or "".
    """

    python: tuple[int, ...]
    tensorflow: str | None
    native: bool
    lacks: tuple[str, ...]
    output: str


def refuse_if_unfit(host: Host, cluster: Cluster, say: Say) -> None:
    """Inspect a cluster's image, which is pulled if the engine does not have it.

    Raises:
        ManifestError: there is no such image, or no task of this cluster can run in it.
        EngineError: the engine refused the container.
    """
    if not present(host, cluster.image):
        _pull(host, cluster, say)
    problems = list(_problems(look(host, cluster), cluster))
    if problems:
        raise ManifestError(cluster.source, problems)


def look(host: Host, cluster: Cluster) -> Found:
    """The contents of a cluster's image, inspected by a container; raises like
    `refuse_if_unfit`."""
    with tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder:
        done = host.processes.run(look_command(cluster, folder), timeout_s=_LOOKED_S)
    line = next((line for line in done.output.splitlines()[::-1] if line[:1] == "{"), "")
    if done.ok and line:
        facts = json.loads(line)
        python, lacks = tuple(facts.pop("python")), tuple(facts.pop("lacks"))
        return Found(python=python, lacks=lacks, **facts)
    if any(sign in done.errors for sign in _NO_PYTHON):
        rule = "it has no `python3` in its PATH"
        hint = 'install Python there, or name its folder: `ENV PATH="/opt/conda/bin:$PATH"`'
        raise ManifestError(cluster.source, [_of_image(cluster, rule, hint)])
    raise EngineError(
        f"a container of {cluster.image} did not say what is in it (exit {done.code}):\n"
        f"{done.tail()}",
        f"try it: `docker run --rm --entrypoint=python3 {cluster.image} -c 'import tensorflow'`",
    )


def look_command(cluster: Cluster, output: str) -> tuple[str, ...]:
    """The command that inspects the image, with the host's directory `output` as /output."""
    return (
        *("docker", "run", *CONFINED, "--init", f"--user={cluster.user}", TMP),
        f"{bind(paths.IMAGE / 'trainer', TRAINER)},readonly",
        bind(output, OUTPUT),
        *("--entrypoint=python3", cluster.image, f"{TRAINER}/own_image/look.py"),
        *needs(cluster),
    )


def needs(cluster: Cluster) -> tuple[str, ...]:
    """The modules and directories that the tasks of a cluster use in its image."""
    program = PROGRAMS.get(_program(cluster))
    reads = program is not None and cluster.data.startswith(DATA_SETS_IN_IMAGE) and program.sample
    return (
        "grpc",
        *(program.modules if program else ()),
        *(["pyroute2"] if any(task.bandwidth is not None for task in cluster.tasks) else []),
        *([cluster.data] if reads else []),
    )


def _problems(found: Found, cluster: Cluster) -> Iterator[Problem]:
    program = PROGRAMS.get(_program(cluster))
    oldest = max(OLDEST_PYTHON, program.python if program else OLDEST_PYTHON)
    if found.python < oldest:
        subject = program.name if program and oldest > OLDEST_PYTHON else "the trainer"
        rule = f"it has Python {_dotted(found.python)}; {subject} needs {_dotted(oldest)} or newer"
        yield _of_image(cluster, rule, "build the image on a newer Python")
    if found.tensorflow is None:
        rule = f"its `python3` (Python {_dotted(found.python)}) has no TensorFlow"
        hint = "install it there (`RUN pip install tensorflow-cpu`), or name its Python's folder "
        yield _of_image(cluster, rule, hint + 'in PATH: `ENV PATH="/opt/conda/bin:$PATH"`')
    elif found.tensorflow.startswith("1."):
        rule = f"it has TensorFlow {found.tensorflow}; the trainer needs TensorFlow 2"
        yield _of_image(cluster, rule, "build the image with TensorFlow 2")
    modules = [_PACKAGES.get(name, name) for name in found.lacks if not name.startswith("/")]
    if modules and found.tensorflow is not None:
        listed = ", ".join(modules)
        rule = f"it lacks {listed}, which {_program(cluster) or 'the trainer'} needs"
        hint = f"install what is missing: `RUN pip install {' '.join(modules)}`"
        yield _of_image(cluster, rule, hint)
    if any(name.startswith("/") for name in found.lacks):
        rule = f"only the kit's own image has this data set, {cluster.image} does not"
        hint = 'name a directory of yours (`data = "path"`, `--data DIR`)'
        yield Problem("data", f'"{cluster.data.rpartition("/")[2]}"', rule, hint)
    if found.output:
        rule = f"its user {cluster.user} cannot write a directory of this host: {found.output}"
        hint = "see `cluster-kit doctor`: user namespaces and SELinux do that"
        yield _of_image(cluster, rule, hint)


def _pull(host: Host, cluster: Cluster, say: Say) -> None:
    say(f"pulling {cluster.image}")
    done = host.processes.run(["docker", "pull", "--quiet", cluster.image])
    if not done.ok:
        rule = f"this engine does not have it, and no registry gave it:\n      {done.tail(3)}"
        hint = "fix the name, or bring it there: `docker build -t NAME .`, `docker load`"
        raise ManifestError(cluster.source, [_of_image(cluster, rule, hint)])


def _program(cluster: Cluster) -> str:
    """The built-in program or the path in the container; "" if no task runs one."""
    return cluster.leader.command[1] if len(cluster.leader.command) > 1 else ""


def _of_image(cluster: Cluster, rule: str, hint: str) -> Problem:
    if cluster.dockerfile is not None:
        return Problem("build", to_toml(cluster.dockerfile.named), rule, hint)
    return Problem("image", f'"{cluster.image}"', rule, hint)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


_NOT_THERE = re.compile(r"failed to resolve source metadata for|pull access denied")
_NOT_VALID = re.compile(r"dockerfile parse error|cannot be empty|no build stage in current context")
_SOLVED = "failed to solve"
_STEP = re.compile(r"#\d+ ")
_RULER = "------"
_SAID = 25
"""Maximum lines of a failed build in a message: those of the last step, and its location."""


def built_tag(dockerfile: Dockerfile, written: Collection[Path]) -> tuple[str, list[Problem]]:
    """The tag of a Dockerfile's image, cluster-kit/built:<12 hex digits of a hash of all its
    inputs>.

    It is "" with a problem if a file cannot be read.

    Args:
        written: paths below the directory that the kit itself writes, which change with each run.
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
    """A file's content or a link's target, with its kind and permissions."""
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


def build_dockerfile(host: Host, cluster: Cluster, say: Say, each: Say) -> bool:
    """Build a cluster's image if it is absent; returns whether it was built.

    Args:
        say: is called with messages about progress.
        each: is called with every line that the build prints.
    Raises:
        ManifestError: the Dockerfile is invalid, or its base image does not exist.
        EngineError: the build failed otherwise.
    """
    if cluster.dockerfile is None or present(host, cluster.image):
        return False
    with turn(host, cluster.image, say):
        if present(host, cluster.image):
            return False
        say(f"building {cluster.image} from {cluster.dockerfile.file}")
        _run_build(host, cluster, cluster.dockerfile, each)
    return True


def _run_build(host: Host, cluster: Cluster, dockerfile: Dockerfile, each: Say) -> None:
    file = Path(dockerfile.file)
    with build_secrets(host) as secrets:
        command = build_command(
            host, cluster.image, {}, secrets, Path(dockerfile.context), file=file
        )
        done = host.processes.stream(command, each)
    if done.ok:
        return
    failure = _failure(done.tail(_SAID))
    if _NOT_THERE.search(failure):
        rule = f"its base image is neither on this engine nor in a registry:\n{failure}"
        hint = "fix its FROM, or bring that image there: `docker build -t NAME .`, `docker load`"
        raise ManifestError(cluster.source, [_of_build(dockerfile, rule, hint)])
    if _NOT_VALID.search(failure):
        rule = f"not a valid Dockerfile:\n{failure}"
        raise ManifestError(cluster.source, [_of_build(dockerfile, rule, f"fix {file}")])
    fix = f"fix the step that failed in {file}"
    if _SOLVED not in failure:
        fix = "see what differs on this engine: `cluster-kit doctor`"
    message = f"building {cluster.image} failed (exit {done.code}):\n{failure}"
    raise EngineError(message, disk_hint(failure) or fix)


def _failure(output: str) -> str:
    """The part of a build's last lines that describes the failure, indented."""
    lines = output.splitlines()
    if _RULER in lines:
        lines = lines[lines.index(_RULER) :]
    elif _SOLVED in output:
        lines = [line for line in lines if not _STEP.match(line)]
    return "\n".join(f"      {line}" for line in lines)


def _of_build(dockerfile: Dockerfile, rule: str, hint: str) -> Problem:
    return Problem("build", to_toml(dockerfile.named), rule, hint)


_LAYER_STEP = re.compile(r"^#\d+ \d+\.\d+ ")
"""BuildKit's prefix of each line that a step prints, with plain progress."""
_LINE = re.compile(r"-r /mnt/requirements\.txt \(line (\d+)\)")
_REASON = re.compile(r"The conflict is caused by:|    (The user requested|\S+ \S+ depends on) ")
_PIN = "The user requested (constraint) "
"""Pip's prefix for a package of the image: the build passes all of them as constraints."""
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
MOST_VERSIONS = 8
_ADVICE = ("To fix this", "1. ", "2. ", "[notice]", "ERROR: ResolutionImpossible")
_NO_INDEX = ("Retrying (", "Could not fetch URL", "Temporary failure in name resolution")
_HINT = (
    "a package that cannot be fetched means that pip's configuration (`pip config list`, "
    "https_proxy) does not reach an index from this host"
)


def build_layer(
    host: Host, cluster: Cluster, folder: Path, say: Say, *, show: bool = False
) -> bool:
    """Build a cluster's image if it is absent; returns whether it was built.

    Args:
        folder: the folder of the manifests, which contains the lock file of another TensorFlow.

    Raises:
        HostError: no base image can be pulled or made on this host.
        ManifestError: the index does not have a requirement, or it conflicts with the image's
            packages.
        EngineError: the build failed otherwise.
    """
    if cluster.variant is None or image_present(host, cluster.image):
        return False
    _refuse_unknown_packages(host, cluster)
    trainer = cluster.image.partition(EXTRA)[0]
    with turn(host, trainer, say):
        if image_present(host, cluster.image):
            return False
        if cluster.tensorflow:
            lock = lock_file(folder, cluster.tensorflow, cluster.variant)
            ensure_image(host, cluster.variant, say, show=show, tag=trainer, lock=lock)
        else:
            ensure_image(host, cluster.variant, say, show=show)
        if cluster.requirements:
            _run_pip(host, cluster, say)
    return True


_NOT_IN_INDEX = "pip's package index has no package of this name"
_ASKED_S = 8.0
"""Seconds after which the package index is not asked any more."""


def _refuse_unknown_packages(host: Host, cluster: Cluster) -> None:
    """Raise ManifestError if pip's index certainly does not have a package; a build takes longer
    to find out. Any other trouble is left to the build."""
    if not cluster.requirements:
        return
    from cluster_kit.image import index_check

    numbers = index_check.names_in(cluster.requirements)
    names = list(numbers)[: index_check.MOST]
    if not names:
        return
    with build_access(host) as (access, ca):
        variables = index_check.settings(access.conf)
        if variables is None:
            return
        done = host.processes.run(
            [sys.executable, "-P", str(index_check.__file__), *names],
            env={**variables, index_check.CA: str(ca) if access.ca else ""},
            timeout_s=_ASKED_S,
        )
        lines, places = cluster.requirements.splitlines(), cluster.requirement_places
        problems = [
            Problem("requirements", f"`{lines[number]}`", _NOT_IN_INDEX, hint, line=places[number])
            for number, hint in index_check.unknown(numbers, done.output.split() if done.ok else [])
        ]
        if problems:
            raise ManifestError(cluster.source, problems)


def _run_pip(host: Host, cluster: Cluster, say: Say) -> None:
    packages = sum(not line.startswith("-") for line in cluster.requirements.splitlines())
    say(f"installing {counted(packages, 'requirement')} into {cluster.image}")
    base = choose_base(host, say)
    with (
        tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder,
        build_secrets(host) as secrets,
    ):
        context = Path(folder)
        (context / "requirements.txt").write_text(cluster.requirements, encoding="utf-8")
        for script in ("installers.py", "extra.py"):
            shutil.copy(SOURCE / "recipe" / script, context)
        arguments = {"BASE": base, "TRAINER": cluster.image.rpartition(EXTRA)[0]}
        arguments["REQUIREMENTS"] = digest(cluster.requirements)
        command = build_command(
            host,
            cluster.image,
            arguments,
            secrets,
            context,
            file=SOURCE / "recipe" / "Dockerfile.extra",
        )
        done = host.processes.run(command, env={"DOCKER_BUILDKIT": "1"})
    if done.ok:
        return
    errors = pip_errors(done.errors, cluster.requirements)
    if errors and not any(sign in done.errors for sign in _NO_INDEX):
        rule = "pip cannot install it with the image's packages:\n      " + "\n      ".join(errors)
        hint = "remove the version, or choose one that fits the image's packages"
        if any(line.endswith("(from versions: none)") for line in errors):
            hint = "check the package's name, and whether it exists for the image's Python"
        raise ManifestError(cluster.source, [Problem("requirements", "", rule, hint)])
    details = "\n".join(errors) or done.tail()
    hint = disk_hint(details) or _HINT
    raise EngineError(f"building {cluster.image} failed (exit {done.code}):\n{details}", hint)


def pip_errors(output: str, requirements: str) -> list[str]:
    """Pip's errors in a build's output, from the first one on, and then the reasons for them.

    Pip prints errors and reasons to two streams, which a build mixes in any order. Passwords in
    addresses are masked.
    """
    lines = [
        _LAYER_STEP.sub("", line).rstrip()
        for line in output.splitlines()
        if _LAYER_STEP.match(line)
    ]
    reasons = [line for line in lines if _REASON.match(line)]
    start = next((i for i, line in enumerate(lines) if line.startswith("ERROR: ")), len(lines))
    errors = [
        line.removeprefix("ERROR: ")
        for line in lines[start:]
        if line and not line.startswith(_ADVICE) and line not in reasons
    ]
    required = requirements.splitlines()
    told = (_LINE.sub(lambda match: required[int(match[1]) - 1], x) for x in (*errors, *reasons))
    return [
        _VERSIONS.sub(_newest, without_url_passwords(line.replace(_PIN, "The image has ")))
        for line in told
    ]


def _newest(versions: re.Match[str]) -> str:
    """Pip's list of all versions of a package, oldest first, without the many old ones."""
    known = versions[1].split(", ")
    left_out = "…, " if len(known) > MOST_VERSIONS else ""
    return f"(from versions: {left_out}{', '.join(known[-MOST_VERSIONS:])})"
