"""Writes a program's files for TensorBoard, below `tensorboard/` of the output.

The runs are `train` and `validation`. A figure has the same tag in both, so a plot shows both.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.programs.training.optimizers import updates

tf1 = tf.compat.v1
FOLDER = "tensorboard"
TRAIN, VALIDATION = "train", "validation"


class Board:
    """The event file of one run. Steps are global steps, in every mode of training."""

    def __init__(self, output: Path, run: str) -> None:
        self._writer = tf.summary.create_file_writer(str(output / FOLDER / run))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write a point for each figure, by tag, and flush the file."""
        with self._writer.as_default(step=step):
            for tag, value in values.items():
                tf.summary.scalar(tag, value)
        self._writer.flush()

    def network(self, network: tf.keras.Model) -> None:
        """Write the layers of a model for the tab Graphs, if all layers have a get_config."""
        try:
            layers = network.to_json()
        except NotImplementedError:
            return
        shown = tf1.SummaryMetadata()
        shown.plugin_data.plugin_name, shown.plugin_data.content = "graph_keras_model", b"1"
        with self._writer.as_default(step=0):
            tf.summary.write("keras", layers, metadata=shown)
        self._writer.flush()

    def pictures(
        self, step: int, tag: str, pictures: Sequence[bytes], size: tuple[int, int]
    ) -> None:
        """Write encoded pictures of the same size: width and height in pixels."""
        shown = tf1.SummaryMetadata()
        shown.plugin_data.plugin_name = "images"
        width, height = map(str, size)
        with self._writer.as_default(step=step):
            tf.summary.write(tag, tf.constant([width, height, *pictures]), metadata=shown)
        self._writer.flush()


def write_hyperparameters(
    output: Path, cluster: Mapping[str, Sequence[str]], values: Mapping[str, Any]
) -> None:
    """Write the tab HParams: numbers and texts in `values`, and the number of tasks of each role.

    Entries of mappings in `values` are written as `key.entry`.
    """
    from tensorboard.plugins.hparams import summary_v2

    counts = {f"{role} tasks": len(tasks) for role, tasks in cluster.items()}
    summary = summary_v2.hparams_pb(dict(flat(counts | values)), start_time_secs=time.time())
    with graph_writer(output / FOLDER) as writer:
        writer.add_summary(summary.SerializeToString())


def graph_writer(folder: Path) -> tf1.summary.FileWriter:
    """Return a writer for graph mode, with a separate event file in `folder`.

    TensorFlow names the file after the host and the second of its creation. Of two files created
    in the same second, the later would truncate the earlier.
    """
    with tf.Graph().as_default():
        return tf1.summary.FileWriter(str(folder), filename_suffix=f".{time.time_ns()}")


def flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, bool | int | float | str]]:
    """Return the entries of nested mappings; tuples become texts, and None is omitted."""
    pairs: list[tuple[str, bool | int | float | str]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            pairs += flat(value, f"{before}{key}.")
        elif isinstance(value, bool | int | float | str):
            pairs.append((f"{before}{key}", value))
        elif isinstance(value, list | tuple | set | frozenset) and value:
            pairs.append((f"{before}{key}", " ".join(map(str, value))))
    return pairs


keras = tf.keras
TAGS = {"loss": "loss", "accuracy": "accuracy", "staleness_mean": "staleness"}
"""Names of values in `fit`, and the tag of each."""


class Curves(keras.callbacks.Callback):
    """Writes metrics and learning rate of each epoch, at the global step of its end."""

    def __init__(self, output: Path) -> None:
        super().__init__()
        self._board = Board(output, TRAIN)

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._board.network(self.model)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        optimizer = self.model.optimizer
        figures = {"learning_rate": float(optimizer.learning_rate.numpy())}
        figures |= {tag: float(logs[key]) for key, tag in TAGS.items() if key in logs}
        self._board.scalars(updates(optimizer), figures)
