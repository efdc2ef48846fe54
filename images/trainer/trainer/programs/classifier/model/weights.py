"""Weights from a checkpoint, whichever way of training wrote it."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.programs.training.checkpoints.snapshot import name_of

GLOBAL_STEP = "global_step"


def load(path: str | Path, model: tf.keras.Model) -> int:
    """Read the checkpoint with prefix `path` into `model`; the steps that it has been trained for.

    Graph mode writes variables by their names, `fit` the objects of a compiled model.
    """
    reader = tf.train.load_checkpoint(str(path))
    if not reader.has_tensor(GLOBAL_STEP):
        model.load_weights(str(path)).expect_partial()
        return int(model.optimizer.iterations)
    names = [name_of(weight) for weight in model.weights]
    missing = [name for name in names if not reader.has_tensor(name)]
    if missing:
        raise TrainerError(
            f"{path} belongs to another model: it has no {missing[0]}; give --model and the sizes"
            " that it was trained with"
        )
    model.set_weights([reader.get_tensor(name) for name in names])
    return int(reader.get_tensor(GLOBAL_STEP))
