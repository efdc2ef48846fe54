"""Reads the progress files `/output/progress/<task>.jsonl` (see images/trainer/README.md).

Any program of the run can write anything into these files. This module returns events of the
contract with bounded values of checked types: finite times, names of the run's tasks, and figures
that are numbers. No other module parses a line.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from cluster_kit.contract.events import (
    CHECKS,
    KINDS,
    TASK_NAME,
    End,
    Epoch,
    Evaluation,
    Event,
    Failure,
    Kind,
    Metrics,
    Own,
    Ready,
    Retry,
    Start,
    Step,
    Usage,
    Worked,
    decode,
)
from cluster_kit.platforms.engine import Container
from cluster_kit.util.masking import LEFT_OUT, Mask, masked_facts, masker
from cluster_kit.util.terminal import harmless
from cluster_kit.util.untrusted import Folder, Found, files

HUGE = 1e30
LONGEST_TEXT, DEEPEST, MOST_ITEMS = 20_000, 6, 20_000
_BACK = str.maketrans("", "", "\b\r")


def number(value: object) -> float | None:
    """The value if it is a finite number that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < HUGE and math.isfinite(value) else None


def text(value: Any) -> Any:
    """A text without half characters (JSON can have them, files cannot); None if it is not a text.

    Commands for terminals, invisible characters and characters that reverse others are removed,
    too. A text of more than LONGEST_TEXT characters is cut, and ends with LEFT_OUT.
    """
    if not isinstance(value, str):
        return None
    if len(value) > LONGEST_TEXT:
        value = value[: LONGEST_TEXT - len(LEFT_OUT)] + LEFT_OUT
    if value.isascii() and value.isprintable():
        return value
    return harmless(value.encode("utf-8", "replace").decode()).translate(_BACK)


def words(value: Any) -> Any:
    """The same text on one line, for a table."""
    as_text = text(value)
    return None if as_text is None else as_text.replace("\n", " ").replace("\t", " ")


def weight(value: Any) -> int:
    """The memory that a JSON value takes, in units of about 64 bytes."""
    if isinstance(value, str):
        return 1 + len(value) // (32 if value.isascii() else 16)
    if isinstance(value, dict):
        return 4 + sum(weight(key) + weight(inner) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return 2 + sum(map(weight, value))
    return 1


def plain(value: Any, depth: int = DEEPEST) -> Any:
    """A JSON value with finite numbers, bounded texts and bounded depth; other parts become
    None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | float):
        return value if number(value) is not None else None
    if depth == 0 or value is None:
        return None
    if isinstance(value, dict):
        items = list(value.items())[:MOST_ITEMS]
        return {text(key): plain(inner, depth - 1) for key, inner in items}
    return [plain(inner, depth - 1) for inner in value[:MOST_ITEMS]]


FOLDER = "progress"
"""The directory of progress files, below a run's output."""
SUFFIX = ".jsonl"
LAST_USAGE = 8 * 1024
"""The number of bytes at the end of a usage file that has at least its last two lines."""
USAGE_LINES, STEP_LINES = 3, 20
"""The number of successive reports that tell what a task does now: a rate needs two that are not
too close together; a program and the kit may both report a task's steps."""
USAGE = ".usage"
"""The suffix of the files in which tasks write their usage."""
LONGEST_LINE = 1 << 20
"""Maximum bytes of a line; a longer one is left out."""
MOST_AT_FIRST, MOST_LATER = 64 << 20, 8 << 20
"""Maximum bytes of a file to read in the first reading and in later ones. If there are more, only
the last LONGEST_LINE are read."""
LINES, LINES_PER_S, MOST_LINES, LAST_LINES = 50_000, 20, 700_000, 500
"""Limit on the lines of one file: LINES, and LINES_PER_S more for each second of the run, at most
MOST_LINES (a line each second for a week). Beyond the limit, the last LAST_LINES of each piece are
read."""
AT_ONCE = 10_000
"""Maximum entries of one event in one file per reading: of more, every second or fourth is
returned."""
KEPT, KEPT_PER_S = 2_000, 5
"""Maximum entries of one event of one task to keep: KEPT, and KEPT_PER_S more for each second."""
WEIGHT, WEIGHT_OF_ALL, WEIGHT_PER_S = 300_000, 1_200_000, 300
"""Maximum weight (see `weight`) of one task's entries, and of all tasks' together, and how much is
added for each second and task."""
HEAVIEST, HEAVIEST_OPEN = 150_000, 10_000
"""Maximum weight of one entry, and of one whose event may have any keys."""
VITAL, LIGHT = (Start, Failure, Ready, End, Retry), 64
"""Events on which the verdict depends; small ones are kept even if a task writes too much."""
MOST_FILES = 10_000
AHEAD_S = 300.0
"""Maximum seconds by which other machines' clocks can be ahead."""
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of one task's progress file; `time` in Unix seconds."""

    task: str
    time: float
    event: Event


@dataclass(frozen=True)
class Figures:
    """The figures of an event that tables, charts and metrics show; None for those it lacks.

    A loss, also of a validation, may be infinite or NaN, all others are finite.
    """

    step: float | None = None
    steps_per_s: float | None = None
    loss: float | None = None
    own_steps: float | None = None
    epoch: float | None = None
    accuracy: float | None = None
    val_loss: float | None = None
    val_accuracy: float | None = None
    map_50: float | None = None
    staleness: float | None = None

    def and_then(self, later: Figures) -> Figures:
        """The newest of each."""
        newer = {name: value for name, value in vars(later).items() if value is not None}
        return replace(self, **newer) if newer else self


def figures_of(event: Event) -> Figures:
    """The figures of a step, an epoch or an evaluation, or among a program's reported values."""
    if isinstance(event, Metrics):
        reported = ((key, event.values.get(key)) for key in _FIGURES)
        return Figures(**{key: value for key, value in reported if number(value) is not None})
    if not isinstance(event, Step | Epoch | Evaluation | Own):
        return Figures()
    return Figures(**{key: value for key, value in vars(event).items() if key in _FIGURES})


_FIGURES = frozenset(one.name for one in fields(Figures))


def fields_of(event: Event) -> dict[str, Any]:
    """The values of an event, by key."""
    if isinstance(event, Metrics):
        return dict(event.values)
    return {key: value for key, value in vars(event).items() if value is not None}


class ProgressReader:
    """Returns each new entry once, and none of an earlier run.

    `left_out` counts invalid lines, and lines beyond the number that is kept.

    Args:
        output: the run's output directory.
        since: Unix time; entries before it are of an earlier run.
        sizes: the first bytes of each file, by its name, that are of an earlier run.
        suffix: the suffix of the files to read; a task's name is before it.
        tasks: names of the run's tasks; without them, any valid task name is accepted.
        began: Unix time at which the run began, if it is not `since`.
        sidecars: names of its sidecars, which can be to blame for an end.
        most_reports: of successive reports with the same figures, only the last ones, so many, are
            returned; None for all.
    """

    def __init__(
        self,
        output: Path,
        since: float = 0.0,
        sizes: Mapping[str, int] | None = None,
        suffix: str = SUFFIX,
        tasks: Collection[str] | None = None,
        began: float = 0.0,
        sidecars: Collection[str] = (),
        most_reports: int | None = None,
    ) -> None:
        self.left_out = 0
        self._most_reports = most_reports
        self._began = began or since
        self._output = output
        self._since = since
        self._suffix = suffix
        self._tasks = None if tasks is None else frozenset(tasks)
        self._sidecars = frozenset(sidecars)
        self._offsets = dict(sizes or {})
        self._cut: set[str] = set()
        self._read: set[str] = set()
        self._lines_read: Counter[str] = Counter()
        self._kept: Counter[tuple[str, type[Event]]] = Counter()
        self._weights: Counter[str] = Counter()
        self._weight = 0

    def poll(self) -> list[Entry]:
        """New entries of all tasks since the last call, oldest first.

        If a task has written very many, as in a week, some at equal distances are returned.
        """
        try:
            with Folder(self._output, FOLDER) as folder:
                entries = [
                    one for name in self._names() for one in _thinned(self._new(folder, name))
                ]
        except OSError:
            return []  # not yet created, or already removed: the next call looks again
        return sorted(entries, key=lambda entry: entry.time)

    def each(self) -> Iterator[Entry]:
        """Yields the new entries one by one, task after task, in the order of each task's file.

        None is kept in memory.
        """
        with contextlib.suppress(OSError), Folder(self._output, FOLDER) as folder:
            for name in self._names():
                yield from self._new(folder, name)

    def _names(self) -> list[str]:
        if self._tasks is not None:
            return sorted(f"{task}{self._suffix}" for task in self._tasks)
        return sorted(file.name.partition("/")[2] for file in _files(self._output, self._suffix))

    def _new(self, folder: Folder, name: str) -> Iterator[Entry]:
        """The new entries of one file; called five times a second, mostly without any."""
        try:
            if folder.status(name).st_size == self._offsets.get(name, 0):
                return
            file = folder.opened(name)
        except OSError:
            return  # not yet created, already removed, or not a regular file
        try:
            about = os.fstat(file)
            # Nothing was written later. A program can set this time, but not the inode's change
            # time.
            latest = about.st_ctime + AHEAD_S
            task = name.removesuffix(self._suffix)
            lines = self._lines(file, name, about.st_size, latest)
            most = self._most_reports
            for line in lines if most is None else _unreplaced(lines, most):
                entry = parsed(task, line, self._tasks, self._sidecars)
                if entry is None or entry.time > latest:
                    self.left_out += 1
                elif entry.time >= self._since and self._is_kept(entry, latest):
                    steps = of_workers(entry)
                    yield from (s for s in steps if s is entry or self._is_kept(s, latest))
        except OSError:
            return
        finally:
            os.close(file)

    def _lines(self, file: int, name: str, size: int, latest: float) -> Iterator[bytes]:
        """The complete lines that were not read yet, in bounded memory and time."""
        offset = self._offsets.get(name, 0)
        if size < offset:
            offset = 0  # removed and recreated
            self._cut.discard(name)
        most_lines = min(LINES + LINES_PER_S * self._seconds(latest, latest), MOST_LINES)
        too_long = size - offset > (MOST_LATER if name in self._read else MOST_AT_FIRST)
        self._read.add(name)
        rest = b""
        os.lseek(file, offset, os.SEEK_SET)
        while offset + len(rest) < size:
            is_far = size - offset > LONGEST_LINE
            if is_far and (too_long or self._lines_read[name] >= most_lines):
                self.left_out += 1
                offset, rest = size - LONGEST_LINE, b""
                self._cut.add(name)
                os.lseek(file, offset, os.SEEK_SET)
            piece = os.read(file, min(LONGEST_LINE, size - offset - len(rest)))
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            offset += sum(map(len, lines)) + len(lines)
            self._offsets[name] = offset
            if lines and name in self._cut:
                self._cut.discard(name)
                del lines[0]
            most = max(LAST_LINES, int(most_lines) - self._lines_read[name])
            if (beyond := len(lines) - most) > 0:
                self.left_out += beyond
                del lines[:beyond]
            self._lines_read[name] += len(lines)
            yield from lines
            if len(rest) >= LONGEST_LINE:
                self.left_out += name not in self._cut
                self._cut.add(name)
                offset, rest = offset + len(rest), b""
                self._offsets[name] = offset

    def _seconds(self, until: float, latest: float) -> float:
        """The duration of the run until a moment; a day if its begin is unknown.

        Args:
            until: the moment, in Unix seconds.
            latest: the time of the last write to the file.
        """
        began = self._began if self._began > 0 else latest - DAY_S
        return max(0.0, until - began)

    def _is_kept(self, entry: Entry, latest: float) -> bool:
        """Whether an entry is within its task's limit for its event."""
        key = entry.task, type(entry.event)
        seconds, heavy = self._seconds(entry.time, latest), weight(fields_of(entry.event))
        vital = isinstance(entry.event, VITAL) and heavy <= LIGHT
        if (
            self._kept[key] >= KEPT + KEPT_PER_S * seconds
            or heavy > (HEAVIEST_OPEN if entry.event.open else HEAVIEST)
            or not (vital or self._has_room(entry.task, heavy, WEIGHT_PER_S * seconds))
        ):
            self.left_out += 1
            return False
        self._kept[key] += 1
        if not vital:
            self._weights[entry.task] += heavy
            self._weight += heavy
        return True

    def _has_room(self, task: str, heavy: int, more: float) -> bool:
        """Whether an entry of this weight is kept, given the task's and all other entries.

        Args:
            more: the weight that each task may have in addition to its first limit.
        """
        of_all = self._weight + heavy <= WEIGHT_OF_ALL + more * len(self._weights)
        return of_all and self._weights[task] + heavy <= WEIGHT + more


_REPORT = re.compile(rb'\{"time": [\d.]+, "event": "(step|worked|functions|usage)".*\}')
"""A line of which a task writes one each second, as the kit writes it."""
_OF_STEPS = tuple(f'"{key}":'.encode() for key in ("step", "own_steps", "steps_per_s", "loss"))
LONGEST_REPORT = 1 << 16
"""Maximum bytes of a report that others can replace."""


def _unreplaced(lines: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The lines without reports that later ones replace: of those that follow one another without
    another event in between, the last `most` with the same event and figures are kept."""
    last: dict[tuple[object, ...], deque[tuple[int, bytes]]] = {}
    for numbered in enumerate(lines):
        line = numbered[1]
        report = _REPORT.fullmatch(line) if len(line) <= LONGEST_REPORT else None
        if report:
            figures = (report[1], *(key in line for key in _OF_STEPS))
            last.setdefault(figures, deque(maxlen=most)).append(numbered)
            continue
        yield from (line for _, line in sorted(chain(*last.values())))
        last.clear()
        yield numbered[1]
    yield from (line for _, line in sorted(chain(*last.values())))


def _thinned(entries: Iterator[Entry]) -> Iterator[Entry]:
    """At most AT_ONCE of each event, at equal distances, including the first and the last."""
    if (first := next(entries, None)) is None:
        return iter(())  # as five times a second, mostly
    kept: dict[type[Event], list[tuple[int, Entry]]] = {}
    last: dict[type[Event], tuple[int, Entry]] = {}
    came, every = Counter[type[Event]](), Counter[type[Event]]()
    for numbered in enumerate(chain((first,), entries)):
        kind = type(numbered[1].event)
        those = kept.setdefault(kind, [])
        if came[kind] % (1 << every[kind]) == 0:
            those.append(numbered)
        last[kind] = numbered
        came[kind] += 1
        if len(those) > AT_ONCE:
            del those[1::2]
            every[kind] += 1
    by_number = {
        number: entry for those in (*kept.values(), last.values()) for number, entry in those
    }
    return (by_number[number] for number in sorted(by_number))


def without_values(entry: Entry, mask: Mask) -> Entry:
    """The entry with the values of secrets masked, except in words that the kit compares."""
    event = entry.event
    if isinstance(event, Metrics):
        return replace(entry, event=Metrics(masked_facts(event.values, mask)))
    masked = {
        key: tuple(map(mask, value)) if isinstance(value, tuple) else masked_facts(value, mask)
        for key, value in fields_of(event).items()
        if KINDS[type(event)][key] not in _COMPARED
    }
    return replace(entry, event=replace(event, **masked))


def sizes(output: Path) -> dict[str, int]:
    """The size in bytes of each progress file and usage file, by its name."""
    return {**_sizes(output, SUFFIX), **_sizes(output, USAGE)}


def _sizes(output: Path, suffix: str) -> dict[str, int]:
    return {file.name.partition("/")[2]: file.size for file in _files(output, suffix)}


def _files(output: Path, suffix: str) -> list[Found]:
    def matches(name: str) -> bool:
        return name.endswith(suffix) and TASK_NAME.fullmatch(name.removesuffix(suffix)) is not None

    return list(files(output, FOLDER, matches=matches, deepest=0, most=MOST_FILES))


def entries_of(containers: Sequence[Container]) -> list[Entry]:
    """The entries of a cluster's tasks since its containers were created, oldest first.

    [] if their output directory cannot be read. Left out are those of the run that `--resume`
    continues, and reports of steps that later ones replace: a task writes one each second.
    """
    return _entries_of(containers, SUFFIX, STEP_LINES)


def newest_usage_of(containers: Sequence[Container]) -> list[Entry]:
    """The newest entries of a cluster's usage files, oldest first; [] as for `entries_of`."""
    return _entries_of(containers, USAGE, USAGE_LINES, LAST_USAGE)


def _entries_of(
    containers: Sequence[Container], suffix: str, most_reports: int, last_bytes: int | None = None
) -> list[Entry]:
    """The entries of the files with this suffix, `most_reports` as for `ProgressReader`; of each
    file only the last bytes are read, so many."""
    if not containers or not containers[0].output:
        return []
    since = min(container.created for container in containers)
    tasks = [container.name for container in containers]
    secrets = {value for container in containers for value in container.secrets}
    output = Path(containers[0].output)
    older: dict[str, int] = {}
    if last_bytes is not None:
        older = {name: max(size - last_bytes, 0) for name, size in _sizes(output, suffix).items()}
    reader = ProgressReader(output, since, older, suffix, tasks, most_reports=most_reports)
    entries = reader.poll()
    mask = masker(secrets)
    return [without_values(entry, mask) for entry in entries] if secrets else entries


def _texts(value: Any) -> Any:
    if not isinstance(value, list):
        return None
    return tuple(words(one) for one in value[:MOST_ITEMS] if isinstance(one, str))


_CHECKS: Mapping[Kind, Callable[[Any], Any]] = {
    **CHECKS, Kind.LINE: words, Kind.TEXT: text, Kind.NAMES: _texts, Kind.TASKS: _texts,
    Kind.JSON: plain,
}  # fmt: skip
"""Like the contract's checks, with printable texts and bounded values."""
_OF_TASKS = (Kind.TASK, Kind.TASKS, Kind.COUNTS)
_COMPARED = (*_OF_TASKS, Kind.REASON)
"""Kinds whose values are the kit's own words, which it compares."""
_NAMING = {
    event: tuple((key, kind) for key, kind in kinds.items() if kind in _OF_TASKS)
    for event, kinds in KINDS.items()
}
"""The keys of each event that name tasks."""


def of_workers(entry: Entry) -> list[Entry]:
    """One entry for each worker whose steps a coordinator's leader reports; [entry] for any other.

    Each function that a worker has finished counts as its step. These entries have no global step,
    and are `counted`: by a clock, not at the end of a step.
    """
    if not isinstance(entry.event, Worked):
        return [entry]
    speeds = entry.event.per_s or {}
    return [
        Entry(task, entry.time, Step(own_steps=count, steps_per_s=speeds.get(task), counted=True))
        for task, count in (entry.event.functions or {}).items()
    ]


def parsed(
    task: str,
    line: bytes,
    tasks: Collection[str] | None = None,
    sidecars: Collection[str] = (),
) -> Entry | None:
    """The entry in a line; None if it is invalid, incomplete, or not about a task of the run.

    A key whose value has the wrong type is left out, and so is an unknown key.
    """
    if not line.lstrip().startswith(b"{"):  # ten times as fast as the parser's exception
        return None
    try:
        values = json.loads(line)
        moment, name = float(values.pop("time")), words(str(values.pop("event")))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    if not (math.isfinite(moment) and moment >= 0):
        return None
    event = decode(name, values, _CHECKS)
    if event is not None and tasks is not None:
        event = _among(event, {*tasks, *sidecars} if isinstance(event, End) else tasks)
    return None if event is None else Entry(task, moment, event)


def _among(event: Event, tasks: Collection[str]) -> Event | None:
    """The event without names of unknown tasks; None if it is about an unknown task."""
    shorter: dict[str, Any] = {}
    for key, kind in _NAMING[type(event)]:
        value = getattr(event, key)
        if value is not None and kind is Kind.TASKS:
            shorter[key] = tuple(name for name in value if name in tasks)
        elif value is not None and kind is Kind.COUNTS:
            shorter[key] = {name: count for name, count in value.items() if name in tasks}
        elif value is not None and value not in tasks:
            return None
    if isinstance(event, Usage) and isinstance(event.sent_to, dict):
        known = {name: size for name, size in event.sent_to.items() if name in tasks}
        event = replace(event, sent_to=known)
    return replace(event, **shorter) if shorter else event
