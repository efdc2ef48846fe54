"""The trainer image: its tag, its build, and a check that it works.

The tag has a hash of all inputs of the build: changed inputs make a new tag, and the same inputs
are never built twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from cluster_kit.errors import EngineError, HintText, HostError, ManifestError, Problem, Setting
from cluster_kit.host import Host
from cluster_kit.image.base_image import CONFINED, TMP, choose_base, present
from cluster_kit.image.pip_config import build_secrets
from cluster_kit.platforms.docker.docker_connection import disk_hint
from cluster_kit.platforms.docker.docker_engine import caller_of
from cluster_kit.programs.style import NIGHTLY
from cluster_kit.resolved import Cluster
from cluster_kit.util import locks, paths
from cluster_kit.util.process import TIMED_OUT
from cluster_kit.workspace import write_atomically

Variant = Literal["cpu", "gpu"]
Say = Callable[[str], None]

SOURCE = paths.IMAGE
BUILD_IT = f"run `{paths.command('image')}`"
CHECK_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class CheckLine:
    """One result of the check inside the image. `detail` is a version, or the error."""

    name: str
    ok: bool
    detail: str
    seconds: float


def image_tag(variant: Variant) -> str:
    """The tag of the kit's own image; see `tag_of`."""
    return tag_of(variant)


def tag_of(variant: Variant, source: Path = SOURCE, *, version: str = "", lock: str = "") -> str:
    """The image's tag: cluster-kit/trainer:<variant>-<12 hex digits of the inputs' hash>.

    Args:
        version: the version of another TensorFlow than the kit's; the tag is then
            `<variant>-tf<version>-…`.
        lock: the text of its lock file.
    """
    kind = f"{variant}-tf{version}" if version else variant
    return f"cluster-kit/trainer:{kind}-{inputs_hash(variant, source, lock)}"


def inputs_hash(variant: Variant, source: Path = SOURCE, lock: str = "") -> str:
    """A hash of 12 hex digits of the names and contents of all inputs; moving a file changes it,
    too."""
    digest = hashlib.sha256()
    for name in _inputs(variant, source):
        replaced = lock and name == f"recipe/locked-{variant}.txt"
        content = lock.encode() if replaced else (source / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _inputs(variant: Variant, source: Path) -> Iterator[str]:
    """Yields the name of every file that the build reads, always in the same order."""
    yield ".dockerignore"
    yield from (f"recipe/{name}" for name in ("Dockerfile", "Dockerfile.extra"))
    yield from (f"recipe/locked-{part}.txt" for part in ("digits", "uv", variant))
    yield from sorted(f"recipe/{path.name}" for path in (source / "recipe").glob("*.py"))
    yield from sorted(_files_below(str(source), "trainer"), key=lambda name: name.split("/"))


def _files_below(source: str, folder: str) -> Iterator[str]:
    """Yields the names of a package's files; pathlib would take five times as long for each tag."""
    with os.scandir(os.path.join(source, folder)) as entries:  # noqa: PTH118
        for entry in entries:
            name = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(source, name) if entry.name != "__pycache__" else ()
            elif entry.is_file():
                yield name


def image_present(host: Host, tag: str) -> bool:
    """Whether the engine has this image."""
    return present(host, tag)


def image_size(host: Host, tag: str) -> int:
    """The image's size in bytes, as the engine reports it.

    Raises:
        EngineError: the image was not found.
    """
    done = host.processes.run(["docker", "image", "inspect", "--format", "{{.Size}}", tag])
    if not done.ok:
        raise EngineError(f"no image {tag}: {done.tail()}", BUILD_IT)
    return int(done.output)


def ensure_image(
    host: Host,
    variant: Variant,
    say: Say,
    *,
    show: bool = False,
    tag: str = "",
    lock: Path | None = None,
) -> bool:
    """Build the image if it is absent; returns whether it was built.

    Args:
        say: prints a line of progress.
        tag: the tag of an image with another TensorFlow, whose packages the file `lock` has.
        show: let BuildKit draw its progress on this terminal.
    Raises:
        HostError: no base image can be pulled or made on this host.
        EngineError: the build failed; the message has the end of its output.
    """
    tag = tag or host.image_tag(variant)
    if image_present(host, tag):
        return False
    base = choose_base(host, say)
    say(f"building {tag} on {base} (the first time takes minutes)")
    with build_secrets(host) as secrets, _context_of(lock) as more:
        arguments = {"BASE": base, "VARIANT": variant, "INPUTS": tag.rpartition("-")[2]}
        file = SOURCE / "recipe" / "Dockerfile"
        command = build_command(
            host, tag, arguments, (*secrets, *more), SOURCE, file=file, show=show
        )
        done = host.processes.run(command, env={"DOCKER_BUILDKIT": "1"}, show=show)
    if not done.ok:
        hint = disk_hint(done.tail()) or _HINT
        raise EngineError(f"building {tag} failed (exit {done.code}):\n{done.tail()}", hint)
    return True


@contextmanager
def _context_of(lock: Path | None) -> Iterator[tuple[str, ...]]:
    """Yields the build arguments that replace the kit's own lock file (stage `lock`)."""
    with TemporaryDirectory(prefix="cluster-kit-") as folder:
        if lock is not None:
            shutil.copy(lock, Path(folder) / "locked.txt")
        yield (f"--build-context=lock={folder}",) if lock is not None else ()


_HINT = (
    f"{BUILD_IT} to watch the build; a package that cannot be fetched means that "
    "pip's configuration (`pip config list`, https_proxy) does not reach an index from this host"
)


def build_command(
    host: Host,
    tag: str,
    arguments: Mapping[str, str],
    secrets: tuple[str, ...],
    context: Path,
    *,
    file: Path | None = None,
    show: bool = False,
    to: str = "",
) -> tuple[str, ...]:
    """The command that builds an image from the folder `context`.

    Args:
        secrets: arguments of `build_secrets`, the network among them.
        file: the Dockerfile, if it is not in `context`.
        to: a folder of this host that the files of the image are written to, instead of a tag.
    """
    return (
        *("docker", "buildx", "build", f"--builder={_engines_own_builder(host)}"),
        *([f"--output=type=local,dest={to}"] if to else ["--load", f"--tag={tag}"]),
        "--provenance=false",  # provenance would name the base and the build arguments
        f"--progress={'auto' if show else 'plain'}",
        *(f"--build-arg={name}={value}" for name, value in arguments.items()),
        *secrets,
        *([f"--file={file}"] if file else []),
        str(context),
    )


def _engines_own_builder(host: Host) -> str:
    """The name of the engine's own builder (the context's name); other builders lack local
    images."""
    return host.processes.run(["docker", "context", "show"]).output.strip() or "default"


def check_image(host: Host, tag: str, *, gpus: str = "") -> list[CheckLine]:
    """Check the image as a task runs: the caller's uid, read-only, no capabilities, no network.

    It imports TensorFlow and tf_keras, trains one step, starts a server and computes on it.

    Args:
        gpus: the driver by which the engine hands out all GPUs of this host; then a step is also
            trained on one. "" for none.
    Raises:
        EngineError: the container did not start, or did not end within five minutes.
    """
    name = f"cluster-kit-check-{os.getpid()}"
    devices = {"": (), "nvidia": ("--gpus=all",), "cdi": ("--device=nvidia.com/gpu=all",)}[gpus]
    command = (
        *("docker", "run", *CONFINED, "--init", f"--name={name}"),
        *(f"--user={caller_of(host.connect)}", TMP, *devices),
        *("--entrypoint=python3", tag, "/opt/trainer/check_image.py"),
        *(["--gpu"] if gpus else []),
    )
    done = host.processes.run(command, timeout_s=CHECK_TIMEOUT_S)
    if done.code == TIMED_OUT:
        host.processes.run(["docker", "rm", "--force", name])
        raise EngineError(
            f"the check of {tag} did not end within {CHECK_TIMEOUT_S:.0f} s",
            "see whether this machine has memory to spare (a task needs about 1 GB), and try again",
        )
    lines = [CheckLine(**json.loads(line)) for line in done.output.splitlines() if line[:1] == "{"]
    if not lines:
        raise EngineError(f"{tag} did not start:\n{done.tail()}", f"run `{paths.command('image')}`")
    return lines


WAIT_S = 3600.0


@contextlib.contextmanager
def turn(host: Host, image: str, say: Say) -> Iterator[None]:
    """A block in which no other process of this user builds this image, or an image based on it."""
    name = f"cluster-kit-build-{re.sub('[^a-z0-9.-]', '-', image)}.lock"
    about = f"process {os.getpid()}"
    with contextlib.ExitStack() as held:
        try:
            file = host.locks.directory() / name
            try:
                held.enter_context(locks.lock(file, about))
            except locks.Locked as other:
                say(f"waiting for {other.about or 'another process'}, which builds {image}")
                held.enter_context(locks.lock(file, about, WAIT_S))
        except (OSError, locks.Locked):
            say(f"{name} cannot be locked: another process may build the same")
        yield


def tag_image(host: Host, image: str, name: str) -> None:
    """Give an image of this host a further name; raises EngineError."""
    done = host.processes.run(["docker", "tag", image, name])
    if not done.ok:
        raise EngineError(
            f"{image} cannot be called {name}: {done.errors.strip()}",
            "fix the registry that the manifest names",
        )


UNLOCKED = "unlocked"
"""Ends the tag of an image whose packages are not resolved yet."""
_FROM = re.compile(r"satisfies the requirement (\S+) \(from versions: ([^)]*)\)")
_PYTHON = re.compile(r"resolving for Python (\S+)")
_MACHINES = {"arm64": "aarch64", "AMD64": "x86_64"}


def lock_file(folder: Path, version: str, variant: Variant) -> Path:
    """The path of the lock file for a TensorFlow version, below the folder of the manifests."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return folder / f"tensorflow-{version}-{variant}-{machine}.lock"


def tag(folder: Path, version: str, variant: Variant) -> str:
    """The tag of the image with this TensorFlow; it ends with UNLOCKED without a lock file."""
    file = lock_file(folder, version, variant)
    if not file.is_file():
        return f"cluster-kit/trainer:{variant}-tf{version}-{UNLOCKED}"
    return tag_of(variant, version=version, lock=file.read_text(encoding="utf-8"))


def is_unlocked(cluster: Cluster) -> bool:
    """Whether the packages of a cluster's image are not resolved yet."""
    return bool(cluster.tensorflow) and UNLOCKED in cluster.image


def ensure_lock(host: Host, cluster: Cluster, folder: Path, say: Say) -> bool:
    """Write the lock file of a cluster's image if it is missing; returns whether it was.

    Raises:
        ManifestError: the index has no such TensorFlow for the Python of the base image.
        HostError: the file cannot be written.
        EngineError: the packages could not be resolved for another reason.
    """
    if cluster.variant is None or not is_unlocked(cluster):
        return False
    file = lock_file(folder, cluster.tensorflow, cluster.variant)
    text = _resolved(host, cluster, cluster.variant, say)
    try:
        write_atomically(file, text)
    except OSError as error:
        raise HostError(
            f"{file} cannot be written: {error.strerror}", "make its folder writable"
        ) from None
    say(f"TensorFlow {cluster.tensorflow}: its packages are in {file}")
    return True


def _resolved(host: Host, cluster: Cluster, variant: Variant, say: Say) -> str:
    """The text of the lock file, made by pip in the base image; raises as `ensure` does."""
    base = choose_base(host, say)
    say(f"resolving TensorFlow {cluster.tensorflow} (once; the result is kept)")
    with (
        tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder,
        build_secrets(host) as secrets,
    ):
        arguments = {"BASE": base, "VARIANT": variant, "VERSION": cluster.tensorflow}
        arguments["ASKED"] = f"{time.time():.0f}"  # an index changes: do not use cached answers
        recipe = SOURCE / "recipe"
        command = build_command(
            host, "", arguments, secrets, recipe, file=recipe / "Dockerfile.lock", to=folder
        )
        done = host.processes.run(command, env={"DOCKER_BUILDKIT": "1"})
        if done.ok:
            return (Path(folder) / "locked.txt").read_text(encoding="utf-8")
    raise _failure(cluster, done.errors, done.tail())


def _failure(cluster: Cluster, output: str, tail: str) -> ManifestError | EngineError:
    base, python = _FROM.search(output), _PYTHON.search(output)
    if base and base[2] != "none":
        available = list(dict.fromkeys(re.findall(r"\d+\.\d+(?=\.\d)", base[2])))
        rule = (
            f"the index has no such TensorFlow for Python {python[1] if python else '?'}, which "
            f"the base image has; it has {', '.join(available)}"
        )
        newest = Setting("tensorflow", available[-1] if available else "")
        other = ", or name a base with another Python in CLUSTER_KIT_BASE"
        return _problem(cluster, rule, ("write ", newest, other))
    if base and cluster.tensorflow == NIGHTLY:
        rule = "the package index of this host has no nightly TensorFlow"
        hint = "name an index that has it in pip's configuration, or write "
        return _problem(cluster, rule, (hint, Setting("tensorflow", "2.21")))
    return EngineError(
        f"resolving TensorFlow {cluster.tensorflow} failed:\n{tail}",
        disk_hint(output)
        or "see whether pip's configuration (`pip config list`, https_proxy) reaches an index",
    )


def _problem(cluster: Cluster, rule: str, hint: HintText) -> ManifestError:
    problem = Problem("tensorflow", f'"{cluster.tensorflow}"', rule, hint)
    return ManifestError(cluster.source, [problem])
