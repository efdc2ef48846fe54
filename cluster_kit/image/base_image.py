"""The base image: the engine has it, or it is pulled, or made from this host's packages. Also the
options of `docker run` that the kit's own containers have in common."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cluster_kit.errors import EngineError, HostError
from cluster_kit.host import Host
from cluster_kit.platforms.docker.docker_connection import disk_hint
from cluster_kit.util.paths import command
from cluster_kit.util.process import Completed

RIGHTLESS = ("--cap-drop=ALL", "--security-opt=no-new-privileges:true", "--pids-limit=4096")
"""Options of every container that is not a task's: no capabilities, and a limit on processes."""
CONFINED = (
    "--rm",
    "--pull=never",
    "--network=none",
    "--read-only",
    *RIGHTLESS,
    "--workdir=/",
)
"""Options of a container that only reads, computes and prints: no capabilities, no network."""
TMP = "--tmpfs=/tmp:mode=1777,size=4g"
"""Its directory for temporary files, which is in memory."""


def bind(source: Path | str, target: Path | str) -> str:
    """The option that mounts a directory or file of this host in a container.

    Docker reads it as CSV, so that a path may contain a comma or a colon.
    """
    fields = (f"source={source}", f"target={target}")
    quoted = ",".join('"' + field.replace('"', '""') + '"' for field in fields)
    return f"--mount=type=bind,{quoted}"


REGISTRY_BASE = (
    "python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7"
)
"""The base image by its digest: the same bytes from every mirror."""
LOADED_BASE = REGISTRY_BASE.partition("@")[0]
"""The base image's name after a `docker load`, which sets no digest."""
REGISTRY = ("registry-1.docker.io", 443)
"""The host and port of the registry that has it."""
REGISTRY_ANSWER_S = 5.0
ENGINE_CONFIGURATION = Path("/etc/docker/daemon.json")
PULL_TIMEOUT_S = 90.0  # an engine without a registry fails in well under a second
MERGED_USR = "/usr/share/mmdebstrap/hooks/maybe-merged-usr"
"""Of mmdebstrap: it spares `usrmerge`, which would bring perl and move all files."""
MEMORY, MEMINFO = Path("/dev/shm"), Path("/proc/meminfo")
IN_MEMORY = 1 << 30
"""Free bytes of MEMORY, and of this host's memory, for the root of a base image; it takes a third
of them."""
PACKAGES = ("python3", "python3-venv", "ca-certificates", "libstdc++6")
OLDEST_PYTHON = (3, 11)

Say = Callable[[str], None]

_HINT = (
    "make a base image with Python 3.11 to 3.13 available to this engine (`docker pull "
    f"{REGISTRY_BASE}` or `docker load`) and name it in CLUSTER_KIT_BASE, "
    f"or run `sudo {command('image')}` on a Debian or Ubuntu machine"
)


def choose_base(host: Host, say: Say) -> str:
    """The name of a base image that the engine has; one is pulled or made if it has none.

    Raises:
        HostError: no registry answers and a base cannot be made here.
        EngineError: making one failed.
    """
    named = os.environ.get("CLUSTER_KIT_BASE")
    if named:
        return named
    local = local_base_tag() if _host_system() else None
    for tag in (REGISTRY_BASE, local):
        if tag and present(host, tag):
            return tag
    say(f"pulling {REGISTRY_BASE}")
    if _pull(host, REGISTRY_BASE):
        return REGISTRY_BASE
    if present(host, LOADED_BASE):
        say(f"no registry answers: taking the {LOADED_BASE} that this engine has")
        return LOADED_BASE
    if local is None:
        raise HostError(
            f"no registry gave {REGISTRY_BASE}, and this host is neither Debian nor Ubuntu", _HINT
        )
    say("no registry answers: making a base image from this host's own package mirror")
    _make(host, local)
    return local


def present(host: Host, tag: str) -> bool:
    """Whether the engine has an image of this name."""
    return host.processes.run(["docker", "image", "inspect", "--format", "{{.Id}}", tag]).ok


def local_base_tag() -> str:
    """The tag of a base made here: cluster-kit/base:<system>-<suite>-<hash of the recipe>."""
    system, suite = _host_system() or ("unknown", "unknown")
    recipe = "\n".join(_mmdebstrap(suite, "", (), ()))
    return f"cluster-kit/base:{system}-{suite}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def _host_system() -> tuple[str, str] | None:
    """("debian", "bookworm"), or None if this host is neither Debian nor Ubuntu."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    system, suite = release.get("ID", ""), release.get("VERSION_CODENAME", "")
    return (system, suite) if system in ("debian", "ubuntu") and suite else None


def _pull(host: Host, tag: str) -> bool:
    """Pull an image; returns whether that succeeded in time."""
    return host.processes.run(["docker", "pull", "--quiet", tag], timeout_s=PULL_TIMEOUT_S).ok


@dataclass(frozen=True)
class Ahead:
    """A base image of this host's system that is made before an engine is there to take it.

    `archive` is the path of the file that holds it until then.
    """

    host: Host
    say: Say
    archive: Path
    packages: tuple[str, ...] = ("mmdebstrap",)

    def is_wanted(self) -> bool:
        """Whether a base image will have to be made here, as far as can be said without an
        engine: it may have a mirror or a proxy of its own."""
        return not (
            os.environ.get("CLUSTER_KIT_BASE")
            or _host_system() is None
            or ENGINE_CONFIGURATION.exists()
            or _has_proxy(os.environ)
            or _registry_answers()
        )

    def make(self) -> None:
        """Write the archive; if that fails, `choose_base` tries again and says why."""
        self.say("no registry answers: a base image is made meanwhile, from the same mirror")
        with suppress(HostError, EngineError):
            _write_archive(self.host, self.archive)

    def load(self) -> None:
        """Give the base image to the engine, if it was made."""
        if self.archive.exists():
            with suppress(HostError, EngineError):
                _import(self.host, self.archive, local_base_tag())


@contextmanager
def ahead(host: Host, say: Say) -> Iterator[Ahead]:
    """Yields what makes a base image while an engine is installed, in a directory that exists only
    inside the block."""
    with tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder:
        yield Ahead(host, say, Path(folder) / "base.tar")


def _has_proxy(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in ("https_proxy", "HTTPS_PROXY"))


def _registry_answers() -> bool:
    """Whether a connection to the registry can be made."""
    try:
        socket.create_connection(REGISTRY, REGISTRY_ANSWER_S).close()
    except OSError:
        return False
    return True


def _make(host: Host, tag: str) -> None:
    """Make a base image of this host's system; raises HostError or EngineError."""
    _install_mmdebstrap(host)
    with tempfile.TemporaryDirectory(prefix="cluster-kit-") as folder:
        archive = Path(folder) / "base.tar"
        _write_archive(host, archive)
        _import(host, archive, tag)


def _write_archive(host: Host, archive: Path) -> None:
    """Write the file system of a base image; raises HostError or EngineError."""
    suite = (_host_system() or ("", ""))[1]
    sources = sources_of(
        suite, _checked(host, "apt-get", "indextargets", "Created-By: Packages").output
    )
    if not sources:
        raise HostError(f"the apt configuration of this host has no source for {suite}", _HINT)
    options = transport_options(_checked(host, "apt-config", "dump").output)
    part = archive.with_suffix(".part")
    has_hook = Path(MERGED_USR).is_dir()  # not in mmdebstraps of before 2022
    command = _mmdebstrap(suite, str(part), sources, options, merged_usr=has_hook)
    _checked(host, *command, **_root_in_memory(os.environ))
    part.rename(archive)


def _root_in_memory(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with which mmdebstrap unpacks its root in memory, if there is room: it writes
    thousands of files, and removes them. The caller's own TMPDIR takes precedence."""
    try:
        memory = os.statvfs(MEMORY)
        facts = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        available = int(facts["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, LookupError):
        return {}
    has_room = min(memory.f_bavail * memory.f_frsize, available) >= IN_MEMORY
    may = os.access(MEMORY, os.W_OK) and not memory.f_flag & os.ST_NOEXEC
    return {"TMPDIR": str(MEMORY)} if has_room and may and not environment.get("TMPDIR") else {}


def _import(host: Host, archive: Path, tag: str) -> None:
    """Make an image of an archive; raises HostError if its Python is too old, or EngineError."""
    _checked(host, "docker", "import", str(archive), tag)
    version = _python_version(host, tag)
    if version < OLDEST_PYTHON:
        host.processes.run(["docker", "image", "rm", tag])
        raise HostError(
            f"this host's system brings Python {version[0]}.{version[1]}; "
            f"the trainer needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer",
            _HINT,
        )


def _mmdebstrap(
    suite: str,
    archive: str,
    sources: Iterable[str],
    options: Iterable[str],
    *,
    merged_usr: bool = True,
) -> tuple[str, ...]:
    """The command that makes the base image's archive."""
    return (
        "mmdebstrap",
        "--quiet",
        "--variant=essential",
        *([f"--hook-dir={MERGED_USR}"] if merged_usr else []),
        "--format=tar",
        "--skip=output/dev",
        f"--include={','.join(PACKAGES)}",
        # Documents stay until the image is built: dpkg's path-exclude makes mmdebstrap filter each
        # archive file by file, which takes 10 s of CPU.
        "--dpkgopt=force-unsafe-io",  # nobody needs this root after a power failure
        *(f"--aptopt={option}" for option in options),
        '--customize-hook=rm -rf "$1"/etc/apt/sources.list* "$1"/etc/apt/apt.conf.d/99*',
        '--customize-hook=rm -f "$1"/etc/resolv.conf "$1"/etc/hostname',  # this host's own
        suite,
        archive,
        *sources,
    )


def sources_of(suite: str, targets: str) -> tuple[str, ...]:
    """One-line apt sources of the system, from the output of `apt-get indextargets`.

    Other repositories and other suites are left out: the base is this host's own system.
    """
    sources = []
    for stanza in targets.strip().split("\n\n"):
        field = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
        release = field.get("Release", "")
        if (
            (release == suite or release.startswith(f"{suite}-"))
            and field.get("Component") in ("main", "universe")
            and field.get("Origin", "Debian") in ("Debian", "Ubuntu")
        ):
            sources.append(f"deb {field['Repo-URI']} {release} {field['Component']}")
    return tuple(dict.fromkeys(sources))


def transport_options(configuration: str) -> tuple[str, ...]:
    """The host's apt options for reaching its mirror: proxy, certificates, clock checks."""
    wanted = re.compile(r'^Acquire::(https?::|Check-(Valid-Until|Date) ).*"[^"]+";$', re.MULTILINE)
    return tuple(match.group(0) for match in wanted.finditer(configuration))


def _install_mmdebstrap(host: Host) -> None:
    if shutil.which("mmdebstrap"):
        return
    if os.geteuid() != 0:
        raise HostError(
            f"no registry gave {REGISTRY_BASE}, and only root can install mmdebstrap to make one",
            "run `sudo apt-get install mmdebstrap` and try again, or " + _HINT,
        )
    done = host.processes.run(
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", "mmdebstrap"]
    )
    if not done.ok:
        _checked(host, "apt-get", "update", "-q")
        _checked(host, "apt-get", "install", "-y", "-q", "--no-install-recommends", "mmdebstrap")


def _python_version(host: Host, tag: str) -> tuple[int, int]:
    code = "import sys; print(*sys.version_info[:2])"
    done = _checked(host, "docker", "run", *CONFINED, tag, "python3", "-c", code)
    major, minor = done.output.split()
    return int(major), int(minor)


def _checked(host: Host, *command: str, **variables: str) -> Completed:
    """Run a command, with further variables; raises EngineError if it fails."""
    env = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", **variables}
    done = host.processes.run(command, env=env)
    if not done.ok:
        raise EngineError(
            f"{command[0]} failed (exit {done.code}) while making a base image:\n{done.tail()}",
            disk_hint(done.tail()) or _HINT,
        )
    return done
