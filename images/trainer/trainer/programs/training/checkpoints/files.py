"""Files of TensorFlow's checkpoint format: `<prefix>.index` and `<prefix>.data-*`.

A checkpoint is complete once its index is there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import tensorflow as tf

from trainer.programs.training.errors import CheckpointError, in_short

UNWRITABLE = (
    OSError,
    ValueError,
    tf.errors.InternalError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnknownError,
)
"""What writing a checkpoint raises if the directory is full, missing, or another user's."""


def unwritable(prefix: str | Path, problem: Exception) -> CheckpointError:
    """The error to raise for one of UNWRITABLE, met while writing the checkpoint `prefix`."""
    return CheckpointError(
        f"cannot write {prefix}: {in_short(problem)}; the output directory needs room, and to be"
        " this user's"
    )


def what_is_left(last: str | None) -> str:
    """A clause for the message of a training that diverged; `last` is a checkpoint's name."""
    if last is None:
        return "nothing was saved before"
    return f"{last}, the last good checkpoint, is kept"


def also_as(prefix: Path, name: str) -> None:
    """Give the checkpoint a second name: hard links, or copies if there can be no links."""
    for file in (*prefix.parent.glob(f"{prefix.name}.data-*"),
                 prefix.with_name(f"{prefix.name}.index")):  # fmt: skip
        new = file.with_name(name + file.name.removeprefix(prefix.name))
        new.unlink(missing_ok=True)
        try:
            new.hardlink_to(file)
        except OSError:
            shutil.copyfile(file, new)


def remove(prefix: Path) -> None:
    """Remove a checkpoint's files; the index first: without it the rest counts for nothing."""
    prefix.with_name(f"{prefix.name}.index").unlink(missing_ok=True)
    for file in prefix.parent.glob(f"{prefix.name}.data-*"):
        file.unlink(missing_ok=True)
