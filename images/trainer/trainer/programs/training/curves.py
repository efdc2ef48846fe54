"""What the leader of a tf_keras `fit` leaves for TensorBoard: the model, each epoch's figures."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from trainer.programs.training.board import TRAIN, Board

keras = tf.keras
TAGS = {"loss": "loss", "accuracy": "accuracy", "staleness_mean": "staleness"}
"""By the names that `fit` has for them."""


class Curves(keras.callbacks.Callback):
    """Figures and learning rate of each epoch, by the global step at its end."""

    def __init__(self, output: Path) -> None:
        super().__init__()
        self._board = Board(output, TRAIN)

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._board.network(self.model)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        optimizer = self.model.optimizer
        figures = {"learning_rate": float(optimizer.learning_rate.numpy())}
        figures |= {tag: float(logs[key]) for key, tag in TAGS.items() if key in logs}
        self._board.scalars(int(optimizer.iterations.numpy()), figures)
