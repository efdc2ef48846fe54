"""The arguments of linear-regression."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.training.graph_mode import options as graph_options
from trainer.training.graph_mode.options import GraphOptions


@dataclass(frozen=True)
class Options:
    """The line to find, the made-up points, and how close is close enough."""

    graph: GraphOptions
    w: float
    b: float
    noise: float
    """Standard deviation of y."""
    batch_size: int
    learning_rate: float
    tolerance: float
    """|w - w*| and |b - b*| at the end."""
    seed: int


def check(arguments: Sequence[str]) -> None:
    """As `parse`, for who only wants to know whether they are right."""
    parse(arguments)


def parse(arguments: Sequence[str]) -> Options:
    """Options from the command line; argparse ends the process with 2 if they are wrong."""
    parser = argparse.ArgumentParser(
        prog="linear_regression", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--w", type=float, default=2.0, help="slope of the line to find")
    add("--b", type=float, default=-1.0, help="where it crosses x = 0")
    add("--noise", type=graph_options.seconds, default=0.1, help="standard deviation of y")
    add("--batch-size", type=graph_options.positive, default=32, help="points per step and clone")
    add("--learning-rate", type=float, default=0.005, help="of gradient descent")
    add("--tolerance", type=float, default=0.02, help="largest error of w and of b at the end")
    add("--seed", type=int, default=1, help="of the made-up points; each replica has its own")
    graph_options.add_arguments(parser, steps=3000, log_steps=200)
    given = parser.parse_args(arguments)
    names = ("w", "b", "noise", "batch_size", "learning_rate", "tolerance", "seed")
    return Options(
        graph=graph_options.from_arguments(given),
        **{name: getattr(given, name) for name in names},
    )
