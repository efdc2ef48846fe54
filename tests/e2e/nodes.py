"""Several Docker engines on one machine, as if each were on a separate host: a swarm.

Each has a network namespace, joined to the others' by a bridge in another namespace, so that this
machine's network is not touched; a host name; a PID namespace, so that killing its first process
acts like a power cut; and its own data, socket and parent of cgroups. All see the same folders at
the same paths, as with a network file system.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import graph
from tests.e2e.node import READY_TIMEOUT_S, Node, ip, start, started_again, wait_until_ready

PREFIX = "ck-nodes-"
TOOLS = ("dockerd", "docker", "ip", "nsenter", "unshare", "setpriv", "hostname")


def why_not() -> str:
    """Returns why no such engines can be started here; "" if they can."""
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
    if tried.returncode:
        return f"no namespaces or VXLAN here: {tried.stderr.strip()}"
    return graph.why_not()


_VXLAN = ("ip", "link", "add", "v", "type", "vxlan", "id", "1", "dstport", "4789")


@dataclass(frozen=True)
class Swarm:
    """Nodes that form a swarm; the first is its only manager."""

    nodes: list[Node]

    @property
    def manager(self) -> Node:
        return self.nodes[0]

    def cut_off(self, node: Node) -> None:
        """Disconnect a node from the network; its engine and its containers continue."""
        hub = f"{node.folder.parent.name}-hub"
        ip("-n", hub, "link", "set", f"p{self.nodes.index(node)}", "down")

    def switch_on(self) -> None:
        """Start the nodes whose power was cut; returns when they are in the swarm again."""
        for place, node in enumerate(self.nodes):
            if node not in self.alive:
                self.nodes[place] = started_again(node)
        until = time.monotonic() + READY_TIMEOUT_S
        while "Down" in (states := self.manager.said("node", "ls", "--format", "{{.Status}}")):
            assert time.monotonic() < until, states
            time.sleep(0.3)

    @property
    def alive(self) -> list[Node]:
        """The nodes whose power was not cut."""
        return [node for node in self.nodes if node.process.poll() is None]

    def where(self, role: str, index: int) -> Node | None:
        """Returns the node on which a task of the kit runs; None if it runs nowhere."""
        return next((node for node in self.alive if node.task(role, index)), None)

    def variables(self, role: str, index: int) -> dict[str, str]:
        """The environment of a running task of the kit."""
        node = self.where(role, index)
        assert node is not None
        wanted = ("inspect", "-f", "{{json .Config.Env}}", node.task(role, index))
        return dict(one.split("=", 1) for one in json.loads(node.said(*wanted)))

    def has(self, node: Node, name: str) -> bool:
        """Returns whether a task of the kit, such as `worker-0`, runs on a node."""
        role, _, index = name.rpartition("-")
        return bool(node.task(role, int(index)))


@contextlib.contextmanager
def swarm(
    images: Mapping[str, str], resources: Mapping[int, Sequence[str]] | None = None, count: int = 3
) -> Iterator[Swarm]:
    """Yield engines with these images as one swarm; everything is removed at the end of the block.

    Args:
        resources: generic resources of nodes by their number: `{1: ["GPU=GPU-a"]}`.
    """
    with engines(images, resources, count) as nodes:
        manager, *workers = nodes
        manager.said("swarm", "init", "--advertise-addr", manager.address)
        token = manager.said("swarm", "join-token", "-q", "worker")
        for node in workers:
            node.said("swarm", "join", "--token", token, f"{manager.address}:2377")
        yield Swarm(nodes)


@contextlib.contextmanager
def engines(
    images: Mapping[str, str] | None = None,
    resources: Mapping[int, Sequence[str]] | None = None,
    count: int = 2,
) -> Iterator[list[Node]]:
    """Yield engines that reach each other, each with these images of this machine, by their names
    there."""
    _sweep()
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(2)}"
    folder = Path("/tmp") / name  # The path of a socket has at most 107 characters.
    nodes: list[Node] = []
    try:
        folder.mkdir(mode=0o755)
        ip("netns", "add", f"{name}-hub")
        ip("-n", f"{name}-hub", "link", "add", "bridge", "type", "bridge")
        ip("-n", f"{name}-hub", "link", "set", "bridge", "up")
        for place in range(count):
            nodes.append(start(name, folder, place, images or {}, (resources or {}).get(place, ())))
        for node in nodes:
            wait_until_ready(node)
        yield nodes
    finally:
        for node in nodes:
            node.cut_power()
        _remove(name)


def _sweep() -> None:
    """Remove what an earlier, killed test run has left."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        if not Path(f"/proc/{folder.name.removeprefix(PREFIX).partition('-')[0]}").exists():
            _remove(folder.name)


def _remove(name: str) -> None:
    for netns in Path("/run/netns").glob(f"{name}-*"):
        ip("netns", "delete", netns.name)
    for top in (*Path("/sys/fs/cgroup").glob(f"*/{name}"), Path("/sys/fs/cgroup", name)):
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    shutil.rmtree(Path("/tmp") / name, ignore_errors=True)
