"""The program's arguments; the rest is in the pipeline configuration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.mode import AUTO, MODES
from trainer.training.graph_mode import options as graph_options
from trainer.training.graph_mode.options import GraphOptions

PIPELINE = "pipeline.toml"


@dataclass(frozen=True)
class Options:
    """What to train and how; the same for every task."""

    output: Path
    """The train directory."""
    pipeline: Pipeline
    left_aside: tuple[str, ...]
    """Fields of a classic configuration that have no effect here, a line for each."""
    mode: str
    round_steps: int
    """Coordinator: steps between two looks at the loss, and between two checkpoints at least."""
    final_score: bool
    """Score the final model on the evaluation images."""
    graph: GraphOptions
    """With the pipeline's number of steps and loss threshold."""


def parse(arguments: Sequence[str], data: Path, output: Path) -> Options:
    """Options from the command line.

    Raises:
        PipelineError: everything that is wrong in the pipeline configuration.
    """
    given = parser().parse_args(arguments)
    overrides = list(given.set)
    for key in ("num_steps", "loss_threshold"):
        if getattr(given, key) is not None:
            overrides.append(f"train_config.{key}={getattr(given, key)}")
    places = {"data": data, "output": output}
    loaded = pipeline_file.load(
        data / given.pipeline_config, places, overrides, given.default_steps
    )
    train = loaded.pipeline.train_config
    return Options(
        output=output,
        pipeline=loaded.pipeline,
        left_aside=loaded.left_aside,
        mode=given.mode,
        round_steps=given.round_steps,
        final_score=given.final_score,
        graph=graph_options.from_arguments(
            given, steps=train.num_steps, loss_threshold=train.loss_threshold
        ),
    )


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    arguments = argparse.ArgumentParser(
        prog="detection", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = arguments.add_argument
    add("--pipeline-config", default=PIPELINE, metavar="PATH",
        help="TOML or classic text form; relative: seen from the data directory")  # fmt: skip
    add("--set", action="append", default=[], metavar="SECTION.KEY=VALUE",
        help="lay a value over the configuration; may be given again and again")  # fmt: skip
    add("--mode", choices=MODES, default=AUTO,
        help="auto: coordinator where workers serve, graph where they run the program")  # fmt: skip
    add("--steps", "--num-steps", dest="num_steps", type=graph_options.positive,
        help="end at this global step (default: the configuration's num_steps)")  # fmt: skip
    add("--default-steps", type=graph_options.positive, metavar="STEPS",
        help="num_steps where the configuration has none")  # fmt: skip
    add("--loss-threshold", type=float, help="end when the mean loss is not above this"
        " (default: the configuration's)")  # fmt: skip
    add("--round-steps", type=graph_options.positive, default=50,
        help="coordinator: steps between two looks at the loss")  # fmt: skip
    add("--final-score", action=argparse.BooleanOptionalAction, default=True,
        help="score the final model on the evaluation images")  # fmt: skip
    group = arguments.add_argument_group("training")
    graph_options.add_arguments(
        group, without=("steps", "loss_threshold"), save_secs=15.0, keep=3, log_steps=50
    )
    return arguments
