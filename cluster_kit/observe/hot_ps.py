"""Finds a ps that slows a job down because it is overloaded, and advises what to change. Pure.

The cause is an uneven distribution of variables, or a variable so large that its ps does most of
the work.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from rich.filesize import decimal

from cluster_kit.contract.events import End, Event, Phase, Placement, Start, Step, Worked
from cluster_kit.contract.times import STRAGGLER_S
from cluster_kit.errors import TOML_STYLE, Setting
from cluster_kit.observe.progress import HUGE, Entry, number, words
from cluster_kit.observe.usage import Sample, rates_between
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.resolved import Cluster
from cluster_kit.roles import PS, ROLES

WINDOW_S, PARTS = STRAGGLER_S, 4
"""A rule must hold in each part of a window: a single burst is no evidence."""
LOOK_S = 1.0
LONGEST_GAP_S = 8.0
"""The maximum seconds between two samples of a task; a task writes one at least every five
seconds."""
FACTOR = 1.5
"""A ps is hot if it transfers this factor times the mean bytes of the others, or uses this factor
times their CPUs."""
LINK_REACHED, CPU_REACHED = 0.9, 0.8
"""The minimum share of its limit that a hot ps uses. A link is counted in both directions together:
a ps that first receives and then sends uses half of each."""
OTHERS_LINK = 0.8
"""If another task uses its link as much as this share of the ps's use, splitting a variable does
not help."""
BUSY_CPUS = 0.9
"""Without a CPU limit, a hot ps is the busiest task and uses at least this number of CPUs."""
BOTH_WAYS = 0.2
"""A program without reported steps trains if its ps both receive and send: the minimum of the
smaller by the larger."""
BANDWIDTH, CPU_LIMIT, CPUS = "bandwidth-limit", "cpu-limit", "cpus"
FAT = 0.5
"""The minimum share of its ps's bytes that makes a variable the cause."""
ALL_OF_IT = 0.9
"""With a larger share, a further ps would get nearly as many bytes."""
SMALLEST_SPLIT = 2 * 256 * 1024
"""The bytes from which MinSizePartitioner, whose smallest part has 256 KiB, splits a variable."""
MOST_VARIABLES, MOST_WORDS, MOST_TURNS, MOST_SHOWN, LONGEST_NAME = 1_000, 12, 2_000, 3, 60
MOST_LETTERS = 300
"""The maximum number of characters of a variable's name that are kept, from its end."""
_PART = re.compile(r"(^|/)part_\d+$")
_REST = "others"
"""The name under which a placement adds up the smallest variables."""


@dataclass(frozen=True)
class Limits:
    """The limits of a task in CPUs and bits per second; None: no limit."""

    cpus: float | None = None
    bandwidth: float | None = None


@dataclass(frozen=True)
class Load:
    """The load of a task: busy CPUs, and bytes per second (sent plus received)."""

    cpus: float
    bps: float
    both_ways: float = 0.0
    """The smaller of the two directions, divided by the larger."""


@dataclass(frozen=True)
class Hot:
    """A ps that slowed the job down from `since` until `until` (Unix seconds).

    `seconds` is the total time during which it did. `cause` is bandwidth-limit, cpu-limit, or cpus
    if the ps has no CPU limit; `lasts`: whether it still slows the job. `message` is a sentence.
    """

    task: str
    since: float
    until: float
    seconds: float
    cause: str
    message: str
    lasts: bool = True


Variables = Mapping[str, Mapping[str, float]]
"""The bytes of each variable, by name, for each ps."""


@dataclass(frozen=True)
class Loads:
    """The observed loads of all ps of a run, and of the tasks that use them.

    `others` are the tasks that use the ps, `turns` the times when the leader began or stopped
    training, `hot` the ps that slow or slowed the job down. `own`: the program is the user's;
    `coordinated`: a coordinator runs it.
    """

    leader: str = ""
    ps: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    own: bool = False
    coordinated: bool = False
    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    turns: tuple[tuple[float, bool | None], ...] = ()
    """True: trains; False: does not train; None: has started, and may report no steps."""
    variables: Variables = field(default_factory=dict)
    hot: Mapping[str, Hot] = field(default_factory=dict)
    looked_at: float = 0.0

    @classmethod
    def of(cls, cluster: Cluster) -> Loads:
        """Return the Loads of a cluster before any observation."""
        used = [task for task in cluster.tasks if ROLES[task.role].trains]
        leader = cluster.leader
        return cls(
            leader=leader.name,
            ps=tuple(task.name for task in used if task.role == PS.name),
            others=tuple(task.name for task in used if task.role != PS.name),
            limits={task.name: Limits(task.cpus, task.bandwidth) for task in used},
            own=leader.command[1:2] != () and leader.command[1] not in PROGRAMS,
            coordinated=cluster.style == "coordinator",
        )

    @property
    def lasting(self) -> Mapping[str, Hot]:
        """Return the ps that slow the job down now, by name."""
        return {name: one for name, one in self.hot.items() if one.lasts}

    def with_entry(self, entry: Entry) -> Loads:
        """Return these Loads after one more entry; only the leader's entries change them."""
        if not self.ps or entry.task != self.leader:
            return self
        if isinstance(entry.event, Placement):
            return replace(self, variables=variables_of(entry.event, self.ps))
        before = self.turns[-1][1] if self.turns else False
        now = _turn(entry.event, before)
        if now is before or len(self.turns) >= MOST_TURNS:
            return self
        return replace(self, turns=(*self.turns, (entry.time, now)))

    def with_sample(self, sample: Sample) -> Loads:
        """Return these Loads after one more sample of any task."""
        if not self.ps or sample.task not in self.limits:
            return self
        kept = self.samples.get(sample.task, ())
        if kept and (sample.time <= kept[-1].time or rates_between(kept[-1], sample) is None):
            kept = ()  # the task was restarted, or silent for a long time
        first = bisect_right(kept, sample.time - WINDOW_S - LONGEST_GAP_S, key=lambda one: one.time)
        samples = {**self.samples, sample.task: (*kept[first:], sample)}
        now = replace(self, samples=samples)
        if sample.task not in self.ps or sample.time < self.looked_at + LOOK_S:
            return now
        fresh = [kept[-1].time for kept in samples.values()]
        since = sample.time - LONGEST_GAP_S
        until = min(time for time in fresh if time >= since)
        return replace(now, looked_at=sample.time).looked(until)

    def looked(self, now: float) -> Loads:
        """Return these Loads with `hot` updated from the window that ends at `now`."""
        hot = dict(self.hot)
        windows = self._windows(now)
        for name in self.ps:
            holds = self._holds(name, windows, now)
            before = hot.get(name)
            if holds is None:
                if before and before.lasts and now > before.until + WINDOW_S:
                    hot[name] = replace(before, lasts=False)
            elif all(holds):
                cause = next(one for one in holds if one)
                mean = {task: _mean(parts) for task, parts in windows.items()}
                text = self.sentence(name, cause, mean)
                hot[name] = _longer(before, name, now, cause, text)
            elif before and before.lasts and not any(holds):
                hot[name] = replace(before, lasts=False)
        return self if hot == self.hot else replace(self, hot=hot)

    def _windows(self, now: float) -> dict[str, list[Load]]:
        """Return each task's load in each part of a window; tasks without samples are omitted."""
        borders = [now - WINDOW_S + WINDOW_S * part / PARTS for part in range(PARTS + 1)]
        loads = {task: loads_between(kept, borders) for task, kept in self.samples.items()}
        return {task: parts for task, parts in loads.items() if parts is not None}

    def _holds(
        self, name: str, windows: Mapping[str, Sequence[Load]], now: float
    ) -> list[str] | None:
        """Return for each part of a window why the ps slows the job ("": no); None if unknown."""
        trains = self._trains(now)
        if trains is False or any(one not in windows for one in self.ps):
            return None
        own = windows[name]
        if trains is None and max(part.both_ways for part in own) < BOTH_WAYS:
            return None
        causes = []
        for number_of_part, load in enumerate(own):
            at_once = {task: parts[number_of_part] for task, parts in windows.items()}
            causes.append(self._cause(name, load, at_once))
        return causes if len(set(filter(None, causes))) <= 1 else [""] * len(causes)

    def _cause(self, name: str, load: Load, at_once: Mapping[str, Load]) -> str:
        limits = self.limits[name]
        beside = [at_once[one] for one in self.ps if one != name]
        users = {one: at_once[one] for one in self.others if one in at_once}
        alone = not beside
        bytes_, cpus = (
            sum(one.bps for one in beside) / max(1, len(beside)),
            sum(one.cpus for one in beside) / max(1, len(beside)),
        )
        link = _link(load, limits)
        busiest = max((_link(one, self.limits[task]) for task, one in users.items()), default=0.0)
        if (
            (alone or load.bps >= FACTOR * bytes_)
            and link >= LINK_REACHED
            and busiest < OTHERS_LINK * link
        ):
            return BANDWIDTH
        if not alone and load.cpus < FACTOR * cpus:
            return ""
        if limits.cpus:
            return CPU_LIMIT if load.cpus >= CPU_REACHED * limits.cpus else ""
        idler = bool(users) and all(one.cpus < load.cpus for one in users.values())
        return CPUS if not alone and idler and load.cpus >= BUSY_CPUS else ""

    def _trains(self, now: float) -> bool | None:
        """Return whether the leader trained in the whole window; None if it reports no steps."""
        begin = now - WINDOW_S
        at = bisect_right(self.turns, begin, key=lambda turn: turn[0])
        states = [self.turns[at - 1][1] if at else False]
        states += [state for time, state in self.turns[at:] if time <= now]
        return False if False in states else None if None in states else True

    def sentence(self, name: str, cause: str, loads: Mapping[str, Load]) -> str:
        """Return a sentence: what to change, why, and the load of each ps.

        Args:
            loads: the mean load of each task.
        """
        parts = [self._remedy(name, loads), f"{name} holds the job up: {self._why(name, cause)}"]
        shown = [name, *(one for one in self.ps if one != name)][: MOST_SHOWN + 1]
        parts += [f"{one}: {self._figures(one, loads[one])}" for one in shown]
        if (more := len(self.ps) - len(shown)) > 0:
            parts.append(f"and {more} more ps")
        return "; ".join(parts)

    def _remedy(self, name: str, loads: Mapping[str, Load]) -> str:
        count = len(self.ps) + 1
        more = f"use {count} ps ({TOML_STYLE.setting(Setting(PS.name, count), '')})"
        if len(self.ps) == 1:
            return f"{name} is the only ps: {more}"
        if (found := fattest(self.variables.get(name, {}))) is None or found[1] < FAT:
            everything = sum(loads[one].bps for one in self.ps)
            share = loads[name].bps / everything if everything else 0.0
            return f"{name} moves {share:.0%} of the bytes of all ps: {more}"
        variable, share = found
        is_fat = f"{bounded(variable)} is {share:.0%} of {name}'s bytes"
        if not self.own or _PART.search(variable):
            return f"{is_fat}: {more}"
        if self.variables[name][variable] < SMALLEST_SPLIT:
            return is_fat if share >= ALL_OF_IT else f"{is_fat}: {more}"
        shards = max(2, len(self.ps))
        tool = f"`MinSizePartitioner(max_shards={shards})`" if self.coordinated else "a partitioner"
        return f"{is_fat}: split it ({tool})" + ("" if share >= ALL_OF_IT else f" or {more}")

    def _why(self, name: str, cause: str) -> str:
        limits = self.limits[name]
        if cause == BANDWIDTH:
            return f"its bandwidth limit of {(limits.bandwidth or 0) / 1e6:g} Mbit/s is reached"
        if cause == CPU_LIMIT:
            return f"its CPU limit of {limits.cpus:g} is reached"
        return "no other task uses so much CPU"

    def _figures(self, name: str, load: Load) -> str:
        told = self.variables.get(name)
        held = f", {decimal(round(sum(told.values())))} of variables" if told else ""
        return f"{decimal(round(load.bps))}/s, {load.cpus:.2f} CPUs{held}"


def _turn(event: Event, before: bool | None) -> bool | None:
    """Return whether the leader trains after an event; None: unknown, it reports no steps."""
    if isinstance(event, Start):
        return None
    if isinstance(event, End):
        return False
    if isinstance(event, Phase):
        return event.name == "training"
    return True if before is None and isinstance(event, Step | Worked) else before


def variables_of(event: Placement, ps: Sequence[str]) -> Variables:
    """Return the variables of these ps, by ps; invalid entries are ignored."""
    held: dict[str, dict[str, float]] = {}
    told = event.variables if isinstance(event.variables, list) else []
    for one in told[:MOST_VARIABLES]:
        if not isinstance(one, dict):
            continue
        name, on, size = words(one.get("name")), one.get("on"), number(one.get("bytes"))
        if name and on in ps and size is not None and 0 <= size < HUGE:
            of_ps = held.setdefault(str(on), {})
            key = name[-MOST_LETTERS:]
            of_ps[key] = of_ps.get(key, 0.0) + size
    return held


def fattest(held: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the largest variable and its share of the bytes; None if there are no variables.

    The slots that an optimizer keeps for a variable are on the same ps and are not counted.
    """
    weights = dict(without_slots(held))
    everything = sum(weights.values())
    named = {name: size for name, size in weights.items() if name != _REST}
    if not named or not everything:
        return None
    largest = max(named, key=lambda name: named[name])
    return largest, named[largest] / everything


def without_slots(held: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield all variables except slots: named after another of the same size (`Adam/m/kernel`)."""
    words_of = {name: _words(name) for name in held}
    known = {(words_of[name], size) for name, size in held.items()}
    for name, size in held.items():
        if not any((part, size) in known for part in _parts(words_of[name])):
            yield name, size


def _words(name: str) -> tuple[str, ...]:
    return tuple(re.split(r"[/_]+", name, maxsplit=MOST_WORDS))


def _parts(of_name: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the sequences of words that can be the name of another variable.

    `kernel` is not a part of `kernel_1`, since numbers distinguish variables of the same name.
    """
    count = len(of_name)
    for begin in range(count):
        for end in range(begin + 1, count + 1):
            rest = (*of_name[:begin], *of_name[end:])
            if any(not word.isdigit() for word in rest):
                yield tuple(of_name[begin:end])


def loads_between(samples: Sequence[Sample], borders: Sequence[float]) -> list[Load] | None:
    """Return the loads between these times; None if samples are missing.

    Counters are interpolated linearly between two samples.
    """
    if not samples or samples[0].time > borders[0] or samples[-1].time < borders[-1]:
        return None
    gaps = (later.time - one.time for one, later in pairwise(samples))
    if max(gaps, default=LONGEST_GAP_S + 1) > LONGEST_GAP_S:
        return None
    times = [one.time for one in samples]
    counts = [_counts(samples, times, border) for border in borders]
    loads = []
    for (begin, before), (end, later) in pairwise(zip(borders, counts, strict=True)):
        seconds = end - begin
        cpus, received, sent = ((b - a) / seconds for a, b in zip(before, later, strict=True))
        most = max(received, sent)
        both_ways = min(received, sent) / most if most else 0.0
        loads.append(Load(cpus, received + sent, both_ways))
    return loads


def _counts(
    samples: Sequence[Sample], times: Sequence[float], at: float
) -> tuple[float, float, float]:
    """Return CPU seconds, bytes received and bytes sent at `at`, within the samples' times."""
    after = min(bisect_right(times, at), len(samples) - 1)
    later, before = samples[after], samples[max(0, after - 1)]
    seconds = later.time - before.time
    share = (at - before.time) / seconds if seconds else 0.0
    pairs = (
        (before.cpu_s, later.cpu_s),
        (before.rx_bytes, later.rx_bytes),
        (before.tx_bytes, later.tx_bytes),
    )
    cpu_s, received, sent = (a + (b - a) * share for a, b in pairs)
    return cpu_s, received, sent


def _link(load: Load, limits: Limits) -> float:
    """Return the share of its link's limit that a task uses, both directions together."""
    return load.bps * 8 / limits.bandwidth if limits.bandwidth else 0.0


def _mean(parts: Sequence[Load]) -> Load:
    count = len(parts)
    return Load(sum(one.cpus for one in parts) / count, sum(one.bps for one in parts) / count)


def _longer(before: Hot | None, task: str, now: float, cause: str, message: str) -> Hot:
    """Return `before`, extended by a window in which the ps slowed the job down."""
    if before is None:
        return Hot(task, now - WINDOW_S, now, WINDOW_S, cause, message)
    more = now - before.until if before.lasts else WINDOW_S
    seconds = min(before.seconds + max(0.0, more), now - before.since)
    return Hot(task, before.since, now, seconds, cause, message)


def bounded(name: str) -> str:
    """Return a variable's name, shortened to its end, which is more specific."""
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"


def note(hot: Hot) -> str:
    """Return a sentence about a ps that slowed the job down; times are the host's local time."""
    since, until = (
        datetime.fromtimestamp(time).strftime("%H:%M:%S") for time in (hot.since, hot.until)
    )
    return f"{hot.message} (from {since} to {until}, {hot.seconds:.0f} s)"
