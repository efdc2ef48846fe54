"""Supports a chief that is a process on this host, such as a notebook, and its container."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from cluster_kit.api.inside import host_chief as inside
from cluster_kit.contract.events import Ready
from cluster_kit.errors import (
    DeadlinePassed,
    EngineError,
    HostError,
    KitError,
    TrainingFailed,
    UsageError,
)
from cluster_kit.observe.progress import ProgressReader
from cluster_kit.resolved import Cluster
from cluster_kit.roles import CHIEF, ROLES
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.run import Run
from cluster_kit.util.untrusted import Folder
from cluster_kit.workspace import RunDirectory

CONNECT_S = 3.0
ELSEWHERE = ("ssh://", "tcp://", "http://", "https://")
LOOPBACK = ("127.", "localhost", "[::1]")
HINT = 'leave the chief in its container: without chief="host"'


def refuse_without_route(info: Mapping[str, Any]) -> None:
    """Raise HostError if an engine of this kind gives its host no route to containers.

    Args:
        info: what `docker info` shows.
    """
    if reason := no_route(info, os.environ.get("DOCKER_HOST", "")):
        raise HostError(f"a chief on this host cannot reach the other tasks: {reason}", HINT)


def no_route(info: Mapping[str, Any], docker_host: str) -> str:
    """The reason why this host has no route to the engine's bridge networks; "" if it has one."""
    if str(info.get("OperatingSystem", "")).startswith("Docker Desktop"):
        return "Docker Desktop runs containers in a virtual machine, without a route from here"
    if any("rootless" in str(option) for option in info.get("SecurityOptions") or ()):
        return "rootless Docker runs containers in a network namespace, without a route from here"
    address = docker_host.partition("://")[2]
    if docker_host.startswith(ELSEWHERE) and not address.startswith(LOOPBACK):
        return f"the engine is on another machine (DOCKER_HOST={docker_host})"
    return ""


def refuse_unreachable(cluster: Cluster) -> None:
    """Raise HostError if this host cannot connect to a server of the cluster that answers."""
    if cluster.isolated:
        raise HostError(
            f"this host has no address in the network of {cluster.name}, which is internal",
            f"set network.internal=false, or {HINT}",
        )
    for task in cluster.tasks:
        if task.serves and (error := connect(str(task.ip), cluster.port)):
            raise HostError(
                f"{task.name} answers inside {cluster.name}, but not from this host at "
                f"{task.ip}:{cluster.port}: {error}",
                f"look for a firewall, or a virtual machine around the engine; or {HINT}",
            )


def connect(host: str, port: int) -> str:
    """The reason why no connection can be made; "" if a connection works."""
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def own_address(cluster: Cluster) -> str:
    """The `IP:port` at which containers reach a server of this host.

    The port is the cluster's if it is free here, else another.
    """
    for port in (cluster.port, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))  # as TensorFlow does, whose servers listen on all addresses
            except OSError:
                continue
            return f"{cluster.gateway}:{probe.getsockname()[1]}"
    raise HostError("no TCP port is free on this host", "end what holds them: `ss -tln` shows it")


HOST = "host"
"""The value of `chief` in the API."""
DEADLINES: Mapping[str, Any] = {"job": "8760h", "stall": 0}
"""Deadlines to switch off: people and debuggers pause, and the job ends with the process anyway."""
POLL_S = 0.1
SLACK_S = 30.0
"""Extra seconds for the work before and after the leader queries its servers."""


def overrides_of(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides for a manifest: those for `chief="host"` are converted, others are unchanged.

    Raises:
        UsageError: a key has no effect with `chief="host"`.
    """
    if overrides.get(CHIEF.name) != HOST:
        return dict(overrides)
    for key in ("program", "args", "extra_args", "style"):
        if overrides.get(key):
            raise UsageError(
                f'{key} = {overrides[key]!r} with chief = "host": the chief\'s program is the one '
                "that asks for this",
                f"leave out `{key}`, or `chief`",
            )
    fixed = {CHIEF.name: 1, "program": inside.__file__, "args": [], "style": "coordinator"}
    no_evaluators = {name: 0 for name, row in ROLES.items() if row.evaluates}
    deadline = overrides.get("deadline", {})
    if isinstance(deadline, Mapping):  # the check of the manifest's keys refuses any other value
        deadline = {**DEADLINES, **deadline}
    return {**no_evaluators, **overrides, **fixed, "deadline": deadline}


def is_meant(overrides: Mapping[str, Any]) -> bool:
    """Whether `overrides_of` has converted `chief="host"` in these overrides."""
    return overrides.get("program") == inside.__file__


@contextlib.contextmanager
def present(run: Run, *, meant: bool) -> Iterator[HostChief | None]:
    """A block in which this process is the chief, if `meant`."""
    if not meant:
        yield None
        return
    chief = HostChief(run)
    try:
        yield chief
    finally:
        chief.end(well=False)
        with contextlib.suppress(OSError):  # a task may have put a directory there
            (run.directory.output / inside.LOCK).unlink()  # a resumed run would read it


class HostChief:
    """This process as a cluster's chief. It holds a lock, which is released in any case when it
    ends."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = _held(run.directory)
        self._address = ""

    @property
    def address(self) -> str:
        """The `IP:port` of this process's server; it never changes, since other tasks know it."""
        self._address = self._address or own_address(self._run.cluster)
        return self._address

    @property
    def has_ended(self) -> bool:
        """Whether `end` was called."""
        return self._lock < 0

    def tf_config(self) -> dict[str, Any]:
        """The TF_CONFIG of this process, with addresses instead of names, which this host cannot
        resolve."""
        cluster = self._run.cluster
        chief = cluster.job(CHIEF.name)
        spec = {
            cluster.job(role): [f"{task.ip}:{cluster.port}" for task in cluster.of(role)]
            for role, row in ROLES.items()
            if row.trains
        }
        return {
            "cluster": {**spec, chief: [self.address]},
            "task": {"type": chief, "index": 0},
        }

    def environment(self) -> dict[str, str]:
        """The variables that this process needs in addition to its own."""
        cluster = self._run.cluster
        subnet = str(cluster.subnet)
        exempt = {
            name: ",".join(filter(None, [os.environ.get(name, ""), subnet]))
            for name in ("no_proxy", "NO_PROXY")
        }
        own = {"TF_CONFIG": json.dumps(self.tf_config()), **exempt}
        for task in cluster.data_tasks[:1]:
            own["CLUSTER_KIT_DATA_SERVICE"] = f"grpc://{task.ip}:{cluster.port}"
        return own

    def wait_until_ready(self) -> bool:
        """Wait until every server answers the leader; False if the leader ends before that."""
        leader, deadline = self._run.cluster.leader.name, self._run.cluster.deadlines.start
        entries = ProgressReader(
            self._run.directory.output,
            sizes=self._run.sizes,
            tasks=[leader],
            began=self._run.since,
        )
        clock = self._run.host.clock
        until = clock.monotonic() + deadline + SLACK_S
        while clock.monotonic() < until:
            new = [entry.event for entry in entries.poll() if entry.task == leader]
            if any(isinstance(event, Ready) for event in new):
                return True
            if any(c.leader and c.state == "exited" for c in self._run.containers()):
                return False
            clock.sleep(POLL_S)
        return False

    def end(self, *, well: bool) -> None:
        """Let the job end; a second call does nothing."""
        if self._lock >= 0:
            if well:
                os.pwrite(self._lock, inside.DONE.encode(), 0)
            os.close(self._lock)
            self._lock = -1


def why_not_ready(outcome: Outcome) -> KitError:
    """The error for a cluster that ended before its servers answered."""
    kinds = {DeadlinePassed.exit_code: DeadlinePassed, EngineError.exit_code: EngineError}
    kind = kinds.get(outcome.exit_code, TrainingFailed)
    return kind(f"{outcome.cluster} has ended: {outcome.message}", outcome.cure)


def _held(directory: RunDirectory) -> int:
    """The descriptor of the run's lock file, which is locked before its name becomes visible.

    The lock is in a directory to which tasks can write, since the chief's container reads it; so it
    is created under a random name, and no link is followed.
    """
    making = f".{secrets.token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with Folder(directory.output) as output:
            lock = os.open(making, flags, 0o644, dir_fd=output.descriptor)
            fcntl.flock(lock, fcntl.LOCK_EX)
            directories = {"src_dir_fd": output.descriptor, "dst_dir_fd": output.descriptor}
            os.rename(making, inside.LOCK, **directories)  # noqa: PTH104
    except OSError as error:
        path = directory.output / inside.LOCK
        raise HostError(
            f"the lock {path} cannot be made: {error.strerror}",
            "free some space there, or get access",
        ) from None
    return lock
