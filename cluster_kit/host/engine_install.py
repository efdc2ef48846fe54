"""`make engine`: installs and starts a Docker engine if none answers and that is allowed.

This works for root on Debian and Ubuntu, with the distribution's own packages. Debian 12 has only
Compose v1, so the next release is added as a low-priority source, from which only the four Docker
packages are installed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cluster_kit.engine.failures import may_not, no_engine
from cluster_kit.errors import EngineError, HostError
from cluster_kit.util.own_files import command
from cluster_kit.util.process import run, start_daemon

PACKAGES = ("docker.io", "docker-cli", "docker-compose", "docker-buildx")
NEXT_SUITE = "trixie"
SOURCES = Path("/etc/apt/sources.list.d/cluster-kit-docker.sources")
PINS = Path("/etc/apt/preferences.d/cluster-kit-docker")
PID_FILE = Path("/var/run/docker.pid")
DAEMON_LOG = Path("/var/log/cluster-kit-dockerd.log")
READY_TIMEOUT_S = 30.0

Say = Callable[[str], None]


def engine_answers() -> bool:
    """Whether `docker info` reaches an engine; init scripts do not know hand-started daemons."""
    if shutil.which("docker") is None:
        return False
    return run(["docker", "info", "--format", "{{.ServerVersion}}"], timeout_s=30).ok


def compose_works() -> bool:
    """Whether this client has Compose v2."""
    return shutil.which("docker") is not None and run(["docker", "compose", "version"]).ok


def ensure_engine(say: Say, ask: Callable[[str], bool]) -> bool:
    """Install and start an engine if none answers; returns whether anything was changed.

    Args:
        say: prints a line of progress.
        ask: asks the user a yes/no question; only called on a terminal.
    Raises:
        HostError: it is not allowed or not possible here; the cure says what to install by hand.
        EngineError: the installation failed, or the daemon did not start.
    """
    if engine_answers() and compose_works():
        return False
    if shutil.which("docker") and may_not(said := run(["docker", "info"], timeout_s=30).tail()):
        raise no_engine(OSError(said))
    _refuse_if_not_allowed()
    if sys.stdin.isatty() and not ask("No Docker engine answers. Install and start one now?"):
        raise HostError("no Docker engine answers, and installing one was declined", _BY_HAND)
    if not (shutil.which("dockerd") and compose_works()):
        say("installing the Docker engine and Compose from the distribution's packages")
        _install()
    if not engine_answers():
        say("starting the Docker engine")
        _start()
    return True


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


def _install() -> None:
    if _os_release().get("VERSION_CODENAME") == "bookworm":
        _add_next_suite()
    _apt("update", "-q")
    packages = PACKAGES if _os_release()["ID"] == "debian" else _ubuntu_packages()
    _apt("install", "-y", "-q", "--no-install-recommends", *packages, "iptables")


def _ubuntu_packages() -> tuple[str, ...]:
    return ("docker.io", "docker-compose-v2", "docker-buildx")


def _add_next_suite() -> None:
    """Offer the Docker packages of the next Debian release, from the mirror already in use."""
    mirror, keyring = _debian_mirror()
    SOURCES.write_text(
        f"Types: deb\nURIs: {mirror}\nSuites: {NEXT_SUITE}\n"
        f"Components: main\nSigned-By: {keyring}\n"
    )
    names = " ".join(PACKAGES)
    PINS.write_text(
        f"Package: *\nPin: release n={NEXT_SUITE}\nPin-Priority: 50\n\n"
        f"Package: {names}\nPin: release n={NEXT_SUITE}\nPin-Priority: 990\n"
    )


def _debian_mirror() -> tuple[str, str]:
    """(mirror address, keyring) of the host's Debian source, in deb822 or one-line form.

    Raises HostError if there is none.
    """
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    for path in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for stanza in path.read_text().split("\n\n"):
            uri = re.search(r"^URIs:\s*(\S+/debian/?)\s*$", stanza, re.MULTILINE)
            if uri:
                return uri.group(1), keyring
    main = Path("/etc/apt/sources.list")
    lines = main.read_text() if main.exists() else ""
    uri = re.search(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+/debian/?)\s+bookworm\s", lines, re.MULTILINE)
    if uri:
        return uri.group(1), keyring
    raise HostError("no Debian mirror found in the apt configuration of this host", _BY_HAND)


def _apt(*arguments: str) -> None:
    done = run(
        ["apt-get", "-o", "DPkg::Lock::Timeout=120", *arguments],
        env={"DEBIAN_FRONTEND": "noninteractive"},
    )
    if not done.ok:
        raise EngineError(
            f"apt-get {arguments[0]} failed (exit {done.code}):\n{done.tail()}", _BY_HAND
        )


def _start() -> None:
    """Start the daemon with systemd if it runs, else directly: the init script fails in containers.

    Raises EngineError if no engine answers in time.
    """
    if Path("/run/systemd/system").is_dir():
        run(["systemctl", "enable", "--now", "docker"])
        pid = None
    else:
        forget_dead_daemon(PID_FILE)
        pid = start_daemon(["dockerd"], str(DAEMON_LOG))
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if engine_answers():
            return
        if pid is not None and not _alive(pid):
            break
        time.sleep(0.2)
    log = DAEMON_LOG.read_text(errors="replace").splitlines()[-8:] if DAEMON_LOG.exists() else []
    raise EngineError(
        "the Docker engine was started but does not answer:\n" + "\n".join(log),
        f"read {DAEMON_LOG} (or `journalctl -u docker`), mend what it says, and run "
        f"`{command('engine')}`",
    )


def forget_dead_daemon(pid_file: Path) -> None:
    """Remove the pid file if its process is no dockerd any more.

    dockerd checks only whether a process with that pid runs, and would refuse to start.
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
