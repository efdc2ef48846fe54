"""Silent tasks: what leaders report about them, and a leader's own heartbeat. Pure, except for
reading the time of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.contract import heartbeat
from cluster_kit.contract.events import End, Heard, Silent, Start, Unanswered, Waited, Waiting
from cluster_kit.observe.lives import Lives
from cluster_kit.observe.progress import FOLDER, Entry
from cluster_kit.observe.state import RunState
from cluster_kit.util import untrusted


@dataclass(frozen=True)
class Silence:
    """A task that has been silent since `last_heard`, as another task reported at `time`.

    `server`: its TensorFlow server does not answer; `gone`: its process has ended; `ended`: how its
    container had ended before the report, "" if it ran.
    """

    task: str
    time: float
    last_heard: float
    server: bool = False
    gone: bool = False
    ended: str = ""

    def __str__(self) -> str:
        """A sentence; the time of day is the host's."""
        seconds = self.time - self.last_heard
        if self.ended:
            had = f"its container had ended ({self.ended})"
            return f"{self.task} did not answer for {seconds:.0f} s, since {had}"
        return heartbeat.sentence(
            self.task, seconds, self.last_heard, server=self.server, gone=self.gone
        )


def silence(time: float, event: Silent) -> Silence:
    """The silence that an event reports; `last_heard` is at most `time`, even if clocks differ."""
    last_heard = event.last_heard
    last = time if last_heard is None else min(max(last_heard, 0.0), time)
    return Silence(str(event.of), time, last, bool(event.server), bool(event.gone))


def unanswered(seen: RunState) -> dict[str, Silence]:
    """The tasks that have not answered since they were reported, started again or not."""
    newest = {str(e.event.of): e for e in seen.entries if isinstance(e.event, Silent | Heard)}
    # A restarted leader does not know of the silences that it reported before.
    since = seen.started_at(seen.leader)
    return {
        task: silence(entry.time, entry.event)
        for task, entry in newest.items()
        if isinstance(entry.event, Silent) and entry.time >= since
    }


def current(seen: RunState) -> dict[str, Silence]:
    """The tasks that are silent now: they neither answered nor were started since the report."""
    return {
        task: silence
        for task, silence in unanswered(seen).items()
        if silence.time >= seen.started_at(task)
    }


def all_of(seen: RunState) -> list[Silence]:
    """All silences of the run's tasks, oldest first, and how their containers had ended."""
    silences = [silence(e.time, e.event) for e in seen.entries if isinstance(e.event, Silent)]
    return [
        replace(one, ended=_end_before(one, seen.lives_of(one.task)))
        for one in silences
        if one.task in seen.tasks
    ]


def _end_before(silence: Silence, lives: Lives) -> str:
    """How a task's container ended before a silence was reported; "" if it ran then."""
    begun = [life for life in lives if (life.began or 0.0) <= silence.time]
    if not begun or begun[-1].ended is None or begun[-1].ended > silence.time:
        return ""
    return "out of memory" if begun[-1].ooms else f"exit code {begun[-1].exit_code}"


def heard_again(silence: Silence, seen: RunState) -> float | None:
    """The Unix time at which a task that was silent answered; None if it did not."""
    again = (
        e.time for e in seen.entries if isinstance(e.event, Heard) and e.event.of == silence.task
    )
    return min((time for time in again if time >= silence.time), default=None)


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
    """A sentence for each time that training waited for a lost task, oldest first."""
    lines: dict[str, list[str]] = {}
    since: dict[str, float] = {}
    ended: float | None = None
    for one in seen.entries:
        event = one.event
        if isinstance(event, Waiting) and event.of in seen.tasks:
            lines.setdefault(event.of, []).append(f"training waited for {event.of} until the end")
            since[event.of] = one.time - (event.seconds or 0.0)
        elif isinstance(event, Waited) and event.of and lines.get(event.of):
            lines[event.of][-1] = f"training waited {event.seconds} s for {event.of}"
            since.pop(event.of, None)
        elif one.task == seen.leader and isinstance(event, End):
            ended = one.time
        elif one.task == seen.leader and isinstance(event, Start):
            for task, begun in since.items():
                seconds = f"{(ended or one.time) - begun:.1f} s"
                lines[task][-1] = (
                    f"training waited {seconds} for {task}, until {seen.leader} was started again"
                )
            since, ended = {}, None
    return [line for sentences in lines.values() for line in sentences]


def entry(task: str, moment: float, seconds: float) -> Entry:
    """The event with which the host itself reports a task that was silent for these seconds."""
    return Entry(task, moment, Silent(of=task, last_heard=moment - seconds, server=False))


class SignOfLife:
    """The heartbeat of a leader or evaluator: a file that it touches once a second."""

    def __init__(self, output: Path, task: str) -> None:
        self._output = output
        self._file = f"{FOLDER}/{task}.beat"
        self._started = 0.0
        self._beat: float | None = None
        self._beats = False
        self._looked_at = 0.0
        self._silent = 0.0

    def look(self, moment: float, started: float) -> float:
        """The seconds since the last heartbeat; 0 if there was none since the container's start.

        The file's time is only compared with its earlier value, since a clock may be set.

        Args:
            moment: seconds of a monotonic clock.
            started: Unix time of its container's last start.
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
        unchanged = self._beats and beat is not None and beat == self._beat
        self._silent = self._silent + passed if unchanged else 0.0
        self._beat = beat
        return self._silent
