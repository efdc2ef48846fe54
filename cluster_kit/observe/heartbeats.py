"""Tasks that are silent: what leaders say of them, and a leader's own sign of life. Pure, but for
the look at a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster_kit.contract import heartbeat
from cluster_kit.contract.events import Heard, Silent, Unanswered, Waited, Waiting
from cluster_kit.observe.progress import FOLDER, Entry
from cluster_kit.observe.state import RunState
from cluster_kit.util import untrusted


@dataclass(frozen=True)
class Silence:
    """A task that was silent from `last_heard` on, as `said` by another one at `time`.

    `server`: it is its TensorFlow server that does not answer; `gone`: its process has ended.
    """

    task: str
    time: float
    last_heard: float
    server: bool = False
    gone: bool = False

    def __str__(self) -> str:
        """A sentence; the time of day is the host's."""
        seconds = self.time - self.last_heard
        return heartbeat.sentence(
            self.task, seconds, self.last_heard, server=self.server, gone=self.gone
        )


def silence(time: float, event: Silent) -> Silence:
    """What an event of this time says, whatever the clock of the machine that wrote it."""
    told = event.last_heard
    last = time if told is None else min(max(told, 0.0), time)
    return Silence(str(event.of), time, last, bool(event.server), bool(event.gone))


def current(seen: RunState) -> dict[str, Silence]:
    """The tasks that are silent; not one that spoke or was started since."""
    told = {str(e.event.of): e for e in seen.entries if isinstance(e.event, Silent | Heard)}
    # A leader that was started again knows nothing of what it said before.
    since = seen.started_at(seen.leader)
    return {
        task: silence(entry.time, entry.event)
        for task, entry in told.items()
        if isinstance(entry.event, Silent) and entry.time >= max(seen.started_at(task), since)
    }


def all_of(seen: RunState) -> list[Silence]:
    """All silences of the run's tasks, oldest first."""
    told = [silence(e.time, e.event) for e in seen.entries if isinstance(e.event, Silent)]
    return [one for one in told if one.task in seen.tasks]


def cuts(seen: RunState) -> list[str]:
    """A sentence for each time that two tasks answered their leader, but not each other, oldest
    first."""
    return [
        f"{e.event.by} had no answer from {e.event.of} for {e.event.seconds} s or more"
        f" (the network between them was cut; both answered {e.task})"
        for e in seen.entries
        if isinstance(e.event, Unanswered) and e.event.of in seen.tasks
    ]


def waits(seen: RunState) -> list[str]:
    """A sentence for each time that training stood because a task was lost, oldest first."""
    lines: dict[str, list[str]] = {}
    for one in seen.entries:
        event = one.event
        if isinstance(event, Waiting) and event.of in seen.tasks:
            lines.setdefault(event.of, []).append(f"training waited for {event.of} until the end")
        elif isinstance(event, Waited) and event.of and lines.get(event.of):
            lines[event.of][-1] = f"training waited {event.seconds} s for {event.of}"
    return [line for said in lines.values() for line in said]


def entry(task: str, moment: float, seconds: float) -> Entry:
    """What the host itself says of a task that has been silent for so many seconds."""
    return Entry(task, moment, Silent(of=task, last_heard=moment - seconds, server=False))


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
