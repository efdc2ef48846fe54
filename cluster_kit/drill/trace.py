"""Reads a trace of preemptions, a CSV file, and makes a scenario of it for a cluster. Pure.

A trace says when machines left and came back, in one of two forms: a row for each event, or a row
for each absence. docs/drills.md has both, and how published traces are turned into them.
"""

from __future__ import annotations

import csv
import errno
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from cluster_kit.drill.scenario_file import AWAY, Fault, Scenario, Written
from cluster_kit.errors import ManifestError, Problem, UsageError, shortened
from cluster_kit.resolved import Cluster
from cluster_kit.roles import PS, ROLES, WORKER
from cluster_kit.util.nearest import proposal

LEAD_S = 15.0
"""Seconds of undisturbed training before the first absence: they show the undisturbed rate."""
SHORTEST_S = 0.1
"""No absence is shorter than this after the speedup."""
MOST = 97
"""Absences that one run can survive: each costs at least one of at most 100 `retries`."""
RETRIES_EACH, SPARE_RETRIES = 3, 3
"""Restarts of one task that an absence may cost: its own, and those of a program that lost a peer;
and restarts for other reasons."""
MOST_RETRIES = 100
"""The highest value of `retries`."""
LARGEST = 16 << 20
"""Bytes of a trace."""
MOST_PROBLEMS = 20
MOST_COLUMNS = 100

TIME, MACHINE, EVENT, LEFT, BACK = "time", "machine", "event", "left", "back"
UNITS: Mapping[str, float] = {"": 1.0, "_ms": 1e-3, "_us": 1e-6}
"""Endings of the columns that are times, and the seconds of their unit."""
_NAMES = {
    "timestamp": TIME, "node": MACHINE, "instance": MACHINE, "machine_id": MACHINE,
    "event_type": EVENT, "operation": EVENT,
}  # fmt: skip
LEFT_WORDS = ("left", "remove", "removed", "preempted", "terminated", "1")
BACK_WORDS = ("back", "add", "added", "started", "0")
FORMS = ((TIME, MACHINE, EVENT), (MACHINE, LEFT, BACK))
EXPECTED = "`time,machine,event` (a row for each event) or `machine,left,back` (for each absence)"


@dataclass(frozen=True)
class Event:
    """A machine left, or came (back), at `time` in seconds; `line` is that of the file."""

    line: int
    time: float
    machine: str
    left: bool


@dataclass(frozen=True)
class Trace:
    """The events of a trace in order of time."""

    source: str
    events: tuple[Event, ...]

    @property
    def retries(self) -> int:
        """The `retries` with which a run survives the replay."""
        departures = sum(event.left for event in self.events)
        return min(MOST_RETRIES, departures * RETRIES_EACH + SPARE_RETRIES)


@dataclass(frozen=True)
class Absence:
    """A task without its machine; times in seconds since the beginning of the replayed part.

    `back` is None if no machine came again.
    """

    task: str
    machine: str
    left: float
    back: float | None


@dataclass(frozen=True)
class Replayed(Written):
    """The scenario of a trace.

    `absences` has the absence of each fault, in the trace's own time; `length_s` is the time from
    the trace's beginning to its last event. `notes` say what of the trace is not replayed.
    """

    speedup: float = 1.0
    absences: tuple[Absence, ...] = ()
    length_s: float = 0.0
    notes: tuple[str, ...] = ()


def load(path: Path) -> Trace:
    """The trace in a file; raises ManifestError with each problem's line, value and rule."""
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a file")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        text = content.decode("utf-8-sig") if len(content) <= LARGEST else ""
    except (OSError, UnicodeDecodeError) as error:
        rule = getattr(error, "strerror", None) or "not a text file in UTF-8"
        hint = "give a CSV file; docs/drills.md#a-trace has an example"
        raise ManifestError(str(path), [Problem(path.name, "", rule, hint)]) from None
    if len(content) > LARGEST:
        rule, hint = f"has more than {LARGEST >> 20} MiB", "keep the part to replay (`head`)"
        raise ManifestError(str(path), [Problem(path.name, "", rule, hint)])
    return parse(text, str(path))


def parse(text: str, source: str) -> Trace:
    """The trace in this text; raises ManifestError with all its problems."""
    problems: list[Problem] = []
    try:
        rows = [
            (number, [cell.strip() for cell in cells])
            for number, cells in _numbered(text)
            if any(cell.strip() for cell in cells) and not cells[0].lstrip().startswith("#")
        ]
    except csv.Error as error:
        raise ManifestError(source, [Problem("trace", "", f"not CSV: {error}", EXPECTED)]) from None
    if not rows:
        hint = f"the first line names the columns: {EXPECTED}"
        raise ManifestError(source, [Problem("trace", "", "has no line", hint)])
    form, units = _columns(rows[0], problems)
    events: list[Event] = []
    if form:
        reader = _events if EVENT in form else _absences
        events = list(reader(rows[1:], form, units, problems))
    if not problems and not any(event.left for event in events):
        rule = "no machine leaves"
        problems.append(Problem("trace", "", rule, f"an event is one of {', '.join(LEFT_WORDS)}"))
    if problems:
        raise ManifestError(source, shortened(problems, MOST_PROBLEMS, "trace"))
    return Trace(source, tuple(sorted(events, key=lambda event: (event.time, event.line))))


def _numbered(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), strict=True)
    for cells in reader:
        yield reader.line_num, cells


def _columns(
    row: tuple[int, list[str]], problems: list[Problem]
) -> tuple[list[str], dict[str, float]]:
    """The columns' names, and the unit of each time in seconds; [] if they are invalid."""
    line, cells = row
    where = f"line {line}"
    if any(_number(cell) is not None for cell in cells):
        hint = (
            f"the columns are {EXPECTED}; for Oobleck's files put `time_ms,event,machine` in front"
        )
        problems.append(Problem(where, _shown(",".join(cells)), "is not a line of names", hint))
        return [], {}
    if len(cells) > MOST_COLUMNS:
        rule, hint = f"has more than {MOST_COLUMNS} columns: {len(cells)}", f"give {EXPECTED}"
        problems.append(Problem(where, _shown(",".join(cells)), rule, hint))
        return [], {}
    form: list[str] = []
    units: dict[str, float] = {}
    for cell in cells:
        name, unit = cell.lower(), 1.0
        for ending, seconds in UNITS.items():
            base = name.removesuffix(ending)
            if ending and base != name and base in (TIME, LEFT, BACK, "timestamp"):
                name, unit = base, seconds
        name = _NAMES.get(name, name)
        form.append(name)
        units[name] = unit
    known = (TIME, MACHINE, EVENT, LEFT, BACK)
    for cell, name in zip(cells, form, strict=True):
        if name not in known:
            hint = f"{proposal(cell, known)}; leave other columns out, as with `cut -d, -f1-3`"
            problems.append(Problem(where, _shown(cell), "no such column", hint))
        elif form.count(name) > 1:
            problems.append(Problem(where, _shown(cell), "this column is there twice", EXPECTED))
    if not problems and sorted(form) not in [sorted(one) for one in FORMS]:
        rule = "these columns are not those of a trace"
        problems.append(Problem(where, _shown(",".join(cells)), rule, f"give {EXPECTED}"))
    return ([], {}) if problems else (form, units)


def _cells(
    rows: Sequence[tuple[int, list[str]]], form: Sequence[str], problems: list[Problem]
) -> Iterator[tuple[int, dict[str, str]]]:
    for line, cells in rows:
        if len(cells) != len(form):
            rule = f"has {len(cells)} values, and there are {len(form)} columns"
            hint = f"write {','.join(form)}"
            problems.append(Problem(f"line {line}", _shown(",".join(cells)), rule, hint))
            continue
        values = dict(zip(form, cells, strict=True))
        if not values[MACHINE]:
            hint = "write its name"
            problems.append(Problem(f"line {line}: machine", "", "is missing", hint))
            continue
        yield line, values


class _Times:
    """Reads times; all of a file must be of one kind."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._kind = ""

    def read(self, line: int, column: str, text: str, unit: float) -> float | None:
        """Seconds; None with a new problem if the text is no time."""
        where, hint = f"line {line}: {column}", "write seconds (90.5) or ISO 8601 times"
        value, kind = _number(text), "seconds"
        if value is None:
            try:
                value, kind = datetime.fromisoformat(text).timestamp(), "an ISO time"
            except (ValueError, OverflowError, OSError):
                self._problems.append(Problem(where, _shown(text), "is not a time", hint))
                return None
        else:
            value *= unit
        if not math.isfinite(value) or value < 0 or value > 1e12:
            self._problems.append(Problem(where, _shown(text), "is not a time from 0 on", hint))
            return None
        if self._kind and kind != self._kind:
            rule = f"is {kind}, and the times before it are not"
            self._problems.append(Problem(where, _shown(text), rule, "write all times alike"))
            return None
        self._kind = kind
        return value


def _events(
    rows: Sequence[tuple[int, list[str]]],
    form: Sequence[str],
    units: Mapping[str, float],
    problems: list[Problem],
) -> Iterator[Event]:
    """Yields the events of the first form; a machine whose first event is its departure was there
    from the beginning."""
    times = _Times(problems)
    last: dict[str, Event] = {}
    before: Event | None = None
    for line, values in _cells(rows, form, problems):
        time = times.read(line, TIME, values[TIME], units[TIME])
        word = values[EVENT].lower()
        if word not in LEFT_WORDS + BACK_WORDS:
            hint = f"write one of {', '.join(LEFT_WORDS)}; or {', '.join(BACK_WORDS)}"
            rule = "is no event of a trace"
            problems.append(Problem(f"line {line}: event", _shown(values[EVENT]), rule, hint))
            continue
        if time is None:
            continue
        event = Event(line, time, values[MACHINE], word in LEFT_WORDS)
        if before is not None and time < before.time:
            rule = f"is earlier than line {before.line}"
            hint = "sort the lines by time: `sort -t, -k1,1n`, without the first line"
            problems.append(Problem(f"line {line}: time", _shown(values[TIME]), rule, hint))
            continue
        known = last.get(event.machine)
        if known is not None and known.left == event.left:
            does = "leaves, and has left" if event.left else "comes, and has come"
            rule = f"{does} already (line {known.line})"
            missing = "return" if event.left else "departure"
            hint = f"take one of the two lines out, or write the {missing} between them"
            problems.append(Problem(f"line {line}: machine", _shown(event.machine), rule, hint))
            continue
        last[event.machine] = before = event
        yield event


def _absences(
    rows: Sequence[tuple[int, list[str]]],
    form: Sequence[str],
    units: Mapping[str, float],
    problems: list[Problem],
) -> Iterator[Event]:
    """Yields the events of the second form; an empty `back` means that it never comes back."""
    times = _Times(problems)
    known: dict[str, list[tuple[float, float, int]]] = {}
    for line, values in _cells(rows, form, problems):
        left = times.read(line, LEFT, values[LEFT], units[LEFT])
        back: float | None = math.inf
        if values[BACK]:
            back = times.read(line, BACK, values[BACK], units[BACK])
        if left is None or back is None:
            continue
        if back <= left:
            rule = f"comes back before it leaves ({values[LEFT]})"
            hint = "exchange the two times, or leave the second one out: it never comes back"
            problems.append(Problem(f"line {line}: back", _shown(values[BACK]), rule, hint))
            continue
        machine = values[MACHINE]
        known.setdefault(machine, []).append((left, back, line))
        yield Event(line, left, machine, True)
        if back < math.inf:
            yield Event(line, back, machine, False)
    for machine, absences in known.items():
        _refuse_overlaps(machine, absences, problems)


def _refuse_overlaps(
    machine: str, absences: list[tuple[float, float, int]], problems: list[Problem]
) -> None:
    """Add a problem for each absence that begins before the one before it has ended."""
    absences.sort()
    for (_, ended, line), (begun, _, other) in pairwise(absences):
        if begun < ended:
            first, second = sorted((line, other))
            rule, hint = f"is away already (line {first})", "make one absence of the two lines"
            problems.append(Problem(f"line {second}: machine", _shown(machine), rule, hint))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= 60 else f'"{text[:59]}…"'


def tasks_of(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """The tasks that may be preempted: these roles and tasks; the workers that do not lead if there
    are no names.

    Raises:
        UsageError: a name is not known, leads the job, or no task is left.
    """
    leader = cluster.leader.name
    roles = [role for role in ROLES if cluster.of(role)]
    known = [*roles, *(task.name for task in cluster.tasks)]
    chosen: list[str] = []
    for name in names or (WORKER.name,):
        if names and name not in known:
            raise UsageError(f"--preempt {name}: {cluster.name} has none", proposal(name, known))
        if name == leader or (names and name == cluster.leader.role and len(cluster.of(name)) == 1):
            raise UsageError(
                f"--preempt {name}: it leads the job, and the others end without it",
                "name other tasks: a provider's on-demand machine runs the leader",
            )
        chosen += [one.name for one in cluster.of(name)] if name in ROLES else [name]
    found = [name for name in dict.fromkeys(chosen) if name != leader]
    if not found:
        others = [role for role in roles if role != cluster.leader.role]
        more = len(cluster.of(WORKER.name)) + 1
        raise UsageError(
            f"{cluster.name} has no worker that may be preempted: {leader} leads the job",
            f"give it another worker (`--workers {more}`)"
            + (f", or name tasks: `--preempt {others[0]}`" if others else ""),
        )
    return found


def replayed(trace: Trace, cluster: Cluster, speedup: float, names: Sequence[str] = ()) -> Replayed:
    """The scenario that replays a trace on a cluster.

    Each task that may be preempted has one machine: the machines of the trace take the tasks in the
    order in which they come. When a task's machine has left, the next one that comes and has no
    task takes it.

    Raises:
        UsageError: no task may be preempted, or no absence is left to replay.
        ManifestError: an absence does not fit the cluster.
    """
    tasks = tasks_of(cluster, names)
    absences, unused, began = _assigned(trace, tasks)
    if not absences:
        raise UsageError(
            f"{trace.source}: no machine leaves that has one of the tasks {', '.join(tasks)}",
            "give more tasks (`--workers`, `--preempt`), or another trace",
        )
    notes = []
    if unused:
        notes.append(
            f"{unused} {'machine of the trace is' if unused == 1 else 'machines of the trace are'} "
            f"not used: {', '.join(tasks)} had one already (more `--workers` use more)"
        )
    idle = [task for task in tasks if task not in {one.task for one in absences}]
    if idle:
        keep = "keeps its machine" if len(idle) == 1 else "keep their machines"
        notes.append(f"{', '.join(idle)} {keep}: no other one of the trace leaves")
    if len(absences) > MOST:
        notes.append(f"only the first {MOST} of {len(absences)} absences are replayed")
        absences = absences[:MOST]
    shift = max(0.0, LEAD_S - absences[0].left / speedup)
    faults = [_fault(one, speedup, shift) for one in absences]
    problems = [
        problem
        for number, fault in enumerate(faults, 1)
        for problem in (
            *_too_late(number, fault, speedup, cluster),
            *_too_long(number, fault, absences[number - 1], cluster),
        )
    ]
    if problems:
        raise ManifestError(trace.source, shortened(problems, MOST_PROBLEMS, "trace"))
    return Replayed(
        Scenario(fault=tuple(faults)),
        trace.source,
        numbers=tuple(range(1, len(faults) + 1)),
        speedup=speedup,
        absences=tuple(absences),
        length_s=trace.events[-1].time - began,
        notes=tuple(notes),
    )


def _assigned(trace: Trace, tasks: Sequence[str]) -> tuple[list[Absence], int, float]:
    """(all absences of the tasks, how many machines have no task, the beginning in seconds)."""
    first: dict[str, Event] = {}
    for event in trace.events:
        first.setdefault(event.machine, event)
    machine_of: dict[str, str] = {}
    away: dict[str, Absence] = {}
    absences: list[Absence] = []
    unused: set[str] = set()
    began = trace.events[0].time
    free = list(tasks)

    def comes(machine: str, time: float) -> None:
        own = (task for task, absence in away.items() if absence.machine == machine)
        task = next(own, next(iter(away), ""))
        if task:
            absences.append(replace(away.pop(task), back=time))
            machine_of[machine] = task
        elif free:
            machine_of[machine] = free.pop(0)
        else:
            unused.add(machine)

    for machine, event in first.items():
        if event.left:
            comes(machine, began)
    has_left = False
    for event in trace.events:
        if not event.left:
            comes(event.machine, event.time)
            if event.machine in machine_of:
                unused.discard(event.machine)
                began = began if has_left else event.time
        elif task := machine_of.pop(event.machine, ""):
            has_left = True
            away[task] = Absence(task, event.machine, event.time, None)
    absences += away.values()
    absences.sort(key=lambda one: one.left)
    moved = [
        replace(one, left=one.left - began, back=None if one.back is None else one.back - began)
        for one in absences
    ]
    return moved, len(unused), began


def _fault(absence: Absence, speedup: float, shift: float) -> Fault:
    keys: dict[str, object] = {"kind": AWAY, "task": absence.task}
    keys["at"] = {"training": shift + absence.left / speedup}
    if absence.back is not None:
        keys["for"] = max(SHORTEST_S, (absence.back - absence.left) / speedup)
    return Fault.model_validate(keys)


def _too_late(number: int, fault: Fault, speedup: float, cluster: Cluster) -> Iterator[Problem]:
    """Yields a problem if the job's deadline passes before the absence."""
    begins, limit = fault.at.training or 0.0, cluster.deadlines.job
    if begins >= limit:
        rule = f"it begins after deadline.job, {limit:g} s: the job would end before it"
        faster = f"give a larger --speedup than {speedup:g}"
        hint = f"{faster}, or `--set deadline.job={math.ceil(begins) + 1}s` or more"
        yield Problem(f"absence {number}", f"{begins:.0f} s", rule, hint)


def _too_long(number: int, fault: Fault, absence: Absence, cluster: Cluster) -> Iterator[Problem]:
    """Yields a problem if the other tasks do not wait so long for this one."""
    where, limit = f"absence {number}", cluster.deadlines.start
    if not stops(cluster, absence.task) or (fault.lasts is not None and fault.lasts < limit):
        return
    if fault.lasts is None:
        rule = f"{absence.machine} never comes back, and without {absence.task} the job ends after"
        hint = "write its return into the trace, or take the line out"
        yield Problem(where, "", f"{rule} deadline.start, {limit:g} s", hint)
        return
    rule = f"{absence.machine} is away longer than deadline.start, {limit:g} s: the job would end"
    longer = f"`--set deadline.start={math.ceil(fault.lasts) + 1}s`"
    hint = f"give a larger --speedup, or {longer} or more"
    yield Problem(where, f"{fault.lasts:g} s", rule, hint)


def stops(cluster: Cluster, task: str) -> bool:
    """Whether the training stops while the task is away: it serves variables, or its gradient is
    needed for each update."""
    (role,) = (one.role for one in cluster.tasks if one.name == task)
    return role == PS.name or (ROLES[role].trains and is_synchronous(cluster))


def is_synchronous(cluster: Cluster) -> bool:
    """Whether each update needs the gradients of all workers, as far as the arguments show it."""
    if not cluster.of(PS.name):
        return True
    arguments = cluster.leader.command
    follows = dict(pairwise(arguments))
    return follows.get("--update") == "sync" or "--update=sync" in arguments
