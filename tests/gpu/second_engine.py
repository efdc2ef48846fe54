"""An engine for tests that simulates GPUs on a machine without any.

It runs in a separate network namespace, with its own data directory and socket, so that it touches
nothing of the real one. There are two kinds:

- "nvidia": an executable called nvidia-container-runtime-hook in dockerd's PATH is enough for the
engine to register the driver "nvidia". The tests' hook refuses unknown ids.
- "cdi": the engine reads a CDI specification whose devices are /dev/null under other names.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.e2e import graph

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
GPUS = ("0", "1", "2", "3")
UUIDS = tuple(f"GPU-{index}{index}{index}{index}" for index in GPUS)
TOOLS = ("dockerd", "docker", "ip", "nsenter", "setpriv", "unshare")
Kind = Literal["nvidia", "cdi"]

HOOK = """#!/usr/bin/env python3
# Stands in for NVIDIA's hook: reads which GPUs the container was given, refuses unknown ones.
import json, sys
bundle = json.load(sys.stdin)["bundle"]
env = json.load(open(bundle + "/config.json"))["process"]["env"]
given = [e.split("=", 1)[1] for e in env if e.startswith("NVIDIA_VISIBLE_DEVICES=")]
unknown = [i for ids in given for i in ids.split(",") if i not in {known}]
if unknown:
    sys.exit(f"stub: unknown device id: {{unknown[0]}}")
"""


def why_not() -> str:
    """Returns why a second engine cannot be started here; "" if it can."""
    if os.geteuid() != 0:
        return "starting an engine of the tests' own takes root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"no {missing[0]} on this machine" if missing else ""


@dataclass(frozen=True)
class SecondEngine:
    """A running engine: its socket, and how to end it."""

    socket: Path
    namespace: str
    pid: int

    @property
    def host(self) -> str:
        return f"unix://{self.socket}"

    def docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", "-H", self.host, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def load(self, image: str) -> None:
        """Copy an image from the machine's own engine: a minute, if it cannot be shared."""
        save = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        load = subprocess.run(
            ["docker", "-H", self.host, "load", "-q"],
            stdin=save.stdout,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert save.wait(timeout=60) == 0 and load.returncode == 0, load.stderr


@contextlib.contextmanager
def running(kind: Kind, images: Mapping[str, str]) -> Iterator[SecondEngine]:
    """Start an engine with these images of this machine, by their names there; at the end of the
    block it is ended and its files are removed."""
    name = f"ck-{kind[:3]}-{secrets.token_hex(4)}"
    # Not in pytest's own directory: the path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        engine = start(kind, Path(folder) / "engine", name, images)
        try:
            yield engine
        finally:
            stop(engine)


def start(kind: Kind, folder: Path, name: str, images: Mapping[str, str]) -> SecondEngine:
    """Start an engine below `folder`; `name` is the name of its network namespace, at most 15
    characters."""
    folder.mkdir(parents=True, exist_ok=True)
    graph.share(images, folder)
    (folder / "bin").mkdir()
    configuration: dict[str, object] = {"bridge": "none"}
    if images:
        configuration["storage-driver"] = graph.DRIVER
    if kind == "nvidia":
        hook = folder / "bin" / "nvidia-container-runtime-hook"
        hook.write_text(HOOK.format(known=set(GPUS) | set(UUIDS)))
        hook.chmod(0o755)
    else:
        configuration |= {"features": {"cdi": True}, "cdi-spec-dirs": [str(folder / "cdi")]}
        _write_cdi(folder / "cdi")
    (folder / "daemon.json").write_text(json.dumps(configuration))
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    socket = folder / "docker.sock"
    with (folder / "log").open("ab") as log:
        child = subprocess.Popen(
            [
                # So that it ends even if the test run is killed.
                *("setpriv", "--pdeathsig", "TERM"),
                *("nsenter", f"--net=/run/netns/{name}", "unshare", "--mount"),
                *("sh", "-ec", f'{graph.MOUNT} exec "$@"', "sh", str(folder), "dockerd"),
                *("--config-file", str(folder / "daemon.json")),
                *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
                *("--pidfile", str(folder / "pid"), "-H", f"unix://{socket}"),
            ],
            env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    engine = SecondEngine(socket, name, child.pid)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while engine.docker("version").returncode != 0:
        if time.monotonic() > deadline or child.poll() is not None:
            said = (folder / "log").read_text()[-2000:]
            stop(engine)
            raise AssertionError(f"the second engine does not answer: {said}")
        time.sleep(0.1)
    return engine


def _write_cdi(folder: Path) -> None:
    """Write devices that are /dev/null, under the names of GPUs. Source: CDI specification
    0.5.0."""
    folder.mkdir()
    devices = [
        {
            "name": index,
            "containerEdits": {
                "env": [f"CDI_GAVE={index}"],
                "deviceNodes": [
                    {"path": f"/dev/nvidia{index}", "type": "c", "major": 1, "minor": 3}
                ],
            },
        }
        for index in GPUS
    ]
    specification = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    (folder / "nvidia.json").write_text(json.dumps(specification))


def stop(engine: SecondEngine) -> None:
    """End the engine and its namespace, in that order, and wait for both."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _ended(engine.pid, number):
            break
    subprocess.run(["ip", "netns", "delete", engine.namespace], check=False)


def _ended(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                return True
            time.sleep(0.1)
    except (ProcessLookupError, ChildProcessError):
        return True
    return False
