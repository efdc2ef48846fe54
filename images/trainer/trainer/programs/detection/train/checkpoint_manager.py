"""Writes the coordinator's checkpoints, and the leader's files in the train directory (/output).

A checkpoint is written and checked before it replaces older checkpoints. After the last step
the leader scores the final model, saves it, and writes the result.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from trainer.agent import atomic
from trainer.agent.errors import ContractError
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.data.record_check import Checked, check
from trainer.programs.detection.evaluate.metrics import Scorer
from trainer.programs.detection.model import ssd, weights
from trainer.programs.detection.model.ssd import export
from trainer.programs.detection.model.weights import Checkpoint
from trainer.programs.detection.options import PIPELINE, Options
from trainer.programs.training import result
from trainer.programs.training.board import write_hyperparameters
from trainer.programs.training.checkpoint_files import (
    DAMAGED,
    Snapshot,
    all_finite,
    last_good_clause,
    named,
    remove_checkpoint,
)
from trainer.programs.training.program import CheckpointError, Diverged, checkpoint_directory

CHIEF = "/job:chief/replica:0/task:0/device:CPU:0"


class CheckpointManager:
    """Saves network and optimizer in `checkpoints/ckpt-<step>`, by the names of the variables."""

    def __init__(
        self,
        output: Path,
        keep: int,
        network: tf.keras.Model,
        optimizer: tf.keras.optimizers.Optimizer,
    ) -> None:
        self.last: Checkpoint | None = None
        self._output = output
        self._keep = keep
        self._lock = threading.Lock()
        self._snapshot = Snapshot(named(network, optimizer), network.distribute_strategy, CHIEF)

    def restore(self) -> Checkpoint | None:
        """Restore the newest undamaged checkpoint; returns None if there is no checkpoint.

        Raises:
            CheckpointError: all checkpoints are damaged, or belong to another model.
        """
        damaged = []
        for checkpoint in reversed(weights.find(self._output)):
            try:
                self._snapshot.read(checkpoint.path)
            except DAMAGED as problem:
                damaged.append(
                    f"{checkpoint.name} is damaged ({str(problem).splitlines()[0][:200]})"
                )
                print(f"error: {damaged[-1]}", file=sys.stderr, flush=True)
            else:
                self.last = checkpoint
                return checkpoint
        if damaged:
            raise CheckpointError(
                f"{'; '.join(damaged)}, and there is no other in"
                f" {checkpoint_directory(self._output)}; put a copy back, or remove it to train"
                " from the beginning"
            )
        return None

    def try_out(self) -> None:
        """Write a trial checkpoint, since the first write takes seconds and can fail."""
        self._snapshot.try_out(str(checkpoint_directory(self._output) / ".try-out"))

    def save(self, step: int, by_hand: bool = False) -> Checkpoint:
        """Write a checkpoint; if a variable is not finite, remove it and raise Diverged."""
        with self._lock:
            name = f"{'manual.' if by_hand else ''}ckpt-{step}"
            path = str(checkpoint_directory(self._output) / name)
            self._snapshot.write(path)
            saved = next(c for c in weights.find(self._output) if c.name == name)
            if not all_finite(path):
                remove_checkpoint(Path(saved.path))
                raise Diverged(f"a variable is not finite any more; {self.what_is_left()}")
            self.last = saved
            automatic = [c for c in weights.find(self._output) if c.name.startswith("ckpt-")]
            for old in automatic[: -self._keep]:
                remove_checkpoint(Path(old.path))
            return saved

    def what_is_left(self) -> str:
        return last_good_clause(self.last and self.last.name)


def prepare(options: Options) -> Checked:
    """Check all input, create the directory, and copy the configuration into it.

    Raises:
        ContractError: the input is invalid (the message names file and record), or a write failed.
    """
    for line in options.left_aside:
        print(f"without effect: {line}", flush=True)
    checked = check(options.pipeline)
    copy = options.output / PIPELINE
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        atomic.replace(copy, pipeline_file.to_toml(options.pipeline))
    except OSError as problem:
        raise ContractError(
            f"cannot write {copy}: {problem.strerror}; the output directory must be this user's"
        ) from problem
    print(
        f"{checked.train.images} training images with {checked.train.boxes} boxes,"
        f" {to_score(checked)};"
        f" {len(checked.labels.names)} classes",
        flush=True,
    )
    return checked


def tell(options: Options, task: Task, mode: str) -> None:
    """Write the hyperparameters of the training and the model for TensorBoard."""
    pipeline = options.pipeline
    model = pipeline.model.model_dump(include={"feature_extractor", "image_size"})
    train = pipeline.train_config.model_dump(mode="json", exclude={"augmentation"})
    clones = options.graph.num_clones
    values = {**train, "mode": mode, "num_clones": clones, "model": model}
    write_hyperparameters(options.output, task.cluster, values)


def to_score(checked: Checked) -> str:
    """Return a text with the number of images that are scored."""
    evaluation = checked.evaluation
    if evaluation is None:
        return "none to score: no --eval_input_config_path was given"
    return f"{evaluation.images} to score with {evaluation.boxes}"


def finish(
    options: Options,
    checked: Checked,
    checkpoint: str,
    figures: Mapping[str, object],
    progress: Progress | None,
) -> None:
    """Score and save the model of `checkpoint` (a prefix) as the final model, and write the result.

    Args:
        figures: the figures of the training, for the `metrics` event and result.json.
    """
    began = time.monotonic()
    if progress:
        progress.write("phase", name="finishing")
    pipeline = options.pipeline
    detector = ssd.build(pipeline.model, pipeline.train_config.seed)
    weights.load(detector.network, checkpoint, pipeline.averaged)
    metrics = dict(figures)
    scores = ""
    if options.final_score and checked.evaluation:
        score = Scorer(pipeline, detector, checked.labels, checked.evaluation.images).score()
        metrics |= {
            "map": score.figures.map,
            "map_50": score.figures.map_50,
            "evaluation_loss": score.loss,
        }
        scores = f"mAP@0.5 {score.figures.map_50:.4f}, COCO mAP {score.figures.map:.4f}; "
    scored = time.monotonic()
    export(detector, pipeline, checked.labels, options.output / "model")
    result.write_result(options.output, metrics, checked.labels.names, progress)
    print(
        f"{scores}scored in {scored - began:.1f} s,"
        f" model saved in {time.monotonic() - scored:.1f} s",
        flush=True,
    )
