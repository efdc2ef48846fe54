"""Tasks that are silent: what leaders say of them, and a leader's own sign of life. Pure, but for
the look at a file."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.contract import heartbeat
from cluster_kit.observe.progress import FOLDER, Entry, number
from cluster_kit.observe.state import RunState
from cluster_kit.util import untrusted

SILENT, HEARD, UNANSWERED = "silent", "heard", "unanswered"


def current(seen: RunState) -> dict[str, Entry]:
    """The tasks that are silent, each with the entry that says so; not one that spoke or was
    started since."""
    told = {str(e.fields.get("of")): e for e in seen.entries if e.event in (SILENT, HEARD)}
    # A leader that was started again knows nothing of what it said before.
    since = seen.started.get(seen.leader, 0.0)
    return {
        task: entry
        for task, entry in told.items()
        if entry.event == SILENT and entry.time >= max(seen.started.get(task, 0.0), since)
    }


def all_of(seen: RunState) -> list[Entry]:
    """All silences of a run, oldest first; `of` is a task's name."""
    return [e for e in seen.entries if e.event == SILENT and e.fields.get("of") in seen.tasks]


def cuts(seen: RunState) -> list[Entry]:
    """Each time that two tasks answered their leader, but not each other, oldest first."""
    return [e for e in seen.entries if e.event == UNANSWERED and e.fields.get("of") in seen.tasks]


def cut_words(entry: Entry) -> str:
    """A sentence about two tasks that did not reach each other."""
    of, by, seconds = (entry.fields.get(key) for key in ("of", "by", "seconds"))
    return (
        f"{by} had no answer from {of} for {seconds} s or more"
        f" (the network between them was cut; both answered {entry.task})"
    )


def waits(seen: RunState) -> list[str]:
    """A sentence for each time that training stood because a task was lost, oldest first."""
    lines: dict[str, list[str]] = {}
    for one in seen.entries:
        task = str(one.fields.get("of"))
        if one.event == "waiting" and task in seen.tasks:
            lines.setdefault(task, []).append(f"training waited for {task} until the end")
        elif one.event == "waited" and lines.get(task):
            lines[task][-1] = f"training waited {one.fields.get('seconds')} s for {task}"
    return [line for said in lines.values() for line in said]


def entry(task: str, moment: float, seconds: float) -> Entry:
    """What the host itself says of a task that has been silent for so many seconds."""
    fields = {"of": task, "last_heard": moment - seconds, "server": False}
    return Entry(task, moment, SILENT, fields)


def words(entry: Entry) -> str:
    """A sentence about a silence; the time of day is the host's."""
    told = number(entry.fields.get("last_heard"))
    last = entry.time if told is None else min(max(told, 0.0), entry.time)
    task, server = str(entry.fields.get("of")), bool(entry.fields.get("server"))
    return heartbeat.sentence(task, entry.time - last, last, server=server)


class SignOfLife:
    """Of a leader or an evaluator: a file that it touches once a second from its start on."""

    def __init__(self, output: Path, task: str) -> None:
        self._output = output
        self._file = f"{FOLDER}/{task}.beat"
        self._started = 0.0
        self._beat: float | None = None
        self._beats = False
        self._looked_at = 0.0
        self._silent = 0.0

    def look(self, moment: float, started: float) -> float:
        """For how many seconds it has given none; 0 if it never has since its start.

        The file's time is only compared with itself: somebody may set the clock.

        Args:
            moment: seconds of a monotonic clock.
            started: Unix seconds of its container's last start.
        """
        passed, self._looked_at = heartbeat.passed(self._looked_at, moment), moment
        try:
            beat: float | None = untrusted.status(self._output, self._file).st_mtime
        except OSError:
            beat = None
        if started != self._started:
            self._started, self._beats = started, False
        elif beat != self._beat and beat is not None:
            self._beats = True
        here = self._beats and beat is not None and beat == self._beat
        self._silent = self._silent + passed if here else 0.0
        self._beat = beat
        return self._silent
