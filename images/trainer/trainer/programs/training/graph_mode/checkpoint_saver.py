"""Writes the chief's checkpoints: regularly, on request, and before a stop.

`model.ckpt-<global step>` are automatic, `manual.ckpt-<global step>` are saved on request, and
`ckpt-<number>` are for evaluators and never restored.

A checkpoint is complete when its `.index` exists. It is published, and may then be used, if the
variables were finite before and after the write. Older checkpoints are removed after that.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from trainer.programs.training.checkpoint_files import (
    UNWRITABLE,
    last_good_clause,
    link_checkpoint,
    remove_checkpoint,
    unwritable,
    writing,
)
from trainer.programs.training.graph_mode.counters import SharedCounters, assign
from trainer.programs.training.program import CheckpointError, Diverged, headline

tf1 = tf.compat.v1
INDEX = re.compile(r"(model|manual)\.ckpt-(\d+)\.index")
DAMAGED = (tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.NotFoundError)
MISSING = (tf.errors.FailedPreconditionError, tf.errors.NotFoundError)
"""Errors of writing if the directory was removed, or a ps was lost."""
NO_SUCH_KEY = "not found in checkpoint"


@dataclass(frozen=True, order=True)
class Saved:
    """One complete checkpoint; `path` is its prefix."""

    step: int
    path: Path
    by_hand: bool

    @property
    def name(self) -> str:
        return self.path.name


def find(folder: Path) -> list[Saved]:
    """Returns all complete checkpoints, oldest first."""
    complete = []
    for file in folder.glob("*.ckpt-*.index"):
        match = INDEX.fullmatch(file.name)
        if match:
            complete.append(Saved(int(match[2]), file.with_suffix(""), match[1] == "manual"))
    return sorted(complete)


def newest(folder: Path) -> Saved | None:
    """Returns the newest complete checkpoint, if there is one."""
    return next(reversed(find(folder)), None)


class Unreadable(Exception):
    """TensorFlow does not recognise a checkpoint's index file."""


class Checkpoints:
    """Saves and restores checkpoints; created with the graph, and used only by the chief."""

    def __init__(
        self,
        folder: Path,
        keep: int,
        counters: SharedCounters,
        left_out: Sequence[tf.Variable],
        device: str,
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._counters = counters
        kept = [v for v in tf1.global_variables() if not among(v, left_out)]
        model = [v for v in kept if not among(v, counters.counts)]
        values = {v.op.name: read(v) for v in kept}
        with tf1.device(device):
            self._prefix = tf1.placeholder(tf.string, (), "checkpoint")
            self._write = writing(self._prefix, values)
            # Counts are restored separately: an earlier run may have had fewer replicas.
            self._restore = restoring(self._prefix, model)
            self._sound = all_finite(values.values())

    def restore(self, session: tf1.Session) -> Saved | None:
        """Restore the newest undamaged checkpoint; returns None if there is no checkpoint."""
        for left_over in self._folder.glob("*.tempstate*"):
            left_over.unlink(missing_ok=True)
        damaged: list[str] = []
        for saved in reversed(find(self._folder)):
            try:
                self._read(session, saved)
            except (Unreadable, *DAMAGED) as problem:
                if NO_SUCH_KEY in str(problem):
                    raise CheckpointError(other_model(saved, problem)) from problem
                damaged.append(f"{saved.name} is damaged ({headline(problem)})")
                print(f"error: {damaged[-1]}", file=sys.stderr, flush=True)
            except tf.errors.InvalidArgumentError as problem:
                raise CheckpointError(other_model(saved, problem)) from problem
            else:
                return saved
        if damaged:
            raise CheckpointError(
                f"{'; '.join(damaged)}, and {self._folder} holds no other; put a copy back, or"
                " remove it to train from the beginning"
            )
        return None

    def _read(self, session: tf1.Session, saved: Saved) -> None:
        reader = opened(saved)
        session.run(self._restore, {self._prefix: str(saved.path)})
        assign(session, *((counts, counts_in(reader, counts)) for counts in self._counters.counts))

    def save(self, session: tf1.Session, by_hand: bool = False) -> Saved | None:
        """Write, check and publish a checkpoint, and remove old ones.

        Returns None, and leaves no file, if a variable is not finite. Raises CheckpointError if
        the checkpoint cannot be written.
        """
        if not session.run(self._sound):
            return None
        step = int(session.run(self._counters.global_step))
        prefix = self._folder / f"{'manual' if by_hand else 'model'}.ckpt-{step}"
        before = find(self._folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            session.run(self._write, {self._prefix: str(prefix)})
        except UNWRITABLE as problem:
            raise unwritable(prefix, problem) from problem
        except MISSING as problem:
            if self._folder.is_dir():
                raise
            raise unwritable(prefix, problem) from problem
        saved = Saved(step, prefix, by_hand)
        if not session.run(self._sound):
            if saved not in before:
                remove_checkpoint(saved.path)
            return None
        tf1.train.update_checkpoint_state(str(self._folder), str(prefix), [str(prefix)])
        automatic = [old for old in find(self._folder) if not old.by_hand and old != saved]
        for old in automatic[: max(0, len(automatic) + (not by_hand) - self._keep)]:
            remove_checkpoint(old.path)
        return saved


def counts_in(reader: tf.train.CheckpointReader, counts: tf.Variable) -> object:
    """Return the value of `counts` in a checkpoint; zeros for a replica that the run lacked."""
    known = reader.has_tensor(counts.op.name)
    return reader.get_tensor(counts.op.name) if known else [0] * counts.shape[0]


def opened(saved: Saved) -> tf.train.CheckpointReader:
    """Return a reader of the checkpoint; raise Unreadable if its index is damaged."""
    try:
        return tf.train.load_checkpoint(str(saved.path))
    except tf.errors.OpError as problem:  # TensorFlow raises no more specific class
        raise Unreadable(headline(problem)) from problem


def among(v: tf.Variable, others: Sequence[tf.Variable]) -> bool:
    """Returns whether `v` is one of `others`, by identity."""
    return any(v is other for other in others)


def read(v: tf.Variable) -> tf.Tensor:
    """Returns the value of a variable, on its device.

    A `tf1.train.Saver` and `tf.math.is_finite` would take eight ops for each variable in place of
    three, and Python needs about a millisecond for each op of a graph.
    """
    with tf1.device(v.device):
        return tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=v.dtype.base_dtype)


def restoring(prefix: tf.Tensor, variables: Sequence[tf.Variable]) -> tf.Operation:
    """Returns an op that gives the variables their values in the checkpoint `prefix`."""
    values = tf.raw_ops.RestoreV2(
        prefix=prefix,
        tensor_names=[v.op.name for v in variables],
        shape_and_slices=[""] * len(variables),
        dtypes=[v.dtype.base_dtype for v in variables],
    )
    assigned = []
    for v, value in zip(variables, values):
        with tf1.device(v.device):
            assigned.append(
                tf.raw_ops.AssignVariableOp(resource=v.handle, value=value, validate_shape=True)
            )
    return tf.group(*assigned)


CURT_HEALTH = 2
"""The mode of DebugNumericSummaryV2 whose value is [-1, 1 if an element is not finite or else 0],
float32."""


def all_finite(values: Iterable[tf.Tensor]) -> tf.Tensor:
    """Returns a bool scalar: every float is finite. It is computed on the devices of `values`."""
    unsound: dict[str, list[tf.Tensor]] = {}
    for value in values:
        if value.dtype.is_floating:
            with tf1.device(value.device):
                summary = tf.raw_ops.DebugNumericSummaryV2(
                    input=value, tensor_debug_mode=CURT_HEALTH
                )
            unsound.setdefault(value.device, []).append(summary)
    sums = []
    for device, summaries in unsound.items():
        with tf1.device(device):
            sums.append(tf.add_n(summaries))
    return tf.equal(tf.add_n(sums)[1], 0.0) if sums else tf.constant(True)


def other_model(saved: Saved, problem: Exception) -> str:
    """Returns the message for a checkpoint with the variables of another model."""
    return (
        f"{saved.path} belongs to another model ({headline(problem)}); use the arguments with which"
        " it was made, or another output directory"
    )


ANSWER_S = 0.3
"""The time that a request to save waits for the end of an update; then it saves in any case."""
FOREVER_S = 3600.0


class CheckpointManager:
    """Saves between updates, in the training thread; other threads can request a save."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        save_secs: float,
        milestone_steps: int = 0,
        on_milestone: Callable[[], None] | None = None,
    ) -> None:
        self.last: Saved | None = None
        self._on_milestone = on_milestone
        self._milestone_steps = milestone_steps
        self._milestone = 0
        self._checkpoints = checkpoints
        self._save_secs = save_secs
        self._due = float("inf")
        self._session: tf.compat.v1.Session | None = None
        self._lock = threading.Lock()
        self._by_hand = threading.Event()
        self._stopping = threading.Event()
        self._saved = threading.Event()

    def begin(self, session: tf.compat.v1.Session, restored: Saved | None) -> None:
        """Use `session` for saving from now on."""
        self.last = restored
        self._milestone = self._milestone_of(restored.step if restored else 0)
        self._session = session
        self._postpone()

    def end(self) -> None:
        """Save nothing until the next `begin`: servers of the session were lost."""
        self._session = None

    def lacks(self, step: int) -> bool:
        """Whether no checkpoint contains the steps up to `step`."""
        return step > (self.last.step if self.last else 0)

    def between_updates(self, step: int) -> None:
        """Save if a checkpoint is due; if the process is being stopped, do not return."""
        if self._stopping.is_set():
            self._save_and_tell()
            time.sleep(FOREVER_S)
        elif self._by_hand.is_set():
            self._by_hand.clear()
            self._say_saved(self.save(by_hand=True))
        elif self._milestone_of(step) > self._milestone:
            self._name_milestone(self.save())
        elif time.monotonic() >= self._due:
            self.save()

    def save(self, by_hand: bool = False) -> Saved:
        """Save now and return the checkpoint; raise Diverged if a variable is not finite."""
        with self._lock:
            saved = self._checkpoints.save(self._session, by_hand)
        self._postpone()
        if saved is None:
            raise Diverged(f"a variable is not finite any more; {self.what_is_left()}")
        self.last = saved
        return saved

    def save_last(self) -> None:
        """Save after the last update of all replicas; if the step is a milestone, name it so."""
        saved = self.save()
        if self._milestone_of(saved.step) > self._milestone:
            self._name_milestone(saved)

    def _name_milestone(self, saved: Saved) -> None:
        self._milestone = self._milestone_of(saved.step)
        link_checkpoint(saved.path, f"ckpt-{self._milestone}")
        if self._on_milestone:
            self._on_milestone()

    def ask(self) -> None:
        """Save between two updates, or at once if no update follows soon; for other threads.

        Raises CheckpointError if there is no session: there is nothing to save.
        """
        if self._session is None:
            raise CheckpointError(
                "the training has not begun, or waits for a lost ps; ask again when it makes steps"
            )
        self._by_hand.set()
        time.sleep(ANSWER_S)
        if self._by_hand.is_set():
            self._by_hand.clear()
            self._say_saved(self.save(by_hand=True))

    def save_before_the_end(self) -> Saved | None:
        """Save, and prevent later updates; called on SIGTERM from another thread.

        Returns None if there was nothing to save.
        """
        if self._session is None:
            return None
        self._stopping.set()
        if not self._saved.wait(ANSWER_S):
            self._save_and_tell()
        return self.last

    def what_is_left(self) -> str:
        return last_good_clause(self.last and self.last.name)

    def _save_and_tell(self) -> None:
        with self._lock:
            if not self._saved.is_set():
                self.last = self._checkpoints.save(self._session) or self.last
                self._saved.set()

    def _milestone_of(self, step: int) -> int:
        return step // self._milestone_steps if self._milestone_steps else 0

    def _postpone(self) -> None:
        self._due = time.monotonic() + self._save_secs if self._save_secs else float("inf")

    def _say_saved(self, saved: Saved) -> None:
        print(f"saved on request: {saved.name}", flush=True)
