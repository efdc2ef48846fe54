"""Counts the steps of a program that reports none, and reads losses and epochs from Keras's logs.

An optimizer counts its updates (`iterations`). A thread reads the counters of the optimizers that
the program trains with once a second, and writes a `step` event if the count has changed. This
works for `fit` and for custom training loops, and adds no work to a step in a `tf.function`. An
optimizer that is only restored, to evaluate a model, is not counted. The thread also gets a
reference to the newest logs of `fit`, and writes an `epoch` event at each end of an epoch. All
these events have `counted`. The thread ends when the program itself writes a step.

It reads only variables of this process, because reading a variable on a ps is a remote call.
Nothing here prints, or raises an exception into the program. This file is also loaded by its path
(on_path/), so it imports nothing from this package.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import json
import math
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from types import ModuleType

LOOK_S = 1.0
LAST_LOOK_S = 1.0
"""The maximum seconds that a program waits for the last report at its end."""
MOST_BYTES = 1 << 20
"""The maximum bytes of the progress file that are read at once."""
OTHERS = 10
"""The number of updates by another optimizer, with none by the counted one, after which that one is
counted."""
FEW, LONGEST_S, MOST_REPORTS = 5, 10.0, 64
MOST_OPTIMIZERS = 1000
MOST_EPOCHS = 1000
ACCURACIES = (
    "accuracy",
    "acc",
    "sparse_categorical_accuracy",
    "categorical_accuracy",
    "binary_accuracy",
)
FIGURES = {
    "accuracy": ACCURACIES,
    "val_loss": ("val_loss",),
    "val_accuracy": tuple(f"val_{name}" for name in ACCURACIES),
}
"""Fields of an `epoch` event, and their names in the logs: the first that exists is used."""
MOST_SCORES = 32
PROGRESS, MAILBOX, CLAIM = "CLUSTER_KIT_PROGRESS", "CLUSTER_KIT_MAILBOX", "steps-of"


class Counter:
    """Computes the program's step from the update count of a single optimizer.

    If a program has several optimizers (a GAN, for example), the step follows the optimizer with
    the most updates when updates are first seen. If that optimizer stops and another one continues,
    the program trains its next model, and the updates of the other optimizer are added.
    """

    def __init__(self) -> None:
        self._counts: int | None = None
        self._before: dict[int, int] = {}
        self._added = 0
        self.step: int | None = None

    def look(self, updates: Mapping[int, int]) -> int | None:
        """Return the current step, None before the first step.

        Args:
            updates: the update count of each optimizer, by a key that identifies the optimizer.
        """
        made = {key: count - self._before.get(key, 0) for key, count in updates.items()}
        if not made.get(self._counts, 0):
            least = OTHERS if self._counts in updates else 1
            found = max(made, key=made.__getitem__, default=None)
            if found is None or made[found] < least:
                return self.step
            self._added = 0 if self.step is None else self.step - self._before.get(found, 0)
            self._counts = found
        self._before = dict(updates)
        self.step = self._added + updates[self._counts]
        return self.step


class Speed:
    """Computes steps per second over the last second and FEW steps, or LONGEST_S if they take
    longer: between two looks there may be one step or two, or little time.
    """

    def __init__(self) -> None:
        self._reports: deque[tuple[float, int]] = deque(maxlen=MOST_REPORTS)

    def of(self, now: float, step: int) -> float | None:
        """Return the speed at a new step; None at the first one, or if the steps went back."""
        if self._reports and step < self._reports[-1][1]:
            self._reports.clear()
        since = None
        for moment, before in reversed(self._reports):
            passed = now - moment
            if passed <= 0 or (since and passed > LONGEST_S):
                break
            since = passed, step - before
            if passed >= 0.9 * LOOK_S and step - before >= FEW:
                break
        self._reports.append((now, step))
        return round(since[1] / since[0], 3) if since else None


class Watch:
    """Records the optimizers and epochs of the program; `follow` runs in a thread.

    Args:
        path: the task's progress file.
        epochs: whether to write `epoch` events.
    """

    def __init__(self, path: str, *, epochs: bool) -> None:
        self._path = path
        self._epochs = epochs
        self._wake = threading.Event()
        self._over = False
        self._process = 0
        self._thread: threading.Thread | None = None
        self._optimizers: dict[int, weakref.ref] = {}
        self._variables: dict[int, object] = {}
        self._number = 0
        self._ended: deque[tuple[float, object, object]] = deque(maxlen=MOST_EPOCHS)
        self._counter = Counter()
        self._written: int | None = None
        self._speed = Speed()
        self._read = max(0, size_of(path) - MOST_BYTES)
        self.logs: object = None
        self.replicas = 1
        """How many replicas' losses are added up in `logs`."""

    def remember(self, optimizer: object) -> None:
        """Read this optimizer from now on, until it is deleted: it applies gradients."""
        with contextlib.suppress(Exception):
            if any(known() is optimizer for known in list(self._optimizers.values())):
                return
            if self._over or len(self._optimizers) >= MOST_OPTIMIZERS:
                return
            self._number += 1
            self._optimizers[self._number] = weakref.ref(optimizer)
            self._start()

    def epoch_ended(self, epoch: object, logs: object) -> None:
        """Let the thread write an `epoch` event soon."""
        with contextlib.suppress(Exception):
            self._start()
            if self._process == os.getpid() and not self._over:
                self._ended.append((time.time(), epoch, logs))
                self._wake.set()

    def _start(self) -> None:
        """Start the thread, once, in the first process of the program that trains.

        A forked process has no such thread, and must not use locks that the thread may have held.
        """
        if not self._process:
            self._process = os.getpid()
            if claimed():
                self._thread = threading.Thread(target=self.follow, name="steps", daemon=True)
                self._thread.start()
                atexit.register(self.finish)
            else:
                self._over = True

    def finish(self) -> None:
        """Let the thread write the last step; called when the program ends."""
        if self._process == os.getpid():
            self._over = True
            self._wake.set()
            self._thread.join(LAST_LOOK_S)

    def follow(self) -> None:
        """Look once a second until the program reports steps itself, or ends."""
        over = False
        with contextlib.suppress(Exception):
            while not over:
                self._wake.wait(LOOK_S)
                self._wake.clear()
                over = self._over
                if not self.look(time.monotonic()):
                    break
        self._over = True
        self._optimizers.clear()
        self._variables.clear()
        self.logs = None

    def look(self, now: float) -> bool:
        """Write new steps and epochs; return False if the program itself reports steps.

        Args:
            now: in seconds of a monotonic clock.
        """
        said, self._read = said_by_program(self._path, self._read)
        if "step" in said:
            return False
        self._epochs = self._epochs and "epoch" not in said
        step = self._counter.look(self._updates())
        logs, self.logs = self.logs, None
        if step is not None and step != self._written:
            keys: dict[str, object] = {"step": step}
            if (speed := self._speed.of(now, step)) is not None:
                keys["steps_per_s"] = speed
            self._written = step
            loss = value_in(logs, "loss")
            if loss is not None:
                keys["loss"] = loss / self.replicas
            self._write("step", time.time(), keys)
        while self._ended:
            moment, epoch, logs = self._ended.popleft()
            if not isinstance(epoch, int) or not self._epochs:
                continue
            keys = {"epoch": epoch + 1} | ({} if step is None else {"step": step})
            scores = scores_in(logs)
            for key, names in FIGURES.items():
                if name := next((name for name in names if name in scores), None):
                    keys[key] = scores.pop(name)
            if scores:
                keys["scores"] = scores
            if (loss := value_in(logs, "loss")) is not None:
                keys["loss"] = loss
            self._write("epoch", moment, keys)
        return True

    def _updates(self) -> dict[int, int]:
        found = {}
        for key, reference in list(self._optimizers.items()):
            optimizer = reference()
            if optimizer is None:  # its last updates still count
                self._optimizers.pop(key, None)
                variable = self._variables.pop(key, None)
            else:
                variable = self._variables[key] = updates_of(optimizer)
            count = int_value(variable)
            if count is not None:
                found[key] = count
        return found

    def _write(self, event: str, moment: float, keys: Mapping[str, object]) -> None:
        """Append an event. If a figure is not finite, append a line without it first, because
        supervisors cannot parse NaN."""
        head = {"time": round(moment, 3), "event": event}
        finite = finite_in(keys)
        for figures in (finite, keys) if finite != keys else (finite,):
            line = json.dumps({**head, **figures, "counted": True})
            append(self._path, line.encode() + b"\n")


def append(path: str, line: bytes) -> None:
    """Append a line in a single write, so that lines never mix; on an error the line is lost."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def size_of(path: str) -> int:
    """Return the size of a file in bytes, 0 if it does not exist."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - pathlib is not imported in programs
    except OSError:
        return 0


def said_by_program(path: str, read: int) -> tuple[set[str], int]:
    """Return which of `step` and `epoch` the program wrote after `read` bytes, and the new offset.

    Events of earlier attempts are ignored: the supervisor writes `start` before each attempt.
    """
    said: set[str] = set()
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return said, read
    try:
        if os.fstat(file).st_size < read:
            read = 0
        text = os.pread(file, MOST_BYTES, read)
    except OSError:
        return said, read
    finally:
        os.close(file)
    complete = text.rfind(b"\n") + 1
    for line in text[:complete].splitlines():
        if not any(name in line for name in (b'"step"', b'"epoch"', b'"start"')):
            continue
        with contextlib.suppress(
            ValueError, TypeError, LookupError, AttributeError, RecursionError
        ):
            event = json.loads(line)
            if event["event"] == "start":
                said.clear()
            elif event.get("counted") is not True:
                said |= {event["event"]} & {"step", "epoch"}
    skipped = 0 if complete else len(text) // MOST_BYTES * MOST_BYTES
    return said, read + (complete or skipped)


def claimed() -> bool:
    """Return True if no other running process of the program has called this before, or if there
    is no mailbox."""
    folder = os.environ.get(MAILBOX)
    if not folder:
        return True
    path = os.path.join(folder, CLAIM)  # noqa: PTH118 - pathlib is not imported in programs
    try:
        before = os.readlink(path)  # noqa: PTH115
        os.kill(int(before), 0)
    except ProcessLookupError:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
    except (OSError, ValueError):
        pass
    try:
        os.symlink(str(os.getpid()), path)  # noqa: PTH211
    except OSError:
        return False
    return True


def updates_of(optimizer: object) -> object:
    """Return the variable that counts an optimizer's updates; None if it does not exist yet.

    It does not read the property `iterations`, which creates the variable in older optimizers.
    """
    with contextlib.suppress(Exception):
        variable = vars(optimizer).get("_iterations")
        variable = vars(variable).get("_value", variable)  # Keras 3 wraps the variable
        copies = getattr(variable, "_values", None)  # a copy for each replica
        return copies[0] if copies else variable
    return None


def int_value(variable: object) -> int | None:
    """Return the value of a counter; None if this process does not have it."""
    with contextlib.suppress(Exception):
        value = local_value(variable)
        return None if value is None else int(value)
    return None


def local_value(variable: object) -> float | None:
    """Return the value of an eager variable of this process; None for any other variable."""
    variables = sys.modules.get("tensorflow.python.ops.resource_variable_ops")
    context = sys.modules.get("tensorflow.python.eager.context")
    if variables is None or not isinstance(variable, variables.BaseResourceVariable):
        return None
    if variable._in_graph_mode or not context.executing_eagerly():
        return None
    return plain_number(variable.numpy()) if is_here(variable.device) else None


def is_here(device: str) -> bool:
    """Whether a device such as `/job:worker/replica:0/task:1/device:CPU:0` is in this process."""
    place = dict(word.split(":", 1) for word in device.split("/") if ":" in word)
    if place.get("job", "localhost") == "localhost":
        return True
    try:
        task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {})
        own = str(task.get("type")), int(task.get("index", 0))
    except (ValueError, TypeError, AttributeError):
        return False
    return (place["job"], place.get("task")) == (own[0], str(own[1])) and own[0] != "ps"


def value_in(logs: object, name: str) -> float | None:
    """Return a number from Keras's logs; None if it is missing, or in another process."""
    with contextlib.suppress(Exception):
        value = logs.get(name)
        if type(value).__name__ == "EagerTensor":
            value = value.numpy() if is_here(value.device) else None
        return plain_number(value)
    return None


def scores_in(logs: object) -> dict[str, float]:
    """Return the figures in Keras's logs but the loss, at most MOST_SCORES."""
    scores: dict[str, float] = {}
    with contextlib.suppress(Exception):
        for name in logs:
            value = None if name == "loss" or type(name) is not str else value_in(logs, name)
            if value is not None and len(scores) < MOST_SCORES:
                scores[name] = value
    return scores


def finite_in(keys: Mapping[str, object]) -> dict[str, object]:
    """Return the keys whose values are not NaN or infinite; within objects, too."""
    found = {key: finite_in(one) if isinstance(one, dict) else one for key, one in keys.items()}
    return {
        key: value
        for key, value in found.items()
        if value != {} and (not isinstance(value, float) or math.isfinite(value))
    }


def replicas_in_logs(model: object) -> int:
    """Return how many replicas' values Keras adds up in the logs of a batch.

    Under MultiWorkerMirroredStrategy Keras 2 adds the means of all replicas. In the logs of an
    epoch it replaces the sum by the mean.
    """
    with contextlib.suppress(Exception):
        strategy = model.distribute_strategy
        if (
            model.distribute_reduction_method in {"auto", "sum"}
            and type(strategy).__name__ == "CollectiveAllReduceStrategy"
            and strategy.extended._in_multi_worker_mode()
        ):
            return int(strategy.num_replicas_in_sync)
    return 1


def plain_number(value: object) -> float | None:
    """Return a Python number, or the only one of an array, as Keras's `F1Score` of one class is;
    None for any other value.
    """
    if isinstance(value, bool):
        return None
    if getattr(value, "size", None) == 1 and hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (int, float)) else None


def prepare(keras: ModuleType, wanted: list[str]) -> None:
    """Watch the optimizers and callbacks of a Keras; called right after that Keras was imported.

    Args:
        wanted: what to count: `steps`, `epochs`, both or neither.
    """
    if watch := the_watch("epochs" in wanted):
        with contextlib.suppress(Exception):
            look_at_fit(keras.callbacks.CallbackList, watch, steps="steps" in wanted)
        if "steps" in wanted:
            with contextlib.suppress(Exception):
                look_at_optimizers(keras.optimizers.Optimizer, watch)
            with contextlib.suppress(Exception):
                look_at_optimizers(keras.optimizers.legacy.Optimizer, watch)


_watches: list[Watch] = []


def the_watch(epochs: bool) -> Watch | None:
    """Return the Watch that all Keras versions of this process share; None outside a cluster."""
    path = os.environ.get(PROGRESS)
    if path and not _watches:
        _watches.append(Watch(path, epochs=epochs))
    return _watches[0] if path else None


def look_at_optimizers(kind: type, watch: Watch) -> None:
    """Let `watch` remember each optimizer when it applies gradients, or does so in a graph."""

    def remembering(plain: Callable) -> Callable:
        @functools.wraps(plain)
        def apply(self: object, *arguments: object, **keys: object) -> object:
            watch.remember(self)
            return plain(self, *arguments, **keys)

        apply.looks_at = watch
        return apply

    for owner in kind.__mro__:
        for name in ("apply_gradients", "apply"):
            plain = vars(owner).get(name)
            if inspect.isfunction(plain) and not hasattr(plain, "looks_at"):
                setattr(owner, name, remembering(plain))


def look_at_fit(kind: type, watch: Watch, *, steps: bool) -> None:
    """Pass the epochs and logs of each `fit` to `watch`; the callbacks are not changed."""

    def replaced(name: str, parameters: list[str]) -> Callable | None:
        plain = getattr(kind, name)
        same = list(inspect.signature(plain).parameters) == ["self", *parameters]
        return plain if same and not hasattr(plain, "looks_at") else None

    if plain_epoch := replaced("on_epoch_end", ["epoch", "logs"]):

        @functools.wraps(plain_epoch)
        def on_epoch_end(self: object, epoch: object, logs: object = None) -> object:
            watch.epoch_ended(epoch, logs)
            return plain_epoch(self, epoch, logs)

        on_epoch_end.looks_at = watch
        kind.on_epoch_end = on_epoch_end

    if steps and (plain_begin := replaced("on_train_begin", ["logs"])):

        @functools.wraps(plain_begin)
        def on_train_begin(self: object, logs: object = None) -> object:
            with contextlib.suppress(Exception):
                watch.replicas = replicas_in_logs(self.model)
            return plain_begin(self, logs)

        on_train_begin.looks_at = watch
        kind.on_train_begin = on_train_begin

    if steps and (plain_batch := replaced("on_train_batch_end", ["batch", "logs"])):

        @functools.wraps(plain_batch)
        def on_train_batch_end(self: object, batch: object, logs: object = None) -> object:
            watch.logs = logs
            return plain_batch(self, batch, logs)

        on_train_batch_end.looks_at = watch
        kind.on_train_batch_end = on_train_batch_end
