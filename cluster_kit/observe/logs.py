"""Shows log lines of running tasks as they arrive."""

from __future__ import annotations

import contextlib
import math
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import dropwhile, islice
from typing import Protocol

from cluster_kit.errors import EngineError
from cluster_kit.host import Clock
from cluster_kit.observe import log_patterns
from cluster_kit.platforms.engine import Engine
from cluster_kit.util.masking import LEFT_OUT

Line = Callable[[str, str], None]
"""Shows a line of a task's log: the task's name, the line."""
WINDOW_S = 1.0
MOST = 200
"""Maximum lines of a task per window; a program that prints more would be shown long after its
end."""
LAST = 10
"""The number of left-out lines at the end of a window that are shown nevertheless."""


HOLD_S = 5.0
"""Seconds for which an error is held back: if it ends the task, only the outcome shows it."""
MOST_HELD, MOST_HELD_CHARACTERS = 400, 1_000_000
LONGEST = 20_000
"""The maximum characters of a line to check and show; the saved log has the rest."""
_ERROR = re.compile(
    r"Traceback \(most recent call last\):|error: |usage: |\S+: error: "
    r"|\S+: the program (ended with|was killed)"
)
"""The first line of an error."""
_OF_TRACEBACK = re.compile(
    r"\s|$|Traceback |During handling |The above exception |Original stack trace for "
)
_WRAPPED = re.compile(r"\{\{function_node [^{}]*\}\} ")
MOST_INNER = 20
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_GRPC = re.compile(r"Additional GRPC error information|:[A-Z_]+:Error received ")
"""Lines that TensorFlow adds to a connection error, which repeat the message."""
MOST_OF_ERROR = 8
"""The maximum number of lines of a TensorFlow error to show: some have stacks of a hundred
lines."""
MOST_SEEN = 10_000
"""Maximum number of different error lines to remember."""
TELL_EVERY_S = 30.0
"""Seconds between messages about error lines that are left out."""
JUST_NOW_S = 3.0
"""Seconds after which such a message says how long ago the last of these lines came."""
_MARKS = re.compile(r"\s*[\^~]+\s*")
"""Python's marks below a source line; below one of several lines they are not indented."""
_SPEAKER = re.compile(r"^((error|[a-z_]+-\d+): )+")


class Repeats:
    """Finds lines of one task that repeat TensorFlow's errors and stacks, or exceed the limits."""

    def __init__(self) -> None:
        self.count = 0
        """The number of lines that were left out and not reported yet."""
        self.left_out_at = 0.0
        """When the last of them came, in seconds of a monotonic clock."""
        self._seen: set[int] = set()
        """Hashes of lines: a line can have a million characters."""
        self._last: deque[str] = deque(maxlen=3)
        self._stack = 0
        self._inside = 0
        self._error_at = 0.0
        self._announced = False
        """Whether the previous line announces an error."""
        self._of_error = 0
        """The number of lines of the current TensorFlow error; 0 outside of one."""

    def leaves_out(self, text: str, now: float) -> bool:
        """Whether the line was shown before, or is beyond the limit of a long error.

        Args:
            now: seconds of a monotonic clock.
        """
        doubled = self._is_doubled(text)
        self._last.append(text)
        if doubled:
            return True
        repeated = self._is_repeated(text)
        out = self._is_too_much(text, now, repeated=repeated) or repeated
        if out:
            self.count, self.left_out_at = self.count + 1, now
        return out

    def _is_doubled(self, text: str) -> bool:
        """Whether TensorFlow's Python part has just logged the line, in this form or its own."""
        if log_patterns.PYTHON.match(text):
            return text in self._last
        for last in self._last:
            own = log_patterns.PYTHON.match(last)
            message = last[own.end() :] if own else ""
            if message and text.endswith(message):
                return log_patterns.HEADER.search(text, 0, len(text) - len(message)) is not None
        return False

    def _is_too_much(self, text: str, now: float, *, repeated: bool) -> bool:
        """Whether the line is one of TensorFlow's errors after the first MOST_OF_ERROR.

        An error arrives at once: indented lines that arrive later are the program's.
        """
        if log_patterns.ERRORS.match(text):
            self._of_error, self._error_at = 1, now
            self._announced = text.rstrip().endswith(":")
        elif self._of_error:
            self._announced = False
            goes_on = text[:1].isspace() or log_patterns.STACK.match(text) or repeated
            within = goes_on or self._of_error == 1
            timely = now - self._error_at <= WINDOW_S
            self._of_error = self._of_error + 1 if within and timely else 0
        return self._of_error > MOST_OF_ERROR

    def _is_repeated(self, text: str) -> bool:
        indent = len(text) - len(text.lstrip())
        if self._inside and (indent > self._inside or _MARKS.fullmatch(text)):
            return True  # the source line of a frame that is left out, or the marks below it
        self._inside = 0
        if log_patterns.FOREIGN.match(text):
            self._inside, self._stack = indent or 1, 1
            return True
        if log_patterns.NATIVE.match(text):  # the view leaves these lines out
            return False
        if _GRPC.match(text):
            return True
        begins = log_patterns.ERRORS.match(text)
        if begins or log_patterns.STACK.match(text):
            self._stack = 1 if begins else self._stack + 1
            key = text.rstrip() if 'File "' in text else _NUMBER.sub("#", text.rstrip())
        elif self._stack > 1 or self._of_error > 1 or self._announced:
            # A line of the frame's source, or the error's message.
            key = text.rstrip()
        else:
            return False
        if (seen := hash(key)) in self._seen:
            if log_patterns.STACK.match(text) and 'File "' in text:
                self._inside = indent or 1
            return True
        if len(self._seen) < MOST_SEEN:
            self._seen.add(seen)
        if not begins and not log_patterns.STACK.match(text) and not indent:
            self._stack = 0  # the stack has ended, unless another of its lines follows
        return False


class Shown:
    """Shows one task's lines, at most MOST in each window.

    The last LAST of the other lines are shown at the end of the window; the rest are counted.
    """

    def __init__(self, clock: Clock, task: str, line: Line, since: float | None = None) -> None:
        self._clock = clock
        self.since = since
        self._task = task
        self._line = line
        self._lock = threading.Lock()
        self._read = 0
        self._room = MOST
        self._until = self._clock.monotonic() + WINDOW_S
        self._repeats = Repeats()
        self._tell_at = self._until
        self._late: deque[str] = deque(maxlen=LAST)
        self._left_out = 0
        self._held: list[str] = []
        self._held_characters = 0
        self._held_until = 0.0
        self._closed = False

    def take(self, number: int, text: str) -> None:
        """Process a new line; a blank line, or one that was processed before, is ignored."""
        with self._lock:
            if number > self._read and not self._closed:
                self._read = number
                self._next_window()
                self._hold(text)

    def settle(self) -> None:
        """Show the remaining lines of a window that has ended."""
        with self._lock:
            self._next_window()

    def finish(self, log: Iterable[str], said: str = "") -> None:
        """Show or count the remaining lines; nothing is shown after that.

        Args:
            log: the lines of the task's whole log, each with its time, as far as they can be read.
            said: the outcome's text about the error with which the task ended.
        """
        with self._lock:
            if not self._closed:
                self._tell_at = math.inf  # once, at the end
                self._next_window()
                self._closed = True
                with contextlib.suppress(EngineError):
                    for text in islice(_lines(log, self.since), self._read, None):
                        self._hold(text)
                for text in _unsaid(self._held, said):
                    self._put(text)
                self._tell_late()
                self._tell_repeated()

    def _hold(self, text: str) -> None:
        """Show the line, or hold it back if it belongs to an error."""
        text = _shortened(text)
        if not self._held and not _ERROR.match(text):
            self._put(text)
            return
        if not self._held:
            self._held_until = self._clock.monotonic() + HOLD_S
        self._held.append(text)
        self._held_characters += len(text)
        if len(self._held) > MOST_HELD or self._held_characters > MOST_HELD_CHARACTERS:
            self._let_go()

    def _let_go(self) -> None:
        for text in self._held:
            self._put(text)
        self._held.clear()
        self._held_characters = 0

    def _put(self, text: str) -> None:
        if not text.strip() or self._repeats.leaves_out(text, self._clock.monotonic()):
            return
        if self._room:
            self._room -= 1
            self._line(self._task, text)
            return
        self._left_out += len(self._late) == LAST
        self._late.append(text)

    def _next_window(self) -> None:
        now = self._clock.monotonic()
        if now >= self._until and not self._closed:
            self._tell_late()
            if now >= self._tell_at:
                self._tell_repeated()
            self._until, self._room = now + WINDOW_S, MOST
        if self._held and now >= self._held_until and not self._closed:
            self._let_go()

    def _tell_repeated(self) -> None:
        if self._repeats.count:
            lines = "line" if self._repeats.count == 1 else "lines"
            file = f"logs/{self._task}.log"
            ago_s = self._clock.monotonic() - self._repeats.left_out_at
            ago = f", the last {ago_s:.0f} s ago" if ago_s > JUST_NOW_S else ""
            remark = f"… {self._repeats.count:,} {lines} of errors left out{ago}, all in {file}"
            self._line(self._task, remark)
            self._repeats.count = 0
            self._tell_at = self._clock.monotonic() + TELL_EVERY_S

    def _tell_late(self) -> None:
        if self._left_out:
            lines = "line" if self._left_out == 1 else "lines"
            file = f"logs/{self._task}.log"
            self._line(self._task, f"… {self._left_out:,} {lines} left out here, all in {file}")
        for text in self._late:
            self._line(self._task, text)
        self._late.clear()
        self._left_out = 0


def _unsaid(held: Sequence[str], said: str) -> list[str]:
    """The held-back lines to show: those that are not part of the error in the outcome.

    All of them if the outcome has another error.
    """
    shown = {_said(line) for line in said.splitlines()} - {""}
    last = max((i for i, line in enumerate(held) if _said(line) in shown), default=-1)
    rest = [(i, line) for i, line in enumerate(held) if _said(line) not in shown]
    inner = [line for i, line in rest if i < last and not _OF_TRACEBACK.match(line)]
    # Few lines that are not in the outcome belong to the error; many are other output.
    kept = inner if len(inner) > MOST_INNER else []
    later = [line for i, line in rest if i > last]
    if last >= 0:
        later = list(dropwhile(_OF_TRACEBACK.match, later))
    return [*kept, *later]


def _shortened(line: str) -> str:
    """The line, LONGEST characters at most: the first ones, or the last ones of a progress bar."""
    if len(line) <= LONGEST:
        return line
    end = line[-LONGEST:]
    redrawn = [at for at in (end.find("\r"), end.find("\b")) if at >= 0]
    return end[min(redrawn) :] if redrawn else line[: LONGEST - len(LEFT_OUT)] + LEFT_OUT


def _said(line: str) -> str:
    return _WRAPPED.sub("", _SPEAKER.sub("", line)).strip()


def _lines(log: Iterable[str], since: float | None) -> Iterator[str]:
    """Yields the lines of a log without their times, from Unix time `since` on."""
    for line in log:
        stamp, _, text = line.partition(" ")
        if since is None or _time(stamp) >= since:
            yield text.rstrip("\r")


def _time(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0


RESTART_S = 3.0
"""An engine restarts a crashed container within a second."""
Take = Callable[[int, str], None]
"""Takes a line of a log: its number from 1 on, the line."""


class Speaker(Protocol):
    """A container whose log is followed."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


def follow_logs(
    engine: Engine,
    containers: Iterable[Speaker],
    line: Line,
    *,
    times: bool = False,
    tail: int | None = None,
) -> list[threading.Thread]:
    """Start one thread per container, which calls `line(task, text)` until the container ends.

    Args:
        times: put the engine's time and a blank before each line.
        tail: begin with this many of the lines so far; None for all.
    """
    return [
        _start(engine, c, None, _each_once(c.name, line, _before(engine, c, tail)), times=times)
        for c in containers
    ]


def _before(engine: Engine, container: Speaker, tail: int | None) -> int:
    """The number of lines so far before the last `tail`; 0 if that is None."""
    return 0 if tail is None else max(0, sum(1 for _ in engine.lines(container.id)) - tail)


class Followed:
    """What a run shows of its tasks' logs: each line once, and a count of those left out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown: dict[str, Shown] = {}

    def follow(
        self, engine: Engine, containers: Iterable[Speaker], line: Line, since: float | None
    ) -> None:
        """Show the lines of these containers, one thread per container; may be called repeatedly.

        Args:
            since: Unix time; older lines are left out. Only the first time counts.
        """
        for container in containers:
            shown = self._shown.setdefault(
                container.name, Shown(self._clock, container.name, line, since)
            )
            _start(engine, container, shown.since, shown.take)

    def settle(self) -> None:
        """Show the lines that have been held back long enough."""
        for shown in self._shown.values():
            shown.settle()

    def finish(self, logs: Mapping[str, Iterable[str]], said: str = "") -> None:
        """Show or count the rest of the tasks' logs; nothing is shown after that.

        Args:
            logs: the lines of each task's whole log, with their times.
            said: the outcome's text about an error, which is not shown twice.
        """
        for name, shown in self._shown.items():
            shown.finish(logs.get(name, ()), said)


def _start(
    engine: Engine, container: Speaker, since: float | None, take: Take, *, times: bool = False
) -> threading.Thread:
    arguments = (engine, container, since, take, times)
    thread = threading.Thread(target=_follow, args=arguments, daemon=True)
    thread.start()
    return thread


def _follow(
    engine: Engine, container: Speaker, since: float | None, take: Take, times: bool
) -> None:
    """Show lines until the container has ended for good.

    The engine's stream ends at a restart, and the next one begins with the first line again. If the
    engine is lost, this returns without an error: the watch of the run reports that.
    """
    with contextlib.suppress(EngineError):
        while True:
            for number, text in enumerate(engine.follow(container.id, since, times=times), 1):
                take(number, text.rstrip("\r"))
            if not engine.comes_back(container.id, RESTART_S):
                return


def _each_once(task: str, line: Line, read: int) -> Take:
    """Shows each line that is not blank and was not shown before, after the first `read`."""

    def take(number: int, text: str) -> None:
        nonlocal read
        if number > read:
            read = number
            if text.strip():
                line(task, text)

    return take
