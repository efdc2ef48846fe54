"""Describes tasks of a swarm as containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.docker.docker_containers import secrets_of
from cluster_kit.platforms.engine import Action, Container, Event, RemoteEngine, seconds_of
from cluster_kit.resolved import OUTPUT


class Unreachable(RemoteEngine):
    """The methods of an engine that raise EngineError, since no API of a swarm reaches into
    containers."""

    out_of_reach = (
        "that cannot be done to a task of a swarm: its container may be on another node",
        "`docker service ps SERVICE` says on which; `docker exec` works there",
    )


def has_run(group: Sequence[Task]) -> bool:
    """Whether any of a service's tasks has ever run: one that its node could not start has not."""
    return any(
        state_of(task) == "running" or (state_of(task) in ENDED and not never_ran(task))
        for task in group
    )


def refusals(tasks: Iterable[Task], nodes: Mapping[str, str]) -> dict[str, str]:
    """The reasons why tasks of the kit have never run, by name, from their newest swarm task.

    Args:
        nodes: host names of nodes by id.
    """
    reasons = {}
    for group in by_service(tasks).values():
        newest = group[-1]
        error, node = newest["Status"].get("Err"), nodes.get(newest.get("NodeID") or "", "")
        if not error or has_run(group) or not (never_ran(newest) or state_of(newest) == "pending"):
            continue
        if state_of(newest) == ORPHANED:
            error = "the node went down before it had started it"
        reasons[name_of(newest)] = f"{error} (node {node})" if node else str(error)
    return reasons


HELD = "node.hostname == cluster-kit-holds-it"
"""The constraint of a stopped service: no node fulfils it, and the service's logs are kept."""
ORPHANED = "orphaned"
RAN = "Ran"
"""The key in an orphaned task's status that says whether it ran. The kit itself adds it."""
DRAINED = "Drained"
"""The key in a task's status with the drained node that stopped the task. The kit itself adds
it."""
ENDED = frozenset(("complete", "failed", "shutdown", "rejected", "remove", ORPHANED))
NEVER_STARTED = 125
"""The exit code of a task that its node could not start; Docker uses it for the same."""
LOST = 137
"""The exit code of a task whose node is down, which is that of a killed task."""
HOMELESS_S = 15.0
"""Seconds after which a task without a node cannot run on the remaining nodes."""
Task = Mapping[str, Any]


def is_held(task: Task) -> bool:
    """Whether a swarm task only waits because its service is stopped."""
    return HELD in ((task["Spec"].get("Placement") or {}).get("Constraints") or ())


def state_of(task: Task) -> str:
    """The state that the swarm reports for a task: `running`, `failed`, …"""
    return str(task["Status"]["State"])


def with_lost(tasks: Iterable[Task], nodes: Iterable[Mapping[str, Any]]) -> list[Task]:
    """The tasks. Those on nodes that are down have the state `orphaned` and the node as message;
    those that were stopped on drained nodes have a message about that.

    A swarm reports a task as lost only after a day; until then it counts as running.
    """
    down, drained = dict[str, str](), dict[str, str]()
    for node in nodes:
        if node["Status"]["State"] == "down":
            down[node["ID"]] = node["Description"]["Hostname"]
        elif (node.get("Spec") or {}).get("Availability") == "drain":
            drained[node["ID"]] = node["Description"]["Hostname"]
    return [_of_node(task, down, drained) for task in tasks]


def _of_node(task: Task, down: Mapping[str, str], drained: Mapping[str, str]) -> Task:
    node, state = task.get("NodeID", ""), state_of(task)
    if node in down and state not in ENDED:
        more = {"State": ORPHANED, "Err": down[node], RAN: state == "running"}
    elif node in drained and state == "shutdown":
        more = {DRAINED: drained[node]}
    else:
        return task
    return {**task, "Status": {**task["Status"], **more}}


def never_ran(task: Task) -> bool:
    """Whether it ended without having run: its node rejected it, could not start its container, was
    down before, or had to stop it before it had one."""
    state, status = state_of(task), task["Status"]
    if state == "failed":
        return str(status.get("Message")) == "starting"
    if state in ("shutdown", "remove"):
        return not (status.get("ContainerStatus") or {}).get("ContainerID", "?")
    return state == "rejected" or (state == ORPHANED and not status.get(RAN, True))


def exit_code_of(task: Task) -> int | None:
    """The exit code of a swarm task; None if it has not ended, or if the code is unknown."""
    state = state_of(task)
    if state not in ENDED:
        return None
    if state == ORPHANED or never_ran(task):
        return LOST if state == ORPHANED else NEVER_STARTED
    code = (task["Status"].get("ContainerStatus") or {}).get("ExitCode")
    return None if code is None else int(code)


def name_of(task: Task) -> str:
    """The kit's name of a swarm task: `worker-0`."""
    tags = task["Spec"]["ContainerSpec"].get("Labels") or {}
    return f"{tags.get(labels.ROLE)}-{tags.get(labels.INDEX)}"


def by_service(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """The tasks of each service, oldest first, without those that are held."""
    groups: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda one: seconds_of(one["CreatedAt"])):
        if not is_held(task):
            groups.setdefault(str(task["ServiceID"]), []).append(task)
    return groups


def container_of(service: Mapping[str, Any], tasks: Sequence[Task]) -> Container:
    """A service with the kit's labels, described as one container that is restarted.

    Args:
        tasks: its tasks, oldest first.
    """
    spec = service["Spec"]["TaskTemplate"]["ContainerSpec"]
    tags, newest = spec["Labels"], tasks[-1] if tasks else None
    before = exit_code_of(tasks[-2]) if len(tasks) > 1 else None
    state, created = "created", seconds_of(service["CreatedAt"])
    code, started, finished, ip = None, -1.0, -1.0, ""
    if newest is not None:
        state, code = _state_and_code(newest, before)
        ran = state in ("running", "exited")
        started = seconds_of(newest["CreatedAt"]) if ran else -1.0
        if state == "running":
            started = seconds_of(newest["Status"]["Timestamp"])
        finished = seconds_of(newest["Status"]["Timestamp"]) if state == "exited" else -1.0
        ip = _address(newest)
    outputs = [m["Source"] for m in spec.get("Mounts") or () if m["Target"] == OUTPUT]
    config = {"Config": {"Labels": tags, "Env": spec.get("Env")}}
    return Container(
        id=str(service["ID"]),
        cluster=tags[labels.CLUSTER],
        name=f"{tags[labels.ROLE]}-{tags[labels.INDEX]}",
        role=tags[labels.ROLE],
        index=int(tags[labels.INDEX]),
        leader=tags.get(labels.LEADER) == "true",
        ip=ip,
        gpus=tuple(filter(None, tags.get(labels.GPUS, "").split(","))),
        state=state,
        exit_code=code,
        restarts=sum(has_run([task]) for task in tasks[:-1]),
        oom=False,
        created=created,
        started=started,
        finished=finished,
        output=next(iter(outputs), ""),
        secrets=secrets_of(config),
    )


def _state_and_code(newest: Task, before: int | None) -> tuple[str, int | None]:
    state = state_of(newest)
    if state == "running":
        return "running", None
    if state in ENDED:
        code = exit_code_of(newest)
        return "exited", NEVER_STARTED if code is None else code
    return ("created", None) if before is None else ("restarting", before)


def _address(task: Task) -> str:
    attached = [one["Addresses"] for one in task.get("NetworksAttachments") or ()]
    return next((text.partition("/")[0] for addresses in attached for text in addresses or ()), "")


@dataclass
class Told:
    """The starts and ends of one cluster that have been reported, by the ids of swarm tasks."""

    began: bool = False
    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    """Names of the kit's tasks by service."""
    homeless: set[str] = field(default_factory=set)

    def events(self, tasks: Sequence[Task], now: float) -> Iterator[Event]:
        """Yields the events since the last call.

        Tasks that ended before the first call are reported from the present state of the services.
        """
        groups = by_service(tasks)
        for service, group in groups.items():
            self.names[service] = name_of(group[-1])
            for place, task in enumerate(group):
                over = state_of(task) in ENDED
                lost = not over and place < len(group) - 1
                if lost and not has_run([task]):
                    # Replaced before it ran, so this is neither a start nor an end.
                    self.started.add(str(task["ID"]))
                    self.ended.add(str(task["ID"]))
                yield from self._of(task, over=over or lost, lost=lost, now=now)
            yield from self._without_node(group, now)
        self.began = True
        for service in self.names.keys() - {str(task["ServiceID"]) for task in tasks}:
            yield Event(now, Action.DESTROY, self.names.pop(service), None)

    def _of(self, task: Task, *, over: bool, lost: bool, now: float) -> Iterator[Event]:
        known, name, time = str(task["ID"]), name_of(task), seconds_of(task["Status"]["Timestamp"])
        if over and not self.began:
            self.started.add(known)
            self.ended.add(known)
        if known not in self.started and (over or state_of(task) == "running"):
            self.started.add(known)
            if not never_ran(task):
                yield Event(
                    seconds_of(task["CreatedAt"]) if over else time, Action.START, name, None
                )
        if over and known not in self.ended:
            self.ended.add(known)
            if state_of(task) == "shutdown":
                yield Event(time, Action.KILL, name, None, str(task["Status"].get(DRAINED, "")))
            if gone := state_of(task) == ORPHANED:
                yield Event(now, Action.LOST, name, None, str(task["Status"].get("Err", "")))
            why = "" if gone or not never_ran(task) else str(task["Status"].get("Err", ""))
            yield Event(now if lost or gone else time, Action.DIE, name, exit_code_of(task), why)

    def _without_node(self, group: Sequence[Task], now: float) -> Iterator[Event]:
        """Yields one event if a task that has run before has no node any more."""
        newest = group[-1]
        status = newest["Status"]
        waits = len(group) > 1 and state_of(newest) == "pending" and bool(status.get("Err"))
        long = now - seconds_of(newest["CreatedAt"]) > HOMELESS_S
        if waits and long and str(newest["ID"]) not in self.homeless:
            self.homeless.add(str(newest["ID"]))
            yield Event(now, Action.HOMELESS, name_of(newest), None, str(status["Err"]))
