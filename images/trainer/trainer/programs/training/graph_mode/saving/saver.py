"""Checkpoints by name: `model.ckpt-<global step>`, automatic, `manual.ckpt-<global step>`, and
`ckpt-<number>`, which evaluators look for, and which is never restored.

A checkpoint is complete once its `.index` is there, and may be used once it is published: written,
and the variables found to be finite before and after. Only then is an older one removed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from trainer.programs.training.checkpoints.files import UNWRITABLE, remove, unwritable
from trainer.programs.training.errors import CheckpointError, in_short
from trainer.programs.training.graph_mode.counters import SharedCounters, assign

tf1 = tf.compat.v1
INDEX = re.compile(r"(model|manual)\.ckpt-(\d+)\.index")
DAMAGED = (tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.NotFoundError)
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
    """All complete checkpoints, oldest first."""
    complete = []
    for file in folder.glob("*.ckpt-*.index"):
        match = INDEX.fullmatch(file.name)
        if match:
            complete.append(Saved(int(match[2]), file.with_suffix(""), match[1] == "manual"))
    return sorted(complete)


class Unreadable(Exception):
    """TensorFlow does not recognise a checkpoint's index as one."""


class Checkpoints:
    """Made while the graph is built; only the chief uses it."""

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
        with tf1.device(device):
            self._writer = tf1.train.Saver(kept, max_to_keep=None)
            # Counts are read one by one: an earlier run may have had fewer replicas.
            self._reader = tf1.train.Saver(model, max_to_keep=None).saver_def
            self._sound = all_finite(kept)

    def newest(self) -> Saved | None:
        complete = find(self._folder)
        return complete[-1] if complete else None

    def restore(self, session: tf1.Session) -> Saved | None:
        """Restore the newest checkpoint that is sound; None if there is none at all."""
        for left_over in self._folder.glob("*.tempstate*"):
            left_over.unlink(missing_ok=True)
        damaged: list[str] = []
        for saved in reversed(find(self._folder)):
            try:
                self._read(session, saved)
            except (Unreadable, *DAMAGED) as problem:
                if NO_SUCH_KEY in str(problem):
                    raise CheckpointError(other_model(saved, problem)) from problem
                damaged.append(f"{saved.name} is damaged ({in_short(problem)})")
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
        session.run(
            self._reader.restore_op_name, {self._reader.filename_tensor_name: str(saved.path)}
        )
        for counts in self._counters.counts:
            known = reader.has_tensor(counts.op.name)
            value = reader.get_tensor(counts.op.name) if known else [0] * counts.shape[0]
            assign(session, counts, value)

    def save(self, session: tf1.Session, by_hand: bool = False) -> Saved | None:
        """Write, look, publish, drop the old. None, and nothing is left, if a variable is not
        finite; CheckpointError if it cannot be written."""
        if not session.run(self._sound):
            return None
        step = int(session.run(self._counters.global_step))
        prefix = self._folder / f"{'manual' if by_hand else 'model'}.ckpt-{step}"
        before = find(self._folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with session.graph.as_default():  # in eager mode the Saver takes another way
                self._writer.save(session, str(prefix), write_meta_graph=False, write_state=False)
        except UNWRITABLE as problem:
            raise unwritable(prefix, problem) from problem
        saved = Saved(step, prefix, by_hand)
        if not session.run(self._sound):
            if saved not in before:
                remove(saved.path)
            return None
        tf1.train.update_checkpoint_state(str(self._folder), str(prefix), [str(prefix)])
        automatic = [old for old in find(self._folder) if not old.by_hand and old != saved]
        for old in automatic[: max(0, len(automatic) + (not by_hand) - self._keep)]:
            remove(old.path)
        return saved


def opened(saved: Saved) -> tf.train.CheckpointReader:
    """A reader of the checkpoint; Unreadable if its index is damaged."""
    try:
        return tf.train.load_checkpoint(str(saved.path))
    except tf.errors.OpError as problem:  # of no particular kind
        raise Unreadable(in_short(problem)) from problem


def among(v: tf.Variable, others: Sequence[tf.Variable]) -> bool:
    """Whether `v` is one of `others`, by identity."""
    return any(v is other for other in others)


def all_finite(variables: list[tf.Variable]) -> tf.Tensor:
    """Whether every float variable is finite, a bool scalar; computed where the variables are."""
    sound = []
    for v in variables:
        if v.dtype.is_floating:
            with tf1.device(v.device):
                sound.append(tf.reduce_all(tf.math.is_finite(v.read_value())))
    return tf.reduce_all(tf.stack(sound)) if sound else tf.constant(True)


def other_model(saved: Saved, problem: Exception) -> str:
    """The message for a checkpoint whose variables are not this model's."""
    return (
        f"{saved.path} belongs to another model ({in_short(problem)}); take the arguments that it"
        " was made with, or another output directory"
    )
