"""`make engine`: installs and starts a Docker engine if none answers and the caller is allowed to.

This works for root on Debian and Ubuntu, with the distribution's own packages. Debian 12 has only
Compose v1. So the next release is added as a low-priority source, and only the four Docker packages
are installed from it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from cluster_kit.errors import EngineError, HostError
from cluster_kit.host import Host
from cluster_kit.plan.plan import CLOSED, is_closed
from cluster_kit.platforms.docker.docker_connection import may_not, no_engine
from cluster_kit.util.paths import command
from cluster_kit.util.process import TIMED_OUT

PACKAGES = ("docker.io", "docker-cli", "docker-compose", "docker-buildx")
UBUNTUS_PACKAGES = ("docker.io", "docker-compose-v2", "docker-buildx")
NEXT_SUITE = "trixie"
ANSWER_S = 30.0
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
APT = Path("/etc/apt")
SOURCES = Path("/etc/apt/sources.list.d/cluster-kit-docker.sources")
PINS = Path("/etc/apt/preferences.d/cluster-kit-docker")
PID_FILE = Path("/var/run/docker.pid")
DAEMON_LOG = Path("/var/log/cluster-kit-dockerd.log")
READY_TIMEOUT_S = 30.0

Say = Callable[[str], None]


class Beside(Protocol):
    """What is made on this host while the engine's packages are installed: unpacking them keeps one
    CPU busy, and there are others."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Those that it needs itself."""
        ...

    def is_wanted(self) -> bool:
        """Whether it is to be made."""
        ...

    def make(self) -> None:
        """Make it; raises nothing that is not an interrupt."""
        ...


def engine_answers(host: Host) -> bool:
    """Whether `docker info` reaches an engine; init scripts do not see daemons started by hand."""
    if shutil.which("docker") is None:
        return False
    return host.processes.run(
        ["docker", "info", "--format", "{{.ServerVersion}}"], timeout_s=ANSWER_S
    ).ok


def compose_works(host: Host) -> bool:
    """Whether this client has Compose v2."""
    return (
        shutil.which("docker") is not None
        and host.processes.run(["docker", "compose", "version"]).ok
    )


def ensure_engine(
    host: Host, say: Say, ask: Callable[[str], bool], beside: Beside | None = None
) -> bool:
    """Install and start an engine if none answers; returns whether anything was changed.

    Args:
        say: prints a line of progress.
        ask: asks the user a yes/no question; only called on a terminal.
        beside: made meanwhile, if packages have to be installed.
    Raises:
        HostError: the installation is not allowed or not possible; the hint says what to install
            manually.
        EngineError: the installation failed, or the daemon did not start.
    """
    if engine_answers(host) and compose_works(host):
        return False
    if shutil.which("docker"):
        asked = host.processes.run(["docker", "info"], timeout_s=ANSWER_S)
        if may_not(asked.tail()):
            raise no_engine(OSError(asked.tail()))
        if asked.code == TIMED_OUT:
            raise HostError(
                "the Docker engine accepts connections and does not answer: `docker info` "
                f"did not end within {ANSWER_S:g} s",
                "start it again: `sudo systemctl restart docker`",
            )
    _refuse_if_not_allowed()
    if sys.stdin.isatty() and not ask("No Docker engine answers. Install and start one now?"):
        raise HostError("no Docker engine answers, and installing one was declined", _BY_HAND)
    packages: tuple[str, ...] = ()
    if not (shutil.which("dockerd") and compose_works(host)):
        say("installing the Docker engine and Compose from the distribution's packages")
        _update(host, say)
        packages = (*_packages(), "iptables")
    if packages and beside is not None and _can_be_made(host, beside):
        # The engine in the thread: an interrupt ends what this one makes, and lets dpkg finish.
        with ThreadPoolExecutor(max_workers=1) as pool:
            engine = pool.submit(_install_and_start, host, packages, say)
            beside.make()
        engine.result()
    else:
        _install_and_start(host, packages, say)
    say(_given(host))
    return True


def _can_be_made(host: Host, beside: Beside) -> bool:
    """Whether it is wanted, and its packages are there now; the engine does not depend on them."""
    if not beside.is_wanted():
        return False
    try:
        _apt_install(host, *beside.packages)
    except EngineError:
        return False
    return True


def _install_and_start(host: Host, packages: tuple[str, ...], say: Say) -> None:
    """Raises EngineError."""
    if packages:
        _apt_install(host, *packages)
    if not engine_answers(host):
        say("starting the Docker engine")
        _start(host)


_BY_HAND = (
    "install Docker Engine 23.0 or newer with the Compose v2 and Buildx plugins "
    "(https://docs.docker.com/engine/install/), start it, and run this again"
)


def _refuse_if_not_allowed() -> None:
    """Raises HostError if an engine must not, or cannot, be installed here."""
    if os.environ.get("ENGINE") == "never":
        raise HostError("no Docker engine answers, and ENGINE=never forbids starting one", _BY_HAND)
    if os.environ.get("DOCKER_HOST"):
        raise HostError(
            f"the engine at DOCKER_HOST={os.environ['DOCKER_HOST']} does not answer",
            "start it, or unset DOCKER_HOST to use this machine's own engine",
        )
    if os.geteuid() != 0:
        raise HostError(
            "no Docker engine answers for this user",
            "if one runs, add yourself to its group (sudo usermod -aG docker $USER, then log in "
            f"again); otherwise run `sudo {command('engine')}`, or " + _BY_HAND,
        )
    if _os_release().get("ID") not in ("debian", "ubuntu"):
        raise HostError(
            f"no Docker engine answers, and this system ({_os_release().get('ID', 'unknown')}) "
            "is neither Debian nor Ubuntu",
            _BY_HAND,
        )


def _os_release() -> dict[str, str]:
    try:
        text = Path("/etc/os-release").read_text()
    except FileNotFoundError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def _given(host: Host) -> str:
    """A text about the engine that this host has now."""
    version = host.processes.run(
        ["docker", "info", "--format", "{{.ServerVersion}}"], timeout_s=ANSWER_S
    ).output.strip()
    note = (
        "" if is_closed(version) else f"; `{command('doctor')}` shows what {CLOSED}.0 would block"
    )
    return f"Docker Engine {version}{note}"


def _update(host: Host, say: Say) -> None:
    """Let apt know where the engine's packages are; raises HostError or EngineError."""
    security = ""
    if _os_release().get("VERSION_CODENAME") == "bookworm":
        mirror, security = debian_mirrors(APT)
        SOURCES.write_text(next_suite(mirror, security))
        PINS.write_text(PINNED)
    try:
        _apt(host, "update", "-q")
    except EngineError:
        if not security:
            raise
        say(f"{security} has no {NEXT_SUITE}-security: fixes come with that release's updates only")
        SOURCES.write_text(next_suite(mirror, ""))
        _apt(host, "update", "-q")


def _packages() -> tuple[str, ...]:
    """The names of the engine's packages in this distribution."""
    return PACKAGES if _os_release()["ID"] == "debian" else UBUNTUS_PACKAGES


PINNED = (
    f"Package: *\nPin: release n={NEXT_SUITE}*\nPin-Priority: 50\n\n"
    f"Package: {' '.join(PACKAGES)}\nPin: release n={NEXT_SUITE}*\nPin-Priority: 990\n"
)
"""Pins only Docker's packages to the next release, in whichever suite has the newest version."""


def next_suite(mirror: str, security: str) -> str:
    """Returns the sources of the next Debian release: its packages, and its fixes if `security`."""
    mirrors = {NEXT_SUITE: mirror}
    if security:
        mirrors[f"{NEXT_SUITE}-security"] = security
    return "\n".join(
        f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n"
        for suite, uri in mirrors.items()
    )


_DISABLED = re.compile(
    r"^Enabled:\s*(?:no|false|without|off|disable|0)\s*$", re.MULTILINE | re.IGNORECASE
)
"""A line that disables a source, with any of the words that apt takes for no."""


def debian_mirrors(apt: Path) -> tuple[str, str]:
    """Returns the addresses of the host's Debian mirror, and of its mirror of fixes ("": none).

    Args:
        apt: apt's directory; its sources may have the deb822 or the one-line form.
    Raises:
        HostError: there is no Debian mirror.
    """
    texts = [
        stanza
        for path in sorted((apt / "sources.list.d").glob("*.sources"))
        for stanza in re.split(r"\n\s*\n", path.read_text())
        if not _DISABLED.search(stanza)
    ]
    lines = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]
    texts += [path.read_text() for path in lines if path.exists()]
    mirror = _first_mirror(texts, "debian")
    if not mirror:
        raise HostError("no Debian mirror found in the apt configuration of this host", _BY_HAND)
    return mirror, _first_mirror(texts, "debian-security")


def _first_mirror(texts: list[str], archive: str) -> str:
    """The first address of an archive in these sources."""
    uri = rf"((?:https?|mirror\+\w+|file|copy):\S*/{archive}/?)"
    forms = (rf"^URIs:\s*{uri}(?:\s|$)", rf"^deb\s+(?:\[[^\]]*\]\s+)?{uri}\s")
    for text in texts:
        for form in forms:
            if match := re.search(form, text, re.MULTILINE):
                return match.group(1)
    return ""


def _apt_install(host: Host, *packages: str) -> None:
    _apt(host, "install", "-y", "-q", "--no-install-recommends", *packages)


def _apt(host: Host, *arguments: str) -> None:
    done = host.processes.run(
        ["apt-get", "-o", "DPkg::Lock::Timeout=120", *arguments],
        env={"DEBIAN_FRONTEND": "noninteractive"},
    )
    if not done.ok:
        raise EngineError(
            f"apt-get {arguments[0]} failed (exit {done.code}):\n{done.tail()}", _BY_HAND
        )


def _start(host: Host) -> None:
    """Start the daemon with systemd if it runs, else directly: the init script fails in containers.

    Raises EngineError if no engine answers in time.
    """
    if Path("/run/systemd/system").is_dir():
        host.processes.run(["systemctl", "enable", "--now", "docker"])
        pid = None
    else:
        forget_dead_daemon(PID_FILE)
        pid = host.processes.start_daemon(["dockerd"], str(DAEMON_LOG))
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if engine_answers(host):
            return
        if pid is not None and not _alive(pid):
            break
        time.sleep(0.2)
    log = DAEMON_LOG.read_text(errors="replace").splitlines()[-8:] if DAEMON_LOG.exists() else []
    raise EngineError(
        "the Docker engine was started but does not answer:\n" + "\n".join(log),
        f"read {DAEMON_LOG} (or `journalctl -u docker`), fix what it says, and run "
        f"`{command('engine')}`",
    )


def forget_dead_daemon(pid_file: Path) -> None:
    """Remove the pid file if its process is not dockerd any more.

    dockerd only checks whether a process with that pid runs, and would refuse to start.
    """
    try:
        pid = int(pid_file.read_text())
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ValueError):
        name = ""
    if name != "dockerd":
        pid_file.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    """Whether the child process still runs; reaps it if it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False
