"""Docker engines of the tests' own on one machine, as if each were on a host of its own: a swarm.

Each has a network namespace, joined to the others' by a bridge that is in one as well, so that
nothing of this machine's network is touched; a host name; a PID namespace, so that killing its
first process is what a power cut is to a host; its own data, socket and parent of cgroups. All
see the same folders at the same paths, as by a network file system.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import graph

READY_TIMEOUT_S = 60.0
PREFIX = "ck-nodes-"
TOOLS = ("dockerd", "docker", "ip", "nsenter", "unshare", "setpriv", "hostname")
START = """
hostname "$1"
for own in "$2/data" "$2/data/overlay2"; do
  mount --bind "$own" "$own"
  mount --make-private "$own"
done
mount --make-shared "$2/data"
while read -r from to; do mount --bind -o ro "$from" "$to"; done < "$2/mounts"
shift 2
if [ -d /run/containerd ]; then mount -t tmpfs none /run/containerd; fi
exec "$@"
"""
"""dockerd mounts its data over itself, without what is mounted in it, unless that is done before.
A containerd of the machine is in another PID namespace: this engine starts one of its own."""


def why_not() -> str:
    """Why no such engines can be started here, "" where they can."""
    if os.geteuid() != 0:
        return "starting engines of the tests' own takes root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"no {missing[0]} on this machine"
    tried = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--uts", *_VXLAN],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no namespaces or VXLAN here: {tried.stderr.strip()}" if tried.returncode else ""


_VXLAN = ("ip", "link", "add", "v", "type", "vxlan", "id", "1", "dstport", "4789")


@dataclass(frozen=True)
class Node:
    """An engine that runs: its host name, where its data and its socket are, what ends it."""

    name: str
    address: str
    folder: Path
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
        """What a docker command prints; it has to succeed."""
        done = self.docker(*arguments)
        assert done.returncode == 0, (self.name, arguments, done.stderr)
        return done.stdout.strip()

    def task(self, role: str, index: int = 0) -> str:
        """The running container of a task of the kit on this node, "" if it has none."""
        marks = (f"label=cluster-kit.role={role}", f"label=cluster-kit.index={index}")
        return self.said("ps", "-q", *(word for mark in marks for word in ("--filter", mark)))

    def crash(self, container: str) -> None:
        """Kill a container's first process, as a crash does."""
        pid = self.said("inspect", "-f", "{{.State.Pid}}", container)
        inside = ["nsenter", "-t", str(self._engine()), "--pid", "kill", "-9", pid]
        subprocess.run(inside, check=True, capture_output=True)

    def cut_power(self) -> None:
        """End the engine and all of its containers at once; returns when they are gone."""
        with contextlib.suppress(ProcessLookupError, IndexError, FileNotFoundError):
            os.kill(self._engine(), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
            return
        self.process.kill()
        self.process.wait(timeout=30)

    def _engine(self) -> int:
        """This machine's number of the engine's process, the first in its PID namespace."""
        own = self.process.pid
        return int(Path(f"/proc/{own}/task/{own}/children").read_text().split()[0])


@dataclass(frozen=True)
class Swarm:
    """Nodes that are a swarm; the first is its only manager."""

    nodes: tuple[Node, ...]

    @property
    def manager(self) -> Node:
        return self.nodes[0]

    @property
    def alive(self) -> list[Node]:
        """The nodes whose power was not cut."""
        return [node for node in self.nodes if node.process.poll() is None]

    def has(self, node: Node, name: str) -> bool:
        """Whether a task of the kit, `worker-0`, runs on a node."""
        role, _, index = name.rpartition("-")
        return bool(node.task(role, int(index)))


@contextlib.contextmanager
def swarm(
    images: Sequence[str], resources: Mapping[int, Sequence[str]] | None = None, count: int = 3
) -> Iterator[Swarm]:
    """Engines with these images as one swarm; all is removed when the block is left.

    Args:
        resources: generic resources of nodes by their place: `{1: ["GPU=GPU-a"]}`.
    """
    with engines(images, resources, count) as nodes:
        manager, *workers = nodes
        manager.said("swarm", "init", "--advertise-addr", manager.address)
        token = manager.said("swarm", "join-token", "-q", "worker")
        for node in workers:
            node.said("swarm", "join", "--token", token, f"{manager.address}:2377")
        yield Swarm(tuple(nodes))


@contextlib.contextmanager
def engines(
    images: Sequence[str] = (),
    resources: Mapping[int, Sequence[str]] | None = None,
    count: int = 2,
) -> Iterator[list[Node]]:
    """Engines that reach each other, each with these images of this machine's own."""
    _sweep()
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(2)}"
    folder = Path("/tmp") / name  # the path of a socket has at most 107 characters
    nodes: list[Node] = []
    try:
        folder.mkdir(mode=0o755)
        _ip("netns", "add", f"{name}-hub")
        _ip("-n", f"{name}-hub", "link", "add", "bridge", "type", "bridge")
        _ip("-n", f"{name}-hub", "link", "set", "bridge", "up")
        for place in range(count):
            nodes.append(_start(name, folder, place, images, (resources or {}).get(place, ())))
        for node in nodes:
            _wait_until_ready(node)
        yield nodes
    finally:
        for node in nodes:
            node.cut_power()
        _remove(name)


def _start(
    name: str, folder: Path, place: int, images: Sequence[str], resources: Sequence[str]
) -> Node:
    own, netns, address = folder / f"node-{place}", f"{name}-{place}", f"198.18.0.{place + 1}"
    _ip("netns", "add", netns)
    _ip("-n", f"{name}-hub", "link", "add", f"p{place}", "type", "veth",
        "peer", "name", "eth0", "netns", netns)  # fmt: skip
    _ip("-n", f"{name}-hub", "link", "set", f"p{place}", "master", "bridge", "up")
    _ip("-n", netns, "address", "add", f"{address}/24", "dev", "eth0")
    for link in ("lo", "eth0"):
        _ip("-n", netns, "link", "set", link, "up")
    (own / "data" / graph.DRIVER).mkdir(parents=True)
    mounts = [mount for image in images for mount in graph.copy(image, own / "data")]
    (own / "mounts").write_text("".join(f"{ours} {theirs}\n" for ours, theirs in mounts))
    configuration = {"bridge": "none", "cgroup-parent": f"/{name}", "storage-driver": "overlay2"}
    listed = {"node-generic-resources": list(resources)} if resources else {}
    (own / "daemon.json").write_text(json.dumps({**configuration, **listed}))
    with (own / "log").open("ab") as log:
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL"),  # not even a killed test run leaves it behind
                *("nsenter", f"--net=/run/netns/{netns}"),
                *("unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
                *("sh", "-ec", START, "sh", f"node-{place}", str(own)),
                *("dockerd", "--config-file", str(own / "daemon.json")),
                *("--data-root", str(own / "data"), "--exec-root", str(own / "exec")),
                *("--pidfile", str(own / "pid"), "-H", f"unix://{own / 'docker.sock'}"),
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return Node(f"node-{place}", address, own, process)


def _wait_until_ready(node: Node) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while node.docker("version").returncode != 0:
        if time.monotonic() > deadline or node.process.poll() is not None:
            said = (node.folder / "log").read_text()[-2000:]
            raise AssertionError(f"the engine of {node.name} does not answer: {said}")
        time.sleep(0.2)


def _sweep() -> None:
    """Remove what a test run has left that was killed."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        if not Path(f"/proc/{folder.name.removeprefix(PREFIX).partition('-')[0]}").exists():
            _remove(folder.name)


def _remove(name: str) -> None:
    for netns in Path("/run/netns").glob(f"{name}-*"):
        _ip("netns", "delete", netns.name)
    for top in (*Path("/sys/fs/cgroup").glob(f"*/{name}"), Path("/sys/fs/cgroup", name)):
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    shutil.rmtree(Path("/tmp") / name, ignore_errors=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
