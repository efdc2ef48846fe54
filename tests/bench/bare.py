"""Runs a cluster's tasks as bare processes in the image's files, without the rest of a container.

An idle container keeps the files mounted. A process that is chrooted into them from the host has
the host's network, process table and control group, and none of Docker's restrictions. It also
lacks the image's MALLOC_ variables, as do processes of people who do not use the kit.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.resolved import Cluster
from tests.bench.bench import HERE, OWN, Bench, docker
from tests.bench.clusters import planned
from tests.bench.turns import Training, Turns
from tests.make import parse_compose

CHROOT = shutil.which("chroot") or ""


def why_not() -> str:
    """Returns why this machine cannot run the image's files outside a container; "" if it can."""
    if os.geteuid() != 0:
        return "bare processes of the image need chroot, and that needs root"
    return "" if CHROOT else "bare processes of the image need chroot, which is not installed"


@dataclass(frozen=True)
class BareRoot:
    """The image's files as a directory of the host, and the image's environment."""

    path: Path
    environment: Mapping[str, str]


@contextlib.contextmanager
def _root(bench: Bench, output: Path) -> Iterator[BareRoot]:
    """Yields the image's root directory, with the job at /program, while the idle container exists.

    Its /proc and /sys are the host's, as those of a bare process are.
    """
    name = f"{bench.name}-root"
    docker(
        *("run", "--detach", "--pull=never", f"--name={name}", f"--label={OWN}={bench.name}"),
        *("--pid=host", "--network=host", "--user=0:0", "--tmpfs=/tmp:mode=1777"),
        *(f"--volume={HERE}:/program:ro", f"--volume={output}:/output"),
        *("--entrypoint=sleep", bench.image, "3600"),
    )
    try:
        found = json.loads(docker("inspect", name))[0]
        environment = dict(
            entry.split("=", 1)
            for entry in found["Config"]["Env"]
            if not entry.startswith("MALLOC_")
        )
        yield BareRoot(Path(f"/proc/{found['State']['Pid']}/root"), environment)
    finally:
        docker("rm", "--force", name)


@contextlib.contextmanager
def bare_job(bench: Bench, training: Training) -> Iterator[Turns]:
    """Yields the tasks as the kit renders them, with the same variables, but on this host's
    loopback."""
    cluster = planned(bench, "bare", training.workers, training.ps, *training.arguments)
    services = parse_compose(render(cluster))["services"]
    here = _loopback(cluster)
    output = bench.scratch / "bare"
    turns = Turns.under(output, training.steps)
    with contextlib.ExitStack() as held:
        root = held.enter_context(_root(bench, output))
        log = held.enter_context((bench.scratch / "bare.log").open("w"))
        for service in services.values():
            environment = {
                key: _moved(value, here) for key, value in service["environment"].items()
            }
            held.enter_context(_process(root, cluster.user, service["command"], environment, log))
        yield turns


@contextlib.contextmanager
def _process(
    root: BareRoot,
    user: str,
    command: list[str],
    environment: Mapping[str, str],
    log: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start one task; it is killed if it is still running at the end."""
    process = subprocess.Popen(
        [CHROOT, f"--userspec={user}", str(root.path), "python3", "-m", "trainer", *command],
        env={**root.environment, **environment},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _loopback(cluster: Cluster) -> dict[str, str]:
    """Returns a free port of 127.0.0.1 for each of the cluster's addresses."""
    addresses = [*map(cluster.address, cluster.tasks), cluster.beacon]
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in addresses]
        ports = [one.getsockname()[1] for one in sockets]
    return {there: f"127.0.0.1:{port}" for there, port in zip(addresses, ports, strict=True)}


def _moved(value: str, here: Mapping[str, str]) -> str:
    for there, address in here.items():
        value = value.replace(there, address)
    return value
