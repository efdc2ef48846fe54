"""Tasks that are much slower than others that do the same work, as leaders report them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from cluster_kit.observe.figures import number
from cluster_kit.observe.progress import Entry

STRAGGLING, STRAGGLED = "straggling", "straggled"
LONGEST_S = 366 * 86400.0
"""No run lasts longer: such a time is unknown."""
MOST_LASTING = 20
"""Times of one task that nothing has ended; a leader says each only once."""
_ANEW = ("start", "ready", "end")
"""After these of a task, what was said of it before is over."""


@dataclass(frozen=True)
class Straggler:
    """A task that is a straggler since `since` (Unix seconds); None for what is unknown.

    `by` is the leader that says so, and `message` how.
    `others_steps_per_s` is the median of the others, `share` that of the task in all steps (0 to
    1), `slowed` the factor by which its CPU limit slows it, where steps do not show it. `cause` is
    cpu-limit, bandwidth-limit, memory or unknown; `limit` is in CPUs or bits per second.
    """

    since: float
    by: str
    steps_per_s: float | None
    others_steps_per_s: float | None
    share: float | None
    slowed: float | None
    cause: str
    limit: float | None
    message: str


@dataclass(frozen=True)
class Period:
    """A time in which a task was a straggler; `until` (Unix seconds) is None if the leader has not
    said that it was over."""

    task: str
    begin: Straggler
    until: float | None
    share: float | None


def straggler(entry: Entry) -> Straggler:
    """What an entry `straggling` says."""
    fields = entry.fields
    seconds = _number(fields, "seconds") or 0.0
    return Straggler(
        since=entry.time - (seconds if 0.0 <= seconds <= LONGEST_S else 0.0),
        by=entry.task,
        steps_per_s=_number(fields, "steps_per_s"),
        others_steps_per_s=_number(fields, "others_steps_per_s"),
        share=_number(fields, "share"),
        slowed=_number(fields, "slowed"),
        cause=str(fields.get("cause")),
        limit=_number(fields, "limit"),
        message=str(fields.get("message", "")),
    )


def after(found: Mapping[str, Straggler], entry: Entry) -> Mapping[str, Straggler]:
    """The stragglers by name after one more entry of any task; `found` if that changes nothing."""
    if entry.event == STRAGGLING:
        return {**found, str(entry.fields.get("of")): straggler(entry)}
    left = {task: one for task, one in found.items() if not _ends(entry, task, one.by)}
    return left if len(left) < len(found) else found


def current(entries: Iterable[Entry]) -> Mapping[str, Straggler]:
    """The stragglers by name after these entries, oldest first."""
    found: Mapping[str, Straggler] = {}
    for entry in entries:
        found = after(found, entry)
    return found


def periods(entries: Sequence[Entry]) -> list[Period]:
    """Every time in which a task was a straggler, oldest first."""
    found: list[Period] = []
    lasting: dict[str, list[int]] = {}  # by task: where in `found` are those that are not over
    for entry in entries:
        if entry.event not in (STRAGGLING, STRAGGLED, *_ANEW):
            continue
        for task, at_all in lasting.items():
            over = [at for at in at_all if _ends(entry, task, found[at].begin.by)]
            for at in over:
                share = found[at].share
                if entry.event == STRAGGLED:
                    share = _number(entry.fields, "share")
                found[at] = replace(found[at], until=entry.time, share=share)
            lasting[task] = [at for at in at_all if at not in over]
        if entry.event == STRAGGLING:
            task, begin = str(entry.fields.get("of")), straggler(entry)
            if len(lasting.setdefault(task, [])) < MOST_LASTING:
                lasting[task].append(len(found))
                found.append(Period(task, begin, None, begin.share))
    return found


def _ends(entry: Entry, task: str, leader: str) -> bool:
    """Whether it is over after this entry: it says so, or the task or the leader begins anew."""
    if entry.event == STRAGGLED:
        return entry.fields.get("of") == task
    return entry.event in _ANEW and entry.task in (task, leader)


def note(period: Period) -> str:
    """A sentence; the times of day are the host's."""
    since = datetime.fromtimestamp(period.begin.since).strftime("%H:%M:%S")
    if period.until is None:
        return f"{period.begin.message} (from {since} on)"
    until = datetime.fromtimestamp(period.until).strftime("%H:%M:%S")
    share = "" if period.share is None else f", with {period.share:.0%} of the steps"
    seconds = period.until - period.begin.since
    return f"{period.begin.message} (from {since} to {until}, {seconds:.0f} s{share})"


def _number(fields: Mapping[str, Any], key: str) -> float | None:
    return number(fields.get(key))
