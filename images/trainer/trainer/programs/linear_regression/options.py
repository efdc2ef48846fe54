"""The arguments of linear-regression."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.programs.linear_regression import points_file
from trainer.programs.linear_regression.points_file import Points
from trainer.programs.training.graph_mode import options as graph_options
from trainer.programs.training.graph_mode.options import GraphOptions


@dataclass(frozen=True)
class Options:
    """The line to find, the points, and the tolerance of the result."""

    graph: GraphOptions
    w: float
    b: float
    noise: float
    """Standard deviation of y."""
    batch_size: int
    learning_rate: float
    tolerance: float
    """The maximum of |w - w*| and |b - b*| at the end."""
    seed: int
    points: Points | None
    """The points of `--csv`, whose least-squares line is the goal; None: generate points."""


def check(arguments: Sequence[str]) -> None:
    """Validate the arguments without the CSV file; exits with code 2 if they are invalid."""
    parser().parse_args(arguments)


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    arguments = argparse.ArgumentParser(
        prog="linear_regression", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = arguments.add_argument
    add("--w", type=float, default=2.0, help="slope of the line to find")
    add("--b", type=float, default=-1.0, help="where it crosses x = 0")
    add("--noise", type=graph_options.seconds, default=0.1, help="standard deviation of y")
    add("--batch-size", type=graph_options.positive, default=32, help="points per step and clone")
    add("--learning-rate", type=float, default=0.005, help="of gradient descent")
    add("--tolerance", type=float, default=0.02, help="largest error of w and of b at the end")
    add("--seed", type=int, default=1, help="of the generated points; replicas have different ones")
    add("--csv", metavar="FILE", help="points from this file, x and y in each line, instead of"
        " generated ones; a relative path starts at the data directory")  # fmt: skip
    graph_options.add_arguments(arguments, steps=3000, log_steps=200)
    return arguments


def parse(arguments: Sequence[str], data: Path) -> Options:
    """The options on the command line; argparse exits with code 2 if they are invalid.

    Args:
        data: the directory at which a relative `--csv` starts.
    Raises:
        ContractError: the CSV file, or an argument that conflicts with it, is invalid.
    """
    known = parser()
    values = known.parse_args(arguments)
    names = ("w", "b", "noise", "batch_size", "learning_rate", "tolerance", "seed")
    chosen = {name: getattr(values, name) for name in names}
    points = None
    if values.csv:
        generated = [f"--{name}" for name in ("w", "b", "noise")
                     if chosen[name] != known.get_default(name)]  # fmt: skip
        if generated:
            raise ContractError(
                f"{', '.join(generated)}: only for generated points, but --csv {values.csv} names a"
                " file with points; leave out one of them"
            )
        points = points_file.read(data / values.csv)
        chosen |= dict(zip("wb", points.line()))
    return Options(graph=graph_options.from_arguments(values), points=points, **chosen)
