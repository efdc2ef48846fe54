"""Fetches debugpy once to this host, to be mounted into containers: images do not need it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from cluster_kit.errors import HostError
from cluster_kit.host import Host
from cluster_kit.image.pip_config import PIP

VERSION = "1.8.22"
HASHES = {
    "py2.py3-none-any": "a9e9d3550e15ca479c59333e90845029190531f0cacfedab3b815a57bd913947",
    "cp311-x86_64": "192b73e8d53bbd60225220c0943627bf249ac93d0ea3090e23c45f3e0ceb6a35",
}
"""debugpy's wheels: one for every Python, and one compiled for the Python of the kit's image."""
COMPILED = {"x86_64": "manylinux_2_34_x86_64"}
TIMEOUT_S = 300.0


def place() -> Path:
    """The directory of this host for the debugger, whether it exists yet or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "cluster-kit" / f"debugpy-{VERSION}"


def ensure(host: Host, say: Callable[[str], None]) -> None:
    """Install the debugger there if it is missing; an incomplete copy never appears.

    Raises:
        HostError: the directory cannot be written, or pip fails.
    """
    target = place()
    if (target / "debugpy").is_dir():
        return
    say(f"fetching the debugger, debugpy {VERSION}, once")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".debugpy-") as folder:
            installed = _installed(host, Path(folder))
            installed.chmod(0o755)  # a task may run as another user
            try:
                installed.rename(target)
            except OSError:  # another process was faster
                if not (target / "debugpy").is_dir():
                    raise
    except OSError as error:
        raise HostError(
            f"{target} cannot be written: {error.strerror}",
            "free some space there, or get write access, or name another folder by XDG_CACHE_HOME",
        ) from None


def _installed(host: Host, folder: Path) -> Path:
    """The directory below `folder` into which pip has installed it."""
    marker, requirement = folder / "made", folder / "requirements.txt"
    hashes = " ".join(f"--hash=sha256:{digest}" for digest in HASHES.values())
    requirement.write_text(f"debugpy=={VERSION} {hashes}\n", encoding="utf-8")
    common = ["--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    common += ["--python-version=3.11", f"--target={marker}", f"--requirement={requirement}"]
    wheel = f"--platform={COMPILED.get(platform.machine(), 'any')}"
    command = [*PIP, "install", *common, wheel]
    done = host.processes.run(command, timeout_s=TIMEOUT_S)
    lacks_pip = "No module named pip" in done.errors
    if lacks_pip and shutil.which("uv"):
        done = host.processes.run(["uv", "pip", "install", *common], timeout_s=TIMEOUT_S)
    if not done.ok:
        fix = "fix what pip says (the index, the proxy: `pip config list`), and run it again"
        raise HostError(
            f"the debugger, debugpy {VERSION}, cannot be fetched:\n{done.tail(5)}",
            f"`{sys.executable} -m ensurepip` installs pip" if lacks_pip else fix,
        )
    return marker
