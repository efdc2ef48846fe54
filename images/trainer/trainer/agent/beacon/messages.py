"""The messages between tasks over the beacon: one line each, its words separated by spaces.

    follower to leader    hello TASK RUN | done TASK | failed TASK MESSAGE
                          | permanent TASK EXIT_CODE MESSAGE | report REASON TASK MESSAGE
                          | beat USAGE | unanswered TASK SECONDS
    leader to follower    stopping | stacks | again | beat | end EXIT_CODE

USAGE has the values of usage.py, in its order. The lines of a MESSAGE are separated by
LINE_SEPARATOR, since a newline ends a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union

from trainer.agent.outcome import tidy
from trainer.agent.usage import Usage

LONGEST_LINE = 16_384
"""The maximum bytes of a message, with its newline; encode() truncates a longer one."""
LINE_SEPARATOR = "\x1e"
"""ASCII's record separator."""
TASK = re.compile(r"[a-z_]{1,32}-[0-9]{1,6}")
REASON = re.compile(r"[a-z-]{1,32}")
RUN = re.compile(r"[0-9a-zA-Z]{1,64}")
CODE = re.compile(r"-?[0-9]{1,9}")
SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True)
class Hello:
    """The first line of a follower: its task, and a number that identifies its process."""

    task: str
    run: str


@dataclass(frozen=True)
class Done:
    """The follower's program finished."""

    task: str


@dataclass(frozen=True)
class Failed:
    """The follower's program failed for a reason other than another task's end."""

    task: str
    message: str


@dataclass(frozen=True)
class Permanent:
    """The follower's program failed with an exit code after which it is not started again."""

    task: str
    exit_code: int
    message: str


@dataclass(frozen=True)
class Report:
    """A problem of `task` that ends the job, on a separate connection.

    `reason` is one of outcome.py's, such as `gpu-missing`.
    """

    reason: str
    task: str
    message: str


@dataclass(frozen=True)
class Stopping:
    """The leader was stopped and saves its state: servers must run until it has finished."""


@dataclass(frozen=True)
class Stacks:
    """The job hangs: save the stacks of all threads."""


@dataclass(frozen=True)
class Again:
    """The leader starts its program again, since the job hung: start yours again, too."""


@dataclass(frozen=True)
class End:
    """The job has ended with the leader's exit code; the last line of a leader."""

    exit_code: int


@dataclass(frozen=True)
class Beat:
    """A heartbeat, once a second in both directions; a follower's has its container's usage."""

    used: Usage | None = None


@dataclass(frozen=True)
class NoAnswer:
    """The follower has had no answer from this task for this many seconds."""

    task: str
    seconds: float


Message = Union[
    Beat, NoAnswer, Hello, Done, Failed, Permanent, Report, Stopping, Stacks, Again, End
]


def encode(message: Message) -> bytes:
    """The message as one line, newline included, LONGEST_LINE bytes at most."""
    words = _words(message)
    return " ".join(words).encode()[: LONGEST_LINE - 1] + b"\n"


def decode(line: bytes) -> Message | None:
    """The message in a line of any bytes; None if it is incomplete or unknown."""
    word, _, rest = line.decode(errors="replace").strip().partition(" ")
    first, _, text = rest.partition(" ")
    plain = {"stacks": Stacks(), "again": Again(), "stopping": Stopping()}
    if word in plain:
        return plain[word]
    if word == "beat":
        return Beat(Usage.of_words(rest.split()))
    if word == "hello" and TASK.fullmatch(first) and RUN.fullmatch(text):
        return Hello(first, text)
    if word == "unanswered" and TASK.fullmatch(first) and SECONDS.fullmatch(text):
        return NoAnswer(first, float(text))
    if word == "done" and TASK.fullmatch(first):
        return Done(first)
    if word == "failed" and TASK.fullmatch(first):
        return Failed(first, _in_lines(text))
    if word == "permanent" and TASK.fullmatch(first):
        code, _, text = text.partition(" ")
        return Permanent(first, int(code), _in_lines(text)) if CODE.fullmatch(code) else None
    if word == "report" and REASON.fullmatch(first):
        task, _, text = text.partition(" ")
        return Report(first, task, _in_lines(text)) if TASK.fullmatch(task) else None
    if word == "end" and CODE.fullmatch(first):
        return End(int(first))
    return None


def _words(message: Message) -> list[str]:
    if isinstance(message, Beat):
        return ["beat", *(message.used.words() if message.used else ())]
    if isinstance(message, NoAnswer):
        return ["unanswered", message.task, f"{message.seconds:.1f}"]
    if isinstance(message, Hello):
        return ["hello", message.task, message.run]
    if isinstance(message, Done):
        return ["done", message.task]
    if isinstance(message, Failed):
        return ["failed", message.task, _in_one_line(message.message)]
    if isinstance(message, Permanent):
        code, text = str(message.exit_code), _in_one_line(message.message)
        return ["permanent", message.task, code, text]
    if isinstance(message, Report):
        return ["report", message.reason, message.task, _in_one_line(message.message)]
    if isinstance(message, End):
        return ["end", str(message.exit_code)]
    if isinstance(message, Again):
        return ["again"]
    return ["stacks" if isinstance(message, Stacks) else "stopping"]


def _in_one_line(text: str) -> str:
    return LINE_SEPARATOR.join(tidy(text).splitlines())


def _in_lines(text: str) -> str:
    return text.replace(LINE_SEPARATOR, "\n")


DONE, FAILED, PERMANENT, LOST = "done", "failed", "permanent", "lost"


@dataclass(frozen=True)
class Joined:
    """A follower has connected and named its task: for the first time, or after a restart."""

    task: str


@dataclass(frozen=True)
class Left:
    """A follower has left.

    `how`: DONE, FAILED (its program failed), PERMANENT (it failed, with this exit code, and is not
    started again), or LOST (without a message).
    """

    task: str
    how: str
    message: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class Silent:
    """A connected task has sent no heartbeat for this many seconds; sent repeatedly.

    `server`: its process sends heartbeats, but its TensorFlow server does not answer.
    """

    task: str
    seconds: float
    server: bool = False


@dataclass(frozen=True)
class HeardAgain:
    """A follower sent a heartbeat after this many seconds of silence."""

    task: str
    seconds: float


@dataclass(frozen=True)
class Unanswered:
    """Follower `by` has had no answer from `task` for these seconds; sent repeatedly."""

    task: str
    by: str
    seconds: float


TASK_NEWS = (Joined, Left, Silent, HeardAgain, Unanswered)
"""A message about another task that does not end the job by itself."""
Heard = Union[Joined, Left, Report, Silent, HeardAgain, Unanswered]
