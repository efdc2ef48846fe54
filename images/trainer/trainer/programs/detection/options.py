"""The program's arguments; the rest is in the pipeline configuration."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.programs.detection import classic
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.config.pipeline_file import Loaded
from trainer.programs.detection.mode import AUTO, MODES
from trainer.programs.training.graph_mode import options as graph_options
from trainer.programs.training.graph_mode.options import GraphOptions

PIPELINE = "pipeline.toml"


@dataclass(frozen=True)
class Options:
    """What to train and how; the same for every task."""

    output: Path
    """The train directory."""
    pipeline: Pipeline
    left_aside: tuple[str, ...]
    """One line for each field of a classic configuration that has no effect here."""
    mode: str
    round_steps: int
    """Coordinator: steps between two checks of the loss, and the minimum between two
    checkpoints."""
    final_score: bool
    """Whether to score the final model on the evaluation images."""
    graph: GraphOptions
    """The options of graph mode, with the pipeline's number of steps and loss threshold."""
    given: frozenset[str]
    """The names of the arguments on the command line, such as `num_clones`; the others have their
    defaults."""
    claims: Mapping[str, str]
    """The command line's statements about the cluster, for classic.check."""


def parse(arguments: Sequence[str], data: Path, output: Path) -> Options:
    """Returns the options on the command line.

    Raises:
        PipelineError: all problems in the pipeline configuration.
    """
    arguments = classic.modern(arguments)
    values = parser().parse_args(arguments)
    overrides = list(values.set)
    for key in ("num_steps", "loss_threshold"):
        if getattr(values, key) is not None:
            overrides.append(f"train_config.{key}={getattr(values, key)}")
    output = classic.train_directory(values.train_dir, output)
    loaded = configuration(values, data, {"data": data, "output": output}, overrides)
    train = loaded.pipeline.train_config
    return Options(
        output=output,
        pipeline=loaded.pipeline,
        left_aside=loaded.left_aside,
        mode=values.mode,
        round_steps=values.round_steps,
        final_score=values.final_score,
        graph=graph_options.from_arguments(
            values, steps=train.num_steps, loss_threshold=train.loss_threshold
        ),
        given=names_given(arguments),
        claims=classic.claims_of(values),
    )


def configuration(
    given: argparse.Namespace,
    data: Path,
    placeholders: Mapping[str, Path],
    overrides: Sequence[str],
) -> Loaded:
    """Returns the configuration in one file, or in parts if they are named; see `parse`."""
    named = {option: getattr(given, option.replace("-", "_")) for option in pipeline_file.SECTIONS}
    parts = {option: data / path for option, path in named.items() if path}
    if not parts:
        path = data / (given.pipeline_config or PIPELINE)
        return pipeline_file.load(path, placeholders, overrides, given.default_steps)
    if given.pipeline_config:
        raise ContractError(
            f"--pipeline-config {given.pipeline_config} and"
            f" --{pipeline_file.spelt(next(iter(parts)))}:"
            " a configuration is one file, or in parts; leave out one of them"
        )
    return pipeline_file.load_parts(parts, placeholders, overrides, given.default_steps)


def names_given(arguments: Sequence[str]) -> frozenset[str]:
    """Returns the destinations of the arguments on the command line."""
    known = parser()
    nothing = object()
    empty = argparse.Namespace(
        **{action.dest: nothing for action in known._actions if action.dest != "set"}, set=[]
    )
    values = vars(known.parse_args(arguments, empty))
    return frozenset(name for name, value in values.items() if value is not nothing)


def check(arguments: Sequence[str]) -> None:
    """Validate the arguments without the configuration; exits with code 2 if they are invalid."""
    parser().parse_args(classic.modern(arguments))


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the program's arguments."""
    arguments = argparse.ArgumentParser(
        prog="detection", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = arguments.add_argument
    add("--pipeline-config", metavar="PATH", help="TOML or classic text form; relative: seen from"
        f" the data directory (default there: {PIPELINE})")  # fmt: skip
    add("--set", action="append", default=[], metavar="SECTION.KEY=VALUE",
        help="override a value of the configuration; can be repeated")  # fmt: skip
    add("--mode", choices=MODES, default=AUTO,
        help="auto: coordinator if workers are servers, graph if they run the program")  # fmt: skip
    add("--steps", "--num-steps", dest="num_steps", type=graph_options.positive,
        help="end at this global step (default: the configuration's num_steps)")  # fmt: skip
    add("--default-steps", type=graph_options.positive, metavar="STEPS",
        help="num_steps if the configuration has none")  # fmt: skip
    add("--loss-threshold", type=float, help="end when the mean loss is not above this"
        " (default: the configuration's)")  # fmt: skip
    add("--round-steps", type=graph_options.positive, default=50,
        help="coordinator: steps between two checks of the loss")  # fmt: skip
    add("--final-score", action=argparse.BooleanOptionalAction, default=True,
        help="score the final model on the evaluation images")  # fmt: skip
    group = arguments.add_argument_group("training")
    graph_options.add_arguments(
        group, without=("steps", "loss_threshold"), save_secs=15.0, keep=3, log_steps=50
    )
    parts = arguments.add_argument_group("configuration in parts", "in the classic text form")
    for option, section in pipeline_file.SECTIONS.items():
        parts.add_argument(f"--{option}", metavar="PATH", help=f"what is in {section} {{ … }}")
    classic.add_arguments(arguments)
    return arguments
