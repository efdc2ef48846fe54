"""An engine that runs as if it were on a separate host."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.e2e import graph

READY_TIMEOUT_S = 60.0
START = f"""
hostname "$1"
shift
{graph.MOUNT}
exec "$@"
"""


@dataclass(frozen=True)
class Node:
    """A running engine: its host name, its data and its socket, and how to end it."""

    name: str
    address: str
    folder: Path
    netns: str
    process: subprocess.Popen[bytes]

    @property
    def host(self) -> str:
        return f"unix://{self.folder / 'docker.sock'}"

    def docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", "-H", self.host, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def said(self, *arguments: str) -> str:
        """Returns the output of a docker command, which must succeed."""
        done = self.docker(*arguments)
        assert done.returncode == 0, (self.name, arguments, done.stderr)
        return done.stdout.strip()

    def task(self, role: str, index: int = 0) -> str:
        """Returns the running container of a task of the kit on this node; "" if there is none."""
        marks = (f"label=cluster-kit.role={role}", f"label=cluster-kit.index={index}")
        return self.said("ps", "-q", *(word for mark in marks for word in ("--filter", mark)))

    def crash(self, container: str) -> None:
        """Kill a container's first process, as a crash does."""
        pid = self.said("inspect", "-f", "{{.State.Pid}}", container)
        self.inside("kill", "-9", pid)

    def inside(self, *command: str) -> None:
        """Run a command as a process of this node, with its mounts and its processes."""
        enter = ["nsenter", "-t", str(self._engine()), "--pid", "--mount", "--net"]
        subprocess.run([*enter, *command], check=True, capture_output=True)

    def cut_power(self) -> None:
        """End the engine and all of its containers at once; returns when they have ended."""
        with contextlib.suppress(ProcessLookupError, IndexError, FileNotFoundError):
            os.kill(self._engine(), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
            return
        self.process.kill()
        self.process.wait(timeout=30)

    def _engine(self) -> int:
        """Returns the process id, on this machine, of the engine, the first process in its PID
        namespace."""
        own = self.process.pid
        return int(Path(f"/proc/{own}/task/{own}/children").read_text().split()[0])


def start(
    name: str, folder: Path, place: int, images: Mapping[str, str], resources: Sequence[str]
) -> Node:
    """Start the node with this number, of those that share this name; it is not ready yet."""
    own, netns, address = folder / f"node-{place}", f"{name}-{place}", f"198.18.0.{place + 1}"
    ip("netns", "add", netns)
    ip("-n", f"{name}-hub", "link", "add", f"p{place}", "type", "veth",
        "peer", "name", "eth0", "netns", netns)  # fmt: skip
    ip("-n", f"{name}-hub", "link", "set", f"p{place}", "master", "bridge", "up")
    ip("-n", netns, "address", "add", f"{address}/24", "dev", "eth0")
    for link in ("lo", "eth0"):
        ip("-n", netns, "link", "set", link, "up")
    graph.share(images, own)
    configuration = {"bridge": "none", "cgroup-parent": f"/{name}", "storage-driver": graph.DRIVER}
    listed = {"node-generic-resources": list(resources)} if resources else {}
    (own / "daemon.json").write_text(json.dumps({**configuration, **listed}))
    return Node(f"node-{place}", address, own, netns, _switched_on(f"node-{place}", own, netns))


def started_again(node: Node) -> Node:
    """Restart a node whose power was cut, with its disk; returns when its engine answers."""
    (node.folder / "pid").unlink(missing_ok=True)
    shutil.rmtree(node.folder / "exec", ignore_errors=True)
    again = replace(node, process=_switched_on(node.name, node.folder, node.netns))
    wait_until_ready(again)
    return again


def _switched_on(name: str, own: Path, netns: str) -> subprocess.Popen[bytes]:
    with (own / "log").open("ab") as log:
        return subprocess.Popen(
            [
                # So that it ends even if the test run is killed.
                *("setpriv", "--pdeathsig", "KILL"),
                *("nsenter", f"--net=/run/netns/{netns}"),
                *("unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
                *("sh", "-ec", START, "sh", name, str(own)),
                *("dockerd", "--config-file", str(own / "daemon.json")),
                *("--data-root", str(own / "data"), "--exec-root", str(own / "exec")),
                *("--pidfile", str(own / "pid"), "-H", f"unix://{own / 'docker.sock'}"),
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def wait_until_ready(node: Node) -> None:
    """Return when the node's engine answers."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while node.docker("version").returncode != 0:
        if time.monotonic() > deadline or node.process.poll() is not None:
            output = (node.folder / "log").read_text()[-2000:]
            raise AssertionError(f"the engine of {node.name} does not answer: {output}")
        time.sleep(0.2)


def ip(*arguments: str) -> None:
    """Call `ip`, which must succeed."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
