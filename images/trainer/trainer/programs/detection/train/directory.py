"""The train directory (/output): what the leader puts there before training and after it."""

from __future__ import annotations

from trainer.agent import atomic
from trainer.agent.errors import ContractError
from trainer.agent.task import Task
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.data.check import Checked, check
from trainer.programs.detection.options import PIPELINE, Options
from trainer.programs.training.board import tell_hyperparameters


def prepare(options: Options) -> Checked:
    """Look at all input, make the directory, and put a copy of the configuration in it.

    Raises:
        ContractError: what is wrong with the input, by file and record; or it cannot be written.
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
    """The hyperparameters, for TensorBoard: those of the training, and which model it is."""
    pipeline = options.pipeline
    model = pipeline.model.model_dump(include={"feature_extractor", "image_size"})
    train = pipeline.train_config.model_dump(mode="json", exclude={"augmentation"})
    clones = options.graph.num_clones
    values = {**train, "mode": mode, "num_clones": clones, "model": model}
    tell_hyperparameters(options.output, task.cluster, values)


def to_score(checked: Checked) -> str:
    """How many images are scored, in words."""
    found = checked.evaluation
    if found is None:
        return "none to score: no --eval_input_config_path was given"
    return f"{found.images} to score with {found.boxes}"
