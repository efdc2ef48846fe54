"""The side-car: scores every checkpoint on Validate, and keeps the best model."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tensorflow as tf

from trainer.agent import atomic
from trainer.agent.progress_file import Progress
from trainer.programs.classifier.data import files, input_pipeline
from trainer.programs.classifier.model import architecture, checkpoints, retention, weights
from trainer.programs.classifier.model.checkpoints import Checkpoint
from trainer.programs.classifier.model.export import export
from trainer.programs.classifier.options import Options
from trainer.programs.training import sidecar
from trainer.programs.training.board import VALIDATION, Board


@dataclass
class Scores:
    """What is already scored (checkpoint name → time it was written, ns), and the best so far."""

    written: dict[str, int] = field(default_factory=dict)
    best: str = ""
    best_accuracy: float = -1.0
    best_loss: float = float("inf")
    last_accuracy: float | None = None


def evaluate(options: Options, progress: Progress | None) -> None:
    """Score checkpoints in order until the job has ended and the last one is scored."""
    classes = files.class_names(options.data)
    split = files.split(options.data, files.VALIDATE, classes, options.seed)
    files.check_images(split.paths)
    network = architecture.build(options, len(classes))
    images = input_pipeline.scoring_set(split, len(classes), options)
    memory = options.output / retention.MEMORY
    scores = Scores(**json.loads(memory.read_text())) if memory.exists() else Scores()
    board = Board(options.output, VALIDATION)

    def waiting() -> list[Checkpoint]:
        return [c for c in checkpoints.find(options.output)
                if scores.written.get(c.name) != c.written]  # fmt: skip

    def score_and_remember(checkpoint: Checkpoint) -> None:
        if not Path(f"{checkpoint.path}.index").exists():
            return  # removed since it was found, by a leader that did not see this evaluator
        score(network, images, checkpoint, scores, options, classes, progress, board)
        atomic.replace(memory, json.dumps(asdict(scores)))
        retention.prune(options.output, options.graph.keep)

    sidecar.score_each(waiting, score_and_remember)
    if progress and scores.best:
        progress.write(
            "metrics",
            validation_accuracy=scores.last_accuracy,
            best_validation_accuracy=scores.best_accuracy,
            best_checkpoint=scores.best,
        )


def score(
    network: tf.keras.Model,
    images: tf.data.Dataset,
    checkpoint: Checkpoint,
    scores: Scores,
    options: Options,
    classes: tuple[str, ...],
    progress: Progress | None,
    board: Board,
) -> None:
    """Evaluate one checkpoint, report it, and export the model if it is the best so far."""
    began = time.monotonic()
    step = weights.load(checkpoint.path, network)
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
        export(network, options.output / "best", options, classes)
    print(
        f"{checkpoint.name}: loss {loss:.4f}  accuracy {accuracy:.4f}"
        f"{'  best' if better else ''}  {time.monotonic() - began:.1f} s",
        flush=True,
    )
