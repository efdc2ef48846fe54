"""A rootless engine that an ordinary user of this machine runs."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.make import ROOT

SCRIPTS = (Path("/usr/share/docker.io/contrib"), Path("/usr/bin"))
TOOLS = ("rootlesskit", "newuidmap", "slirp4netns", "setpriv")
READY_S = 30


def ordinary_user() -> str:
    """Returns a user who has subordinate ids; "" if there is none."""
    file = Path("/etc/subuid")
    names = [line.split(":")[0] for line in file.read_text().splitlines()] if file.exists() else []
    known = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid}
    return next((name for name in names if name in known), "")


def script() -> Path | None:
    """Returns the script that starts a rootless engine; None if there is none."""
    found = (folder / "dockerd-rootless.sh" for folder in SCRIPTS)
    return next((path for path in found if path.exists()), None)


def why_not() -> str:
    """Returns why no rootless engine can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "becoming another user takes root"
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"no {missing[0]} on this machine (Debian: rootlesskit uidmap slirp4netns)"
    if script() is None:
        return "no dockerd-rootless.sh on this machine"
    if not ordinary_user():
        return "no user in /etc/subuid: `useradd -m NAME` makes one"
    return "" if os.access("/dev/net/tun", os.R_OK) else "no /dev/net/tun"


@dataclass(frozen=True)
class Rootless:
    """A running engine, its user, and a folder of that user."""

    user: str
    folder: Path

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def run(self, *command: str, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run a command as that user, in their workspace."""
        return subprocess.run(
            [*become(self.user), *command], cwd=self.folder / "ws", env=self.environment(),
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        packages = f"{ROOT}{os.pathsep}{sysconfig.get_path('purelib')}"
        return {
            "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder), "PYTHONPATH": packages, "COLUMNS": "160",
            "PYTHONDONTWRITEBYTECODE": "1", "DOCKER_HOST": self.host,
        }  # fmt: skip

    def python(self) -> str:
        """Returns a Python that the user may run and that finds the kit; "" if there is none."""
        for python in (sys.executable, "/usr/bin/python3"):
            if self.run(python, "-c", "import cluster_kit.cli.up").returncode == 0:
                return python
        return ""

    def load(self, image: str) -> None:
        """Copy an image from the machine's own engine."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as save:
            load = ["docker", "-H", self.host, "load", "-q"]
            subprocess.run(load, stdin=save.stdout, check=True, capture_output=True, timeout=300)


def become(user: str) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]


@contextlib.contextmanager
def engine(folder: Path) -> Iterator[Rootless]:
    """Start an engine that keeps all its data in `folder`; it ends with the block."""
    made = Rootless(ordinary_user(), folder)
    for path in (folder, folder / "ws", folder / "ws" / "compose"):
        path.mkdir(exist_ok=True)
        path.chmod(0o700)
        shutil.chown(path, made.user)
    environment = made.environment()
    del environment["DOCKER_HOST"]
    with (folder / "log").open("wb") as log:
        command = [*become(made.user), str(script()), "--data-root", str(folder / "data")]
        daemon = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until = time.monotonic() + READY_S
        while made.run("docker", "version", seconds=20).returncode:
            assert time.monotonic() < until, (folder / "log").read_text()[-2000:]
            time.sleep(0.3)
        yield made
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGTERM)
        daemon.wait(30)
