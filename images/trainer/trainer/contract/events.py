"""The events that tasks write into `/output/progress/<task>.jsonl`: one JSON object per line.

Each event is a frozen class. A line has the event's name (`event`), its `time` in Unix seconds, and
its fields, any of which may be absent. Any program can write into these files. So `decode`, the
only reader, checks everything: a value of the wrong kind counts as absent; unknown fields are
ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from .endings import REASONS

HUGE = 1e30
"""Valid numbers in events are smaller than this."""
MOST_NAMES = 20_000
"""The maximum number of names that are read from a list; further ones are ignored."""
MOST_SCORES = 32
SCORE_NAME = re.compile(r"[A-Za-z_][\w./ -]{0,63}", re.ASCII)
TASK_NAME = re.compile(r"[a-z_]+-\d{1,6}")


class Kind(Enum):
    """The kind of a field's value."""

    NUMBER = "a finite number"
    FIGURE = "a number, which can be infinite or NaN if training diverges"
    FLAG = "true or false"
    TASK = "the name of a task"
    REASON = "one of endings.REASONS"
    LINE = "a text that is shown on one line"
    TEXT = "a text"
    NAMES = "a list of texts"
    TASKS = "a list of names of tasks"
    COUNTS = "an object that maps names of tasks to numbers"
    SCORES = "an object that maps names of metrics to figures"
    JSON = "any value of JSON"


@dataclass(frozen=True)
class Event:
    """An event; without its `needed` fields it is ignored.

    If it is `open`, its line can have any keys, and `values` has all of them.
    """

    needed: ClassVar[tuple[str, ...]] = ()
    open: ClassVar[bool] = False


def _field(kind: Kind, meaning: str = "") -> Any:
    return field(default=None, metadata={"kind": kind, "meaning": meaning})


_number, _figure, _flag = (partial(_field, k) for k in (Kind.NUMBER, Kind.FIGURE, Kind.FLAG))
_task, _reason = (partial(_field, kind) for kind in (Kind.TASK, Kind.REASON))
_names, _tasks = (partial(_field, kind) for kind in (Kind.NAMES, Kind.TASKS))
_line, _text, _json = (partial(_field, k) for k in (Kind.LINE, Kind.TEXT, Kind.JSON))
_counts, _scores = partial(_field, Kind.COUNTS), partial(_field, Kind.SCORES)


@dataclass(frozen=True)
class Start(Event):
    """Written by a program's supervisor before each attempt."""

    attempt: float | None = _number("1, 2, …")


@dataclass(frozen=True)
class Failure(Event):
    """Written by the leader's supervisor when its program has failed, before the cause is known."""

    exit_code: float | None = _number()


@dataclass(frozen=True)
class Ready(Event):
    """Written by a server that listens, and by a leader whose servers all answer."""


@dataclass(frozen=True)
class Devices(Event):
    """Written by the leader before `ready`, for each server with promised GPUs; by a program, for
    itself, after it has imported TensorFlow.
    """

    of: str | None = _task("a task's name")
    promised: tuple[str, ...] | None = _names("device ids")
    sees: tuple[str, ...] | None = _names('`["NVIDIA H200 (pci 0000:3b:00.0)"]`')
    broken: str | None = _text('how the devices differ from the promise, `""` if they do not')


@dataclass(frozen=True)
class Training(Event):
    """Written by the leader's built-in program when it knows the last step."""

    strategy: str | None = _line()
    images_per_step: float | None = _number()
    steps: float | None = _number("the global step at which training ends")


@dataclass(frozen=True)
class Step(Event):
    """Written by the leader's program at the first step and about once a second; in graph mode by
    the other workers' programs, too. If a program writes no steps, the kit writes them: the
    supervisor of a coordinator, or for other programs a hook in the program's process.
    """

    step: float | None = _number()
    steps_per_s: float | None = _number()
    loss: float | None = _figure("the loss, if it is known")
    own_steps: float | None = _number(
        "the steps that this task has made since its program started; used to find stragglers"
    )
    counted: bool | None = _flag(
        "whether the kit has counted the steps, since the program reports none"
    )


@dataclass(frozen=True)
class Phase(Event):
    """Written by built-in programs: the phase that begins now. Steps are expected only in
    `training`. A leader whose program has ended, while others decide, writes `waiting`.
    """

    name: str | None = _line("`training`, `validation`, `finishing`, `waiting`")


WAITING = "waiting"
"""The phase of a leader whose program has ended, while other tasks decide."""


@dataclass(frozen=True)
class Placement(Event):
    """Written by the leader's program when it begins to train; by the kit's hooks in a user's
    program whenever it has created variables on a ps.
    """

    variables: Any = _json(  # noqa: RUF009
        'which task holds which variable: `[{"name": "dense/kernel", "on": "ps-1", "bytes": '
        '4096, "order": 0}]`, the largest first; `order` is the place in which they were created'
    )


@dataclass(frozen=True)
class Epoch(Event):
    """Written by the chief's built-in program; for `fit` in a user's program, by the kit."""

    epoch: float | None = _number("from 1")
    step: float | None = _number()
    loss: float | None = _figure()
    accuracy: float | None = _number()
    val_loss: float | None = _figure("of `fit`'s validation")
    val_accuracy: float | None = _number("of `fit`'s validation")
    scores: Mapping[str, float] | None = _scores(
        'other figures of `fit`: `{"mae": …, "val_mae": …}`'
    )
    learning_rate: float | None = _number()
    staleness: float | None = _number("mean of the epoch's updates, if updates can be stale")
    counted: bool | None = _flag("whether the kit has written it, since the program reports none")


@dataclass(frozen=True)
class Scoring(Event):
    """Written by built-in evaluators when they begin to score, and when all is scored."""

    pending: float | None = _number("checkpoints to score; 0: the evaluator waits for the next")


@dataclass(frozen=True)
class Evaluation(Event):
    """Written by the evaluator for each checkpoint that it has scored."""

    checkpoint: str | None = _line("the checkpoint's name")
    written: float | None = _number("when it was written, Unix seconds")
    step: float | None = _number()
    loss: float | None = _figure()
    accuracy: float | None = _number("classifier")
    map: float | None = _number("detection")
    map_50: float | None = _number("detection")


@dataclass(frozen=True)
class Metrics(Event):
    """Written by programs: final metrics, such as `test_accuracy` or `steps_per_second`."""

    open = True
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Retry(Event):
    """Written by the leader's supervisor before another attempt."""

    attempt: float | None = _number("the number of the attempt that begins")
    reason: str | None = _text("a sentence")


@dataclass(frozen=True)
class Silent(Event):
    """Written by the leader's supervisor: a task is frozen, cut off, or gone."""

    needed = ("of",)
    of: str | None = _task("a task's name")
    last_heard: float | None = _number("Unix seconds")
    server: bool | None = _flag("whether its server is what does not answer")
    gone: bool | None = _flag("whether its process has ended, and no new one has started")


@dataclass(frozen=True)
class Heard(Event):
    """Written by the leader's supervisor: a silent task sends heartbeats again."""

    needed = ("of",)
    of: str | None = _task("a task's name")
    seconds: float | None = _number("how long it was silent")


@dataclass(frozen=True)
class Unanswered(Event):
    """Written by the leader's supervisor: the network between two tasks that both answer the
    leader is cut.
    """

    needed = ("of", "by")
    of: str | None = _task("a task's name")
    by: str | None = _task("the task that gets no answer from it")
    seconds: float | None = _number("how long it has got no answer")


@dataclass(frozen=True)
class Waiting(Event):
    """Written by the leader's supervisor: no task has made a step since a task was lost."""

    of: str | None = _task("a task's name")
    seconds: float | None = _number("the time since it was lost")


@dataclass(frozen=True)
class Waited(Event):
    """Written by the leader's supervisor: training continues."""

    of: str | None = _task("a task's name")
    seconds: float | None = _number("how long training waited for it")


@dataclass(frozen=True)
class Functions(Event):
    """Written by the leader's supervisor while a coordinator's program waits for scheduled
    functions.
    """

    done: float | None = _number("functions that the workers have finished")
    of: float | None = _number("functions scheduled since it last waited for all of them")


@dataclass(frozen=True)
class Worked(Event):
    """Written by the leader's supervisor, about every two seconds while the workers of a
    coordinator finish functions.
    """

    needed = ("functions",)
    functions: Mapping[str, float] | None = _counts(
        "how many each worker has finished since the leader's program started, without those of "
        "Keras's `evaluate`"
    )
    per_s: Mapping[str, float] | None = _counts("how many it finishes each second")


@dataclass(frozen=True)
class Straggling(Event):
    """Written by the leader's supervisor: a task is a straggler."""

    needed = ("of",)
    of: str | None = _task("a task's name")
    seconds: float | None = _number("how long it has been a straggler")
    steps_per_s: float | None = _number(
        "its steps per second; `null` if unknown, like all fields below"
    )
    others_steps_per_s: float | None = _number("the median of the others")
    share: float | None = _number("its share of all steps, 0 to 1")
    slowed: float | None = _number(
        "the factor by which its CPU limit slows it down, if steps do not show it"
    )
    cause: str | None = _line("`cpu-limit`, `bandwidth-limit`, `memory` or `unknown`")
    limit: float | None = _number("the limit that is the cause: CPUs, or bits per second")
    message: str | None = _text("a sentence")


@dataclass(frozen=True)
class Straggled(Event):
    """Written by the leader's supervisor: a task is no longer a straggler, or the attempt has
    ended.
    """

    of: str | None = _task("a task's name")
    seconds: float | None = _number("how long it was a straggler")
    share: float | None = _number("its share of all steps in this time")
    message: str | None = _text("a sentence")


@dataclass(frozen=True)
class Profiled(Event):
    """Written by the leader's supervisor: the trace of the manifest's `profile` was taken, or
    failed.
    """

    folder: str | None = _line('path of the trace below the output; `""` if there is none')
    missing: tuple[str, ...] | None = _tasks("names of the tasks that are missing in it")
    message: str | None = _text("why there is no trace")


@dataclass(frozen=True)
class Usage(Event):
    """Written by every task into the separate file `<task>.usage`: what it uses, once a second.

    Of N > 10 tasks each writes it every N / 10 seconds, at most five, and every five seconds after
    an hour.
    """

    cpu_s: float | None = _number("CPU seconds since the container's start")
    memory: float | None = _number("bytes in use")
    rx_bytes: float | None = _number("bytes on this container's network since its start")
    tx_bytes: float | None = _number("likewise")
    sent_to: Any = _json(  # noqa: RUF009
        "bytes sent to each other task since its start, by task; in every tenth event"
    )
    gpus: Any = _json(  # noqa: RUF009
        "for each GPU: `busy`, the share of time in which it computed, and `memory` in bytes"
    )


@dataclass(frozen=True)
class End(Event):
    """Written by every supervisor as its last line."""

    exit_code: float | None = _number()
    reason: str | None = _reason("see below")
    message: str | None = _text("a text; its first line is the summary")
    tasks: tuple[str, ...] | None = _tasks("names of the tasks to blame, or `[]`")
    after_job: bool | None = _flag(
        "whether the program failed only because the job had ended successfully"
    )
    rx_bytes: float | None = _number("bytes on this container's network, if they were counted")
    tx_bytes: float | None = _number("likewise")
    decided: str | None = _text(
        "who decided how the job ended, if the manifest's `success` or `restart` did: a sentence"
    )
    stays: bool | None = _flag(
        "whether the program has ended for good, and its container ends with the job"
    )
    in_tmp: tuple[str, ...] | None = _names(
        "models and checkpoints that the leader's program has left in `/tmp`, which is not kept"
    )
    forgotten: float | None = _number(
        "functions of a coordinator that no worker had finished when its program ended"
    )


EVENTS: Mapping[str, type[Event]] = {one.__name__.lower(): one for one in Event.__subclasses__()}
"""Each event by its name."""


@dataclass(frozen=True)
class Own(Event):
    """An event that only the program defines, with the fields that the kit reads."""

    name: str | None = _line()
    step: float | None = _number()
    steps_per_s: float | None = _number()
    loss: float | None = _figure()
    own_steps: float | None = _number()
    epoch: float | None = _number()
    accuracy: float | None = _number()
    learning_rate: float | None = _number()
    staleness: float | None = _number()
    checkpoint: str | None = _line()
    written: float | None = _number()
    map: float | None = _number()
    map_50: float | None = _number()


def name_of(event: Event) -> str:
    """Return the name that an event has in its line."""
    return event.name or "" if isinstance(event, Own) else type(event).__name__.lower()


def keys_of(event: type[Event]) -> tuple[Field[Any], ...]:
    """Return the fields of an event that are keys in its line: all but `values`."""
    return tuple(one for one in fields(event) if one.metadata)


def number(value: object) -> float | None:
    """Return the value if it is a finite number below HUGE, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) < HUGE and math.isfinite(value) else None


def _figure_of(value: object) -> float | None:
    return value if isinstance(value, float) and not math.isfinite(value) else number(value)


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _task_of(value: object) -> str | None:
    return value if isinstance(value, str) and TASK_NAME.fullmatch(value) else None


def _names_of(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(name for name in value[:MOST_NAMES] if isinstance(name, str))


def _counts_of(value: object) -> dict[str, float] | None:
    if not isinstance(value, dict):
        return None
    first = islice(value.items(), MOST_NAMES)
    numbers = {task: number(count) for task, count in first if _task_of(task)}
    return {task: count for task, count in numbers.items() if count is not None and count >= 0}


def _scores_of(value: object) -> dict[str, float] | None:
    if not isinstance(value, dict):
        return None
    named = {name: _figure_of(score) for name, score in value.items() if SCORE_NAME.fullmatch(name)}
    known = ((name, score) for name, score in named.items() if score is not None)
    return dict(islice(known, MOST_SCORES))


Checks = Mapping[Kind, Callable[[Any], Any]]
CHECKS: Checks = {
    Kind.NUMBER: number,
    Kind.FIGURE: _figure_of,
    Kind.FLAG: lambda value: value if isinstance(value, bool) else None,
    Kind.TASK: _task_of,
    Kind.REASON: lambda value: value if isinstance(value, str) and value in REASONS else None,
    Kind.LINE: _text_of,
    Kind.TEXT: _text_of,
    Kind.NAMES: _names_of,
    Kind.TASKS: _names_of,
    Kind.COUNTS: _counts_of,
    Kind.SCORES: _scores_of,
    Kind.JSON: lambda value: value,
}
"""For each kind, a function that returns a valid value, or None for an invalid one."""


KINDS: Mapping[type[Event], Mapping[str, Kind]] = {
    event: {one.name: one.metadata["kind"] for one in keys_of(event)}
    for event in (*EVENTS.values(), Own)
}
"""The keys of each event, and the kinds of their values."""


def decode(name: str, values: Mapping[str, Any], checks: Checks = CHECKS) -> Event | None:
    """Return the event with this name, `Own` for other names; None if a needed field is absent.

    Args:
        values: the line's JSON object.
        checks: CHECKS, or stricter functions.
    """
    event = EVENTS.get(name, Own)
    if event is Metrics:
        as_text, plain = checks[Kind.TEXT], checks[Kind.JSON]
        return Metrics({as_text(key): plain(value) for key, value in values.items()})
    if event is Own:
        values = {**values, "name": name}
    kinds, found = KINDS[event], {}
    for key, value in values.items():
        if key in kinds and (checked := checks[kinds[key]](value)) is not None:
            found[key] = checked
    return None if any(key not in found for key in event.needed) else event(**found)
