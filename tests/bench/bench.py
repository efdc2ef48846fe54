"""What all measurements share: an image, a unique name, and clean-up."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import docker as docker_sdk
from docker.errors import NotFound

from cluster_kit import labels
from cluster_kit.util.process import run

T = TypeVar("T")
OWN = "cluster-kit.bench"
"""The label of everything that the bench starts itself."""
HERE = Path(__file__).resolve().parent
JOB = HERE / "job.py"
PATIENCE_S = 300.0


class BenchError(Exception):
    """A measured run failed, so there is no figure."""


@dataclass(frozen=True)
class Bench:
    """`pairs` overrides how often each measurement is repeated; `quick`: once, and only the first
    of several sizes."""

    name: str
    image: str
    scratch: Path
    pairs: int | None
    say: Callable[[str], None]
    quick: bool = False

    def times(self, usual: int, quick: int = 1) -> range:
        return range(self.pairs or (quick if self.quick else usual))

    def sizes(self, every: Sequence[T]) -> Sequence[T]:
        """All of these, or only the first one."""
        return every[:1] if self.quick else every


def docker(*arguments: str, timeout_s: float = PATIENCE_S, **environment: str) -> str:
    """Run docker to its end; returns its stdout, followed by its stderr.

    Raises:
        BenchError: it failed.
        subprocess.TimeoutExpired: it was still running after `timeout_s`, and was killed.
    """
    done = run(["docker", *arguments], env=environment, timeout_s=timeout_s)
    if not done.ok:
        raise BenchError(f"docker {' '.join(arguments)}: exit {done.code}\n{done.tail()}")
    return done.output + done.errors


def compose(file: Path, *arguments: str) -> str:
    """Returns the command line of Docker Compose for this file; containers write to `output` next
    to it."""
    output = file.parent / "output"
    output.mkdir(exist_ok=True)
    return docker("compose", "-f", str(file), *arguments, CLUSTER_KIT_OUTPUT=str(output))


@contextlib.contextmanager
def removed(file: Path) -> Iterator[None]:
    """At the end of the block, remove the containers and the network of this compose file in any
    case."""
    try:
        yield
    finally:
        compose(file, "down", "--timeout=0")


def remove_all(name: str) -> None:
    """Remove all containers and networks of a bench, by their label."""
    client = docker_sdk.from_env()

    def is_ours(marks: dict[str, str] | None) -> bool:
        found = marks or {}
        return found.get(OWN) == name or found.get(labels.CLUSTER, "").startswith(name)

    for container in client.containers.list(all=True, ignore_removed=True):
        if is_ours(container.labels):
            with contextlib.suppress(NotFound):
                container.remove(force=True, v=True)
    for network in client.networks.list():
        if is_ours(network.attrs.get("Labels")):
            with contextlib.suppress(NotFound):
                network.remove()
    client.close()


def load() -> float:
    """The machine's load average over the last minute."""
    return os.getloadavg()[0]
