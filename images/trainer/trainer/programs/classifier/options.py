"""The classifier's arguments."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from trainer.programs.classifier import mode
from trainer.programs.training.graph_mode import options as graph_options
from trainer.programs.training.graph_mode.options import GraphOptions, positive

IN_EVERY_MODE = frozenset({"num_clones", "clone_on_cpu", "loss_threshold", "keep"})
"""Options of graph mode that every strategy has."""
PLACES = ("data", "output", "given", "graph")
KEEP = 5


@dataclass(frozen=True)
class Options:
    """What to train, on which data, and for how long; the same for the chief and the evaluator."""

    data: Path
    output: Path
    strategy: str
    """One of mode.STRATEGIES; mode.decide chooses one for `auto`, by the cluster's tasks."""
    update: str
    """`async` or `sync`: how parameter servers take gradients. All-reduce is always sync."""
    model: str
    image_size: int
    """Height and width in pixels."""
    batch_size: int
    """Images per worker and step; a worker's devices or clones share them."""
    epochs: int
    steps_per_epoch: int | None
    """A step is one update of the variables.

    None: enough steps to show every training image once.
    """
    steps_per_call: int | None
    """Steps that a worker makes per message from the chief.

    None: chosen by their speed under a coordinator (schedule.calls_of), elsewhere 1.
    """
    learning_rates: tuple[tuple[int, float], ...]
    """(first epoch, rate), ordered by epoch; epochs count from 0."""
    dropout: float
    bn_momentum: float | None
    rotation: float
    """Degrees, in both directions."""
    shift: float
    """Fraction of the image's side, in both directions."""
    zoom: float
    shear: float
    flip: bool
    seed: int
    communication: str
    """All-reduce: `ring` or `nccl`."""
    peer_timeout: float | None
    """Seconds that an all-reduce waits for the slowest task in one step."""
    graph: GraphOptions
    """Options of graph mode, which computes its own number of steps; other strategies use some."""
    given: frozenset[str] = frozenset()
    """Names of the options on the command line; the others have their defaults."""

    @property
    def clones(self) -> int | None:
        """Copies of the model in each task; None if the command line does not give it."""
        return self.graph.num_clones if "num_clones" in self.given else None

    @property
    def hyperparameters(self) -> dict[str, object]:
        """Returns the options without paths; of graph mode's options, only those on the command
        line."""
        values = {key: value for key, value in vars(self).items() if key not in PLACES}
        chosen = {key: value for key, value in vars(self.graph).items() if key in self.given}
        rates = " ".join(f"{epoch}:{rate:g}" for epoch, rate in self.learning_rates)
        return {**values, **chosen, "learning_rates": rates}

    def learning_rate(self, epoch: int) -> float:
        """The learning rate of `epoch` (from 0)."""
        return [rate for first, rate in self.learning_rates if first <= epoch][-1]


def parse(arguments: Sequence[str], data: Path, output: Path) -> Options:
    """The options on the command line; argparse exits with code 2 if they are invalid."""
    parser = argparse.ArgumentParser(
        prog="classifier", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--strategy", choices=mode.STRATEGIES, default=mode.AUTO, help="who holds the variables;"
        " auto: parameter-server if there are ps, all-reduce between several tasks without ps,"
        " the devices of this task if it is the only one")  # fmt: skip
    add("--update", choices=mode.UPDATES, default=mode.ASYNC,
        help="how parameter servers apply gradients: each as it arrives, or the "
            "mean of all")  # fmt: skip
    add("--model", choices=("mobilenet_v2", "cnn"), default="mobilenet_v2", help="architecture")
    add("--image-size", type=positive, default=224, help="height and width in pixels")
    add("--batch-size", type=positive, default=32, help="images per worker and step")
    add(
        "--epochs",
        type=positive,
        default=10,
        help="number of epochs, including those before a resume",
    )
    add("--steps-per-epoch", type=positive, help="steps per epoch (default: every image once)")
    add("--steps-per-call", type=positive, help="steps that a worker makes per message (default:"
        " under a coordinator as many as take some tenths of a second, elsewhere 1)")  # fmt: skip
    add("--learning-rates", nargs="+", type=rate_from, metavar="EPOCH:RATE", help="schedule",
        default=[(0, 1e-3), (3, 1e-4), (7, 1e-5)])  # fmt: skip
    add("--dropout", type=fraction, default=0.2, help="before the last layer")
    add("--bn-momentum", type=fraction, help="BatchNorm; MobileNetV2's own 0.999 needs long runs")
    add("--rotation", type=float, default=40.0, help="degrees either way")
    add("--shift", type=fraction, default=0.2, help="fraction of the side, in both directions")
    add("--zoom", type=fraction, default=0.2, help="scale between 1-ZOOM and 1+ZOOM")
    add("--shear", type=float, default=0.2, help="x moves by up to SHEAR times y")
    add("--flip", action=argparse.BooleanOptionalAction, default=True, help="left to right")
    add("--seed", type=int, default=1, help="order of files, weights and augmentations")
    add("--communication", choices=("ring", "nccl"), default="ring", help="all-reduce: how")
    # No default: TensorFlow starts a thread for each sum with a timeout, and keeps it that long.
    add("--peer-timeout", type=seconds, metavar="SECONDS",
        help="all-reduce: end when a task lets the others wait this long in one step. Only for "
        "slow steps, since each sum keeps a thread for this time. The kit ends a job without steps "
        "anyway")  # fmt: skip
    in_graph = {field.name for field in fields(GraphOptions)} - {"update"}
    others = in_graph - IN_EVERY_MODE | {"update"}
    graph_options.add_arguments(parser, without=others, keep=KEEP)
    group = parser.add_argument_group("graph mode")
    graph_options.add_arguments(group, without=(*IN_EVERY_MODE, "steps", "update"))
    parsed = parser.parse_args(arguments)
    graph = graph_options.from_arguments(parsed)
    values = {name: value for name, value in vars(parsed).items() if name not in in_graph}
    rates = tuple(sorted(values.pop("learning_rates")))
    if rates[0][0] != 0:
        parser.error(f"--learning-rates starts at epoch {rates[0][0]}: the first must be 0")
    return Options(
        data=data, output=output, learning_rates=rates, graph=graph,
        given=names_given(parser, arguments), **values,
    )  # fmt: skip


def names_given(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> frozenset[str]:
    """Returns the names of the options in `arguments`; it removes the parser's defaults."""
    absent = object()
    parser.set_defaults(**dict.fromkeys(vars(parser.parse_args([])), absent))
    values = vars(parser.parse_args(arguments))
    return frozenset(name for name, value in values.items() if value is not absent)


def check(arguments: Sequence[str]) -> None:
    """Validate the arguments; argparse exits with code 2 if they are invalid."""
    parse(arguments, Path("/data"), Path("/output"))


def seconds(text: str) -> float:
    """The number in `text`, which must be above 0."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return value


def fraction(text: str) -> float:
    """The number in `text`, at least 0 and below 1."""
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 0 and below 1")
    return value


def rate_from(text: str) -> tuple[int, float]:
    """(epoch, rate) from `3:1e-4`: rate 1e-4 from epoch 3 on, counted from 0."""
    epoch, _, rate = text.partition(":")
    try:
        pair = int(epoch), float(rate)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"{text}: must be EPOCH:RATE, as in 3:1e-4") from problem
    if pair[0] < 0 or pair[1] <= 0:
        raise argparse.ArgumentTypeError(f"{text}: the epoch must be at least 0, the rate above 0")
    return pair
