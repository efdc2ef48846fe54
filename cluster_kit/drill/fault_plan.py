"""Plans a scenario's faults for a cluster, and finds out when each fault is due."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from pathlib import Path
from random import Random

from cluster_kit.contract import events
from cluster_kit.contract.events import (
    Epoch,
    Failure,
    Heard,
    Ready,
    Retry,
    Silent,
    Start,
    Step,
    name_of,
)
from cluster_kit.contract.times import STOP_GRACE_S
from cluster_kit.drill.scenario_file import (
    AWAY,
    CHECKPOINT,
    KINDS,
    RANDOM,
    At,
    Fault,
    Scenario,
    Written,
)
from cluster_kit.errors import ManifestError, Problem
from cluster_kit.manifest.field_types import rate_text
from cluster_kit.observe import heartbeats
from cluster_kit.observe.state import CLOCK_SLACK_S, RunState
from cluster_kit.observe.task_view import ALIVE, State
from cluster_kit.platforms.engine import Action
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.report.page import completed_checkpoints
from cluster_kit.resolved import Cluster
from cluster_kit.roles import ROLES
from cluster_kit.util.nearest import proposal


@dataclass(frozen=True)
class Length:
    """Steps and epochs of a training; None if unknown."""

    steps: int | None = None
    epochs: int | None = None


def length_of(cluster: Cluster) -> Length:
    """The length of the leader's program; unknown if the argument that sets it is missing."""
    command = cluster.leader.command
    program = command[1] if len(command) > 1 else ""
    options = PROGRAMS[program].steps if program in PROGRAMS else ()
    values = {option: _last(option, command[2:]) for option in options}
    epochs = values.get("--epochs")
    steps = 1
    for value in values.values():
        if value is None:
            return Length(None, epochs)
        steps *= value
    return Length(steps if values else None, epochs)


def _last(option: str, arguments: Sequence[str]) -> int | None:
    """The option's last value, as in `--steps 5` or `--steps=5`; None if there is none."""
    last = None
    for name, following in zip(arguments, (*arguments[1:], ""), strict=False):
        flag, equals, value = name.partition("=")
        text = value if equals else following
        if flag == option and text.isdecimal():
            last = int(text)
    return last


SLOW_CPUS = 0.1
DELAY_S, LOSS_PERCENT, RATE = 0.1, 5.0, 10 * 10**6
EARLIEST, LATEST = 0.1, 0.7
"""The part of the training in which random faults happen."""
RANDOM_SECONDS = (2.0, 10.0)
"""The assumed length of a program that does not show its length."""


@dataclass(frozen=True)
class Planned:
    """A fault of one task. `number` is that of its row in the scenario, from 1.

    `lasts` is its duration in seconds (None: for good); `grace` and `delay` are in seconds, `cpus`
    in cores, `rate` in bits per second; `sources` are the tasks from which its task is cut off (():
    all).
    """

    number: int
    kind: str
    task: str
    at: At
    lasts: float | None = None
    grace: float = STOP_GRACE_S
    cpus: float = SLOW_CPUS
    sources: tuple[str, ...] = ()
    delay: float = DELAY_S
    percent: float = LOSS_PERCENT
    rate: int = RATE

    def __str__(self) -> str:
        lasts = f" for {self.lasts:g} s" if self.lasts else ""
        apart = f" from {', '.join(self.sources)}" if self.sources else ""
        return f"fault {self.number} ({self.kind} of {self.task}{apart}{lasts} {self.at})"


@dataclass(frozen=True)
class Injected:
    """A fault that was injected at `time`; `saved_at` is the time of the newest checkpoint then.

    Both in Unix seconds; `saved_at` is None if there was no checkpoint yet.
    """

    fault: Planned
    time: float
    saved_at: float | None = None


def plan(scenario: Scenario, cluster: Cluster, seed: int) -> tuple[Planned, ...]:
    """All faults, in the scenario's order; a fault of a role becomes a fault of each of its
    tasks."""
    random = Random(seed)
    return tuple(
        Planned(
            number,
            fault.kind,
            task,
            fault.at,
            fault.lasts,
            STOP_GRACE_S if fault.grace is None else fault.grace,
            SLOW_CPUS if fault.cpus is None else fault.cpus,
            fault.sources or (),
            DELAY_S if fault.delay is None else fault.delay,
            LOSS_PERCENT if fault.percent is None else fault.percent,
            RATE if fault.rate is None else fault.rate,
        )
        for number, fault in enumerate(scenario.fault, 1)
        for task in _tasks(fault, cluster, random)
    )


def _tasks(fault: Fault, cluster: Cluster, random: Random) -> Sequence[str]:
    if fault.role is not None:
        return [task.name for task in cluster.of(fault.role)]
    if fault.task == RANDOM:
        names = candidates(fault.kind, cluster)
        return [random.choice([name for name in names if name not in (fault.sources or ())])]
    return [str(fault.task)]


def candidates(kind: str, cluster: Cluster) -> list[str]:
    """The names of the tasks that a random fault of this kind may hit."""
    spared = cluster.leader if KINDS[kind].spares_leader else None
    return [task.name for task in cluster.tasks if task is not spared]


def random_scenario(cluster: Cluster, seed: int, faults: int) -> Written:
    """A scenario with this number of random faults: any kind that every host allows, any task, any
    time.

    The run has to succeed nevertheless.
    """
    random = Random(f"faults {seed}")
    chosen = tuple(_any(random, cluster) for _ in range(faults))
    numbers = tuple(range(1, faults + 1))
    return Written(Scenario(fault=chosen, seed=seed), f"{faults} random faults", numbers=numbers)


def _any(random: Random, cluster: Cluster) -> Fault:
    kind = random.choice([kind for kind in KINDS.values() if kind.drawn and not kind.beside])
    keys: dict[str, object] = {
        "kind": kind.name,
        "task": random.choice(candidates(kind.name, cluster)),
    }
    steps, part = length_of(cluster).steps, random.uniform(EARLIEST, LATEST)
    if steps is not None:
        keys["at"] = {"step": max(1, round(part * steps))}
    else:
        keys["at"] = {"seconds": round(random.uniform(*RANDOM_SECONDS), 1)}
    if kind.lasts:
        keys["for"] = random.choice(kind.lasts)
    return Fault.model_validate(keys)


EVENTS = tuple(name for name in events.EVENTS if name not in ("usage", "end"))
"""The contract's events, except `end`, which is the last one, and `usage`, which never ends."""


def refuse(written: Written, cluster: Cluster) -> None:
    """Raises ManifestError with every problem of the scenario: invalid values, and conflicts with
    the cluster."""
    length = length_of(cluster)
    problems = list(written.problems)
    for number, fault in zip(written.numbers, written.scenario.fault, strict=True):
        found = _problems(f"fault {number}", fault, cluster, length)
        problems += ((number, problem) for problem in found)
    if problems:
        in_order = sorted(problems, key=itemgetter(0))
        raise ManifestError(written.source, [problem for _, problem in in_order])


def _problems(where: str, fault: Fault, cluster: Cluster, length: Length) -> Iterator[Problem]:
    names = [task.name for task in cluster.tasks]
    if fault.task is not None and fault.task not in (*names, RANDOM):
        rule = f"the cluster {cluster.name} has no such task"
        hint = proposal(fault.task, [*names, RANDOM])
        yield Problem(f"{where}: task", f'"{fault.task}"', rule, hint)
    roles = [role for role in ROLES if cluster.of(role)]
    if fault.kind == AWAY and (
        fault.task == cluster.leader.name or fault.role == cluster.leader.role
    ):
        rule = f"{cluster.leader.name} leads the job, and the others end without it"
        yield Problem(f"{where}: task", f'"{cluster.leader.name}"', rule, "name other tasks")
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
    """Yields problems of `from`: unknown tasks, or the task itself."""
    tasks = [task.name for task in cluster.of(fault.role)] if fault.role else [fault.task]
    for name in fault.sources or ():
        if name not in names:
            rule = f"the cluster {cluster.name} has no such task"
            yield Problem(f"{where}: from", f'"{name}"', rule, proposal(name, names))
        elif name in tasks:
            rule = "a task cannot be cut off from itself"
            yield Problem(f"{where}: from", f'"{name}"', rule, "name other tasks")
    if fault.task == RANDOM and set(fault.sources or ()) >= set(names):
        rule = "no task is left that could be cut off from all of these"
        yield Problem(f"{where}: from", "", rule, "name fewer tasks")


def _too_wide(where: str, fault: Fault, cluster: Cluster) -> Iterator[Problem]:
    """Yields a problem if the rate exceeds the task's bandwidth in the manifest."""
    for task in cluster.tasks if fault.kind == "bandwidth" else ():
        rate = RATE if fault.rate is None else fault.rate
        affected = fault.task == task.name or fault.role == task.role
        if affected and task.bandwidth is not None and rate >= task.bandwidth:
            rule = f"{task.name} has only {rate_text(task.bandwidth)} as it is"
            yield Problem(f"{where}: rate", f'"{rate_text(rate)}"', rule, "choose less")


def _too_late(where: str, at: At, cluster: Cluster, length: Length) -> Iterator[Problem]:
    """Yields a problem if the moment can only come after the job's end."""
    for key, last in (("step", length.steps), ("epoch", length.epochs)):
        value = getattr(at, key)
        if value is not None and last is not None and value >= last:
            rule = f"the job ends at {key} {last}: it would end before the fault"
            hint = f"choose one below {last}" if last > 1 else "let it train for longer"
            yield Problem(f"{where}.{key}", str(value), rule, hint)
    job = cluster.deadlines.job
    for key in ("seconds", "training"):
        value = getattr(at, key)
        if value is not None and value >= job:
            rule = f"the job ends within deadline.job, {job:g} s: it would end before the fault"
            yield Problem(f"{where}.{key}", f"{value:g}", rule, f"choose fewer than {job:g}")


def is_due(at: At, seen: RunState, now: float, saved: bool, calm_since: float | None) -> bool:
    """Whether the moment has come.

    Args:
        now: Unix seconds.
        saved: whether a checkpoint has been written in this run.
        calm_since: see the function `calm_since`; None until all earlier faults have happened.
    """
    if at.calm is not None:
        return calm_since is not None and now >= calm_since + at.calm
    if at.seconds is not None:
        ready = ready_at(seen)
        return ready is not None and now >= ready + at.seconds
    if at.training is not None:
        first = next(steps(seen), None)
        return first is not None and now >= first[0] + at.training
    if at.epoch is not None:
        epochs = [e.event.epoch for e in seen.entries if isinstance(e.event, Epoch)]
        return any(isinstance(epoch, int) and epoch >= at.epoch for epoch in epochs)
    if at.step is not None:
        return any(step >= at.step for _, step in steps(seen))
    return (
        saved
        if at.after == CHECKPOINT
        else any(name_of(entry.event) == at.after for entry in seen.entries)
    )


def ready_at(seen: RunState) -> float | None:
    """Unix time at which every task had answered for the first time, as the leader reports."""
    return next((e.time for e in seen.entries
                 if e.task == seen.leader and isinstance(e.event, Ready)), None)  # fmt: skip


def steps(seen: RunState) -> Iterator[tuple[float, int]]:
    """Time (Unix seconds) and global step of each of the leader's reports, oldest first."""
    for entry in seen.entries:
        event = entry.event
        if entry.task != seen.leader or not isinstance(event, Step | Epoch):
            continue
        if isinstance(event.step, int):
            yield entry.time, event.step


def progress(seen: RunState) -> Iterator[tuple[float, int]]:
    """The entries of `steps` that show progress: repeated steps of the same start are left out.

    A program that has returned to a checkpoint can report its first step before it trains again.
    """
    starts = starts_of(seen)
    reports = [(moment, step, bisect(starts, moment)) for moment, step in steps(seen)]
    for before, one, after in zip([None, *reports], reports, [*reports[1:], None], strict=False):
        moment, step, attempt = one
        begins = before is None or before[2] != attempt
        same = after if begins else before
        if same is None or same[1:] != (step, attempt):
            yield moment, step


def starts_of(seen: RunState) -> list[float]:
    """Unix seconds of each start of the leader's program."""
    return [e.time for e in seen.entries
            if e.task == seen.leader and isinstance(e.event, Start)]  # fmt: skip


def ended_at(seen: RunState) -> float | None:
    """Unix seconds of the leader's newest event; None without one since its last start."""
    end = seen.ended(seen.leader)
    return None if end is None else end[0]


def saved_at(output: Path, since: float, below: str = "") -> float | None:
    """Unix seconds at which the newest checkpoint below the directory was completed, None if none
    was after Unix time `since`. A later copy, as an evaluator makes of the best one, is no newer
    checkpoint."""
    first: dict[str, float] = {}
    for moment, name in completed_checkpoints(output, below):
        if moment >= since - CLOCK_SLACK_S:
            first[name] = min(moment, first.get(name, moment))
    return max(first.values(), default=None)


LOSSES = (Action.DIE, Action.OOM, Action.KILL, Action.START)
"""The engine's events that report a lost task, or a recovered one."""
TOLD = (Failure, Ready, Retry, Start, Silent, Heard)
CUT, SLOW = "cut", "slow"


def calm_since(seen: RunState, done: Sequence[Injected]) -> float | None:
    """The Unix time from which the cluster has recovered; None if it has not.

    It has recovered if every fault is over, every task runs, every server that was ready is so
    again, no task is silent, and the leader has reported progress since all of this became true.
    """
    ready = ready_at(seen)
    well = all(task.state in ALIVE for task in seen.tasks.values())
    if ready is None or not well or _starting(seen) or heartbeats.current(seen):
        return None
    trouble = [
        ready,
        *(over_at(one, seen) for one in done),
        *(event.time for event in seen.events if event.action in LOSSES),
        *(entry.time for entry in seen.entries if isinstance(entry.event, TOLD)),
    ]
    since = max(trouble)
    return next((moment for moment, _ in progress(seen) if moment > since), None)


def _starting(seen: RunState) -> bool:
    """Whether a server has been started again and is not ready yet: its leader may not know it yet,
    and would not notice a fault of it."""
    running = {name for name, task in seen.tasks.items() if task.state is State.RUNNING}
    running.discard(seen.leader)  # its own `ready` means that all servers answer
    return any(e.task in running and isinstance(e.event, Ready) for e in seen.entries)


def over_at(one: Injected, seen: RunState) -> float:
    """Unix time at which the fault ends: after its duration, or when its task is restarted.

    Infinity if neither is known. A cut-off container gets its network back at a restart only if the
    fault's end killed it; otherwise it restarts without a network. A slow container stays slow. A
    fault of the program alone may not end the container.
    """
    if one.fault.kind == SLOW or KINDS[one.fault.kind].at_once:
        return one.time + (one.fault.lasts or 0.0)
    lives = seen.lives_of(one.fault.task)
    kills = [time for life in lives for time in life.kills if time > one.time]
    disconnected = one.fault.kind == CUT and not one.fault.sources
    since = min(kills, default=inf) if disconnected else one.time
    starts = (time for time in seen.starts(one.fault.task) if time > since)
    return min(one.time + (one.fault.lasts or inf), next(starts, inf))
