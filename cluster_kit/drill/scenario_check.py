"""What is wrong with a scenario on one cluster, all of it, before anything starts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster_kit.contract import events as contract
from cluster_kit.drill.plan import RATE
from cluster_kit.drill.scenario import CHECKPOINT, RANDOM, At, Fault
from cluster_kit.drill.scenario_file import Written
from cluster_kit.drill.training_length import Length, length_of
from cluster_kit.errors import ManifestError
from cluster_kit.problem import Problem
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.resolved import Cluster
from cluster_kit.roles import ROLES
from cluster_kit.util.nearest import proposal

EVENTS = tuple(name for name in contract.EVENTS if name not in ("usage", "end"))
"""Those of the contract but `end`, the last one, and `usage`, which never ends."""


def refuse(written: Written, cluster: Cluster) -> None:
    """Raises ManifestError with every problem of the scenario, of its shape or on this cluster."""
    length = length_of(cluster)
    problems = list(written.problems)
    for number, fault in zip(written.numbers, written.scenario.fault, strict=True):
        problems += _problems(f"fault {number}", fault, cluster, length)
    if problems:
        raise ManifestError(written.source, sorted(problems, key=_place))


def _place(problem: Problem) -> tuple[bool, int]:
    """Faults first, in the file's order."""
    words = problem.key_path.partition(":")[0].split()
    number = words[1] if words[:1] == ["fault"] and len(words) > 1 else ""
    return not number, int(number or 0)


def _problems(where: str, fault: Fault, cluster: Cluster, length: Length) -> Iterator[Problem]:
    names = [task.name for task in cluster.tasks]
    if fault.task is not None and fault.task not in (*names, RANDOM):
        rule = f"the cluster {cluster.name} has no such task"
        hint = proposal(fault.task, [*names, RANDOM])
        yield Problem(f"{where}: task", f'"{fault.task}"', rule, hint)
    roles = [role for role in ROLES if cluster.of(role)]
    if fault.role is not None and fault.role not in roles:
        rule = f"the cluster {cluster.name} has no task of this role"
        yield Problem(f"{where}: role", f'"{fault.role}"', rule, proposal(fault.role, roles))
    yield from _apart(where, fault, names, cluster)
    yield from _too_wide(where, fault, cluster)
    yield from _too_late(f"{where}: at", fault.at, cluster, length)
    builtin = cluster.leader.command[1:2] and cluster.leader.command[1] in PROGRAMS
    if builtin and fault.at.after not in (None, CHECKPOINT, *EVENTS):
        hint = proposal(str(fault.at.after), [CHECKPOINT, *EVENTS])
        yield Problem(f"{where}: at.after", f'"{fault.at.after}"', "no such event", hint)


def _apart(where: str, fault: Fault, names: Sequence[str], cluster: Cluster) -> Iterator[Problem]:
    """Tasks to cut it off from that there are not, or that are the task itself."""
    own = [task.name for task in cluster.of(fault.role)] if fault.role else [fault.task]
    for name in fault.sources or ():
        if name not in names:
            rule = f"the cluster {cluster.name} has no such task"
            yield Problem(f"{where}: from", f'"{name}"', rule, proposal(name, names))
        elif name in own:
            rule = "a task cannot be cut off from itself"
            yield Problem(f"{where}: from", f'"{name}"', rule, "name other tasks")
    if fault.task == RANDOM and set(fault.sources or ()) >= set(names):
        rule = "no task is left that could be cut off from all of these"
        yield Problem(f"{where}: from", "", rule, "name fewer tasks")


def _too_wide(where: str, fault: Fault, cluster: Cluster) -> Iterator[Problem]:
    """More bandwidth than the task has by the manifest."""
    for task in cluster.tasks if fault.kind == "bandwidth" else ():
        rate = RATE if fault.rate is None else fault.rate
        meant = fault.task == task.name or fault.role == task.role
        if meant and task.bandwidth is not None and rate >= task.bandwidth:
            rule = f"{task.name} has only {task.bandwidth} bits per second as it is"
            yield Problem(f"{where}: rate", f"{rate}", rule, "choose less")


def _too_late(where: str, at: At, cluster: Cluster, length: Length) -> Iterator[Problem]:
    """A moment that can only come after the job's end."""
    for key, last in (("step", length.steps), ("epoch", length.epochs)):
        value = getattr(at, key)
        if value is not None and last is not None and value >= last:
            rule = f"the job ends at {key} {last}: it would end before the fault"
            yield Problem(f"{where}.{key}", str(value), rule, f"choose one below {last}")
    job = cluster.deadlines.job
    if at.seconds is not None and at.seconds >= job:
        rule = f"the job ends within deadline.job, {job:g} s: it would end before the fault"
        yield Problem(f"{where}.seconds", f"{at.seconds:g}", rule, f"choose fewer than {job:g}")
