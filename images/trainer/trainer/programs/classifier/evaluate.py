"""The evaluator: scores every checkpoint on Validate, and at the end the final model on Test."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tensorflow as tf

from trainer.agent import atomic
from trainer.agent.progress_file import Progress
from trainer.programs.classifier import (
    checkpoints,
    classifier_model,
    image_files,
    input_pipeline,
)
from trainer.programs.classifier.checkpoints import Checkpoint
from trainer.programs.classifier.classifier_model import exported
from trainer.programs.classifier.options import Options
from trainer.programs.training import result, sidecar
from trainer.programs.training.board import VALIDATION, Board
from trainer.programs.training.checkpoint_files import DAMAGED
from trainer.programs.training.export import SavedModel

REPLACED_S = 10.0
"""Maximum seconds in which a checkpoint may be unreadable: a leader that began again from an
earlier one is replacing it."""


@dataclass
class Scores:
    """The checkpoints that are scored (name → time of writing, ns), and the best score so far."""

    written: dict[str, int] = field(default_factory=dict)
    best: str = ""
    best_accuracy: float = -1.0
    best_loss: float = float("inf")
    last_accuracy: float | None = None


def evaluate(options: Options, progress: Progress | None) -> None:
    """Score checkpoints in order until the job has ended and the last one is scored."""
    classes = image_files.class_names(options.data)
    split = image_files.split(options.data, image_files.VALIDATE, classes, options.seed)
    image_files.check_images(split.paths)
    network = classifier_model.build(options, len(classes))
    images = input_pipeline.scoring_set(split, len(classes), options)
    memory = options.output / checkpoints.MEMORY
    scores = Scores(**json.loads(memory.read_text())) if memory.exists() else Scores()
    board = Board(options.output, VALIDATION)
    best = exported(network, options.output / "best", options, classes)

    def waiting() -> list[Checkpoint]:
        return [c for c in checkpoints.find(options.output)
                if scores.written.get(c.name) != c.written]  # fmt: skip

    unreadable: dict[Checkpoint, float] = {}

    def score_and_remember(checkpoint: Checkpoint) -> None:
        if not Path(f"{checkpoint.path}.index").exists():
            return  # removed by the leader, which had not yet seen this evaluator
        step = load(checkpoint, network, unreadable)
        if step is None:
            time.sleep(sidecar.POLL_S)
            return
        score(step, network, images, checkpoint, scores, best, progress, board)
        atomic.replace(memory, json.dumps(asdict(scores)))
        checkpoints.prune(options.output, options.graph.keep)

    sidecar.score_each(waiting, score_and_remember, progress)
    if progress and scores.best:
        progress.write(
            "metrics",
            validation_accuracy=scores.last_accuracy,
            best_validation_accuracy=scores.best_accuracy,
            best_checkpoint=scores.best,
        )


def load(
    checkpoint: Checkpoint, network: tf.keras.Model, unreadable: dict[Checkpoint, float]
) -> int | None:
    """Read a checkpoint into the network; returns its step, or None if it is being replaced.

    Args:
        unreadable: since when each checkpoint cannot be read; is changed.
    Raises:
        One of DAMAGED: it has been unreadable for too long.
    """
    try:
        return classifier_model.load(checkpoint.path, network)
    except DAMAGED:
        if time.monotonic() - unreadable.setdefault(checkpoint, time.monotonic()) > REPLACED_S:
            raise
        return None


def score(
    step: int,
    network: tf.keras.Model,
    images: tf.data.Dataset,
    checkpoint: Checkpoint,
    scores: Scores,
    best: SavedModel,
    progress: Progress | None,
    board: Board,
) -> None:
    """Evaluate one checkpoint of `step`, which the network has, report it, and write the model to
    `best` if it is the best so far."""
    began = time.monotonic()
    scored = network.evaluate(images, verbose=0, return_dict=True)
    loss, accuracy = float(scored["loss"]), float(scored["accuracy"])
    board.scalars(step, {"loss": loss, "accuracy": accuracy})
    scores.written[checkpoint.name] = checkpoint.written
    scores.last_accuracy = accuracy
    better = (accuracy, -loss) > (scores.best_accuracy, -scores.best_loss)
    if progress:
        progress.write(
            "evaluation", checkpoint=checkpoint.name, step=step, loss=loss, accuracy=accuracy,
            written=round(checkpoint.written / 1e9, 3),
        )  # fmt: skip
    if better:
        scores.best, scores.best_accuracy, scores.best_loss = checkpoint.name, accuracy, loss
        best.write()
    print(
        f"{checkpoint.name}: loss {loss:.4f}  accuracy {accuracy:.4f}"
        f"{'  best' if better else ''}  {time.monotonic() - began:.1f} s",
        flush=True,
    )


def finish(
    options: Options,
    classes: tuple[str, ...],
    test_split: image_files.Split,
    figures: Mapping[str, float],
    progress: Progress | None,
) -> None:
    """Score the last checkpoint on Test in a model without a strategy, and save that model.

    Args:
        figures: the figures of the training (EpochReport.figures), added to the `metrics` event.
    """
    began = time.monotonic()
    if progress:
        progress.write("phase", name="finishing")
    plain = classifier_model.build(options, len(classes))
    classifier_model.load(checkpoints.find(options.output)[-1].path, plain)
    tested = plain.evaluate(
        input_pipeline.scoring_set(test_split, len(classes), options), verbose=0, return_dict=True
    )
    accuracy, loss = round(tested["accuracy"], 6), round(tested["loss"], 6)
    scored = time.monotonic()
    exported(plain, options.output / "model", options, classes).write()
    metrics = {"test_accuracy": accuracy, "test_loss": loss, **figures}
    result.write_result(options.output, metrics, classes, progress)
    speed = f"{figures['steps_per_second']:g} steps/s; " if "steps_per_second" in figures else ""
    print(
        f"test accuracy {accuracy:.4f}, loss {loss:.4f};"
        f" {speed}scored in {scored - began:.1f} s, model saved in"
        f" {time.monotonic() - scored:.1f} s",
        flush=True,
    )
