"""The arguments that every graph-mode program has."""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection
from dataclasses import dataclass, fields

ASYNC, SYNC = "async", "sync"


@dataclass(frozen=True)
class GraphOptions:
    """Options of graph mode, the same on every replica. Times are seconds, except where noted."""

    steps: int = 1000
    """The global step at which the job ends; steps of earlier runs count."""
    update: str = ASYNC
    """`async`: each gradient is applied as it arrives; `sync`: the mean of all replicas' gradients
    is applied."""
    backup_workers: int = 0
    """Under sync: the number of gradients for which a round does not wait, the slowest ones."""
    num_clones: int = 1
    """Copies of the model in each task; each takes a separate batch in every step."""
    clone_on_cpu: bool = False
    """Whether clones are on CPU devices even if there are GPUs."""
    loss_threshold: float | None = None
    """End as soon as the mean of the chief's last 20 losses is not above this."""
    save_secs: float = 5.0
    """Seconds between two automatic checkpoints; 0: only at the end."""
    keep: int = 1
    """Number of automatic checkpoints to keep; those saved on request stay."""
    summary_steps: int = 100
    """Global steps between two summaries of the chief; 0: none."""
    log_steps: int = 100
    """Global steps between two printed lines of a task."""
    pause_ms: float = 0.0
    """Milliseconds that a replica pauses after each step, to watch a short job or to emulate a slow
    machine."""


def add_arguments(
    parser: argparse.ArgumentParser, without: Collection[str] = (), **defaults: object
) -> None:
    """Add one argument per field of GraphOptions, `--num-clones` for num_clones.

    Args:
        without: fields for which the program has a different argument, or which it sets itself.
        defaults: defaults that replace those of GraphOptions, by field.
    """
    preset = {field.name: field.default for field in fields(GraphOptions)} | defaults

    def add(name: str, **keys: object) -> None:
        if name not in without:
            parser.add_argument(f"--{name.replace('_', '-')}", default=preset[name], **keys)

    add("steps", type=positive, help="end at this global step, steps of earlier runs included")
    add("update", choices=(ASYNC, SYNC), help="each gradient as it arrives, or the mean of all")
    add("backup_workers", type=whole, help="sync: gradients of a round that are not waited for")
    add("num_clones", type=positive, help="copies of the model in each task, one batch each")
    add("clone_on_cpu", action=argparse.BooleanOptionalAction, help="clones on CPU devices")
    add("loss_threshold", type=float, help="end when the mean of 20 losses is not above this")
    add("save_secs", type=seconds, help="between automatic checkpoints; 0: only at the end")
    add("keep", type=positive, help="automatic checkpoints to keep")
    add("summary_steps", type=whole, help="global steps between summaries; 0: none")
    add("log_steps", type=positive, help="global steps between printed lines")
    add("pause_ms", type=seconds, help="milliseconds to pause after each step")


def from_arguments(given: argparse.Namespace, **instead: object) -> GraphOptions:
    """Returns the options from the arguments of `add_arguments`; `instead` has the fields that the
    program sets."""
    names = {field.name for field in fields(GraphOptions)}
    chosen = {name: value for name, value in vars(given).items() if name in names}
    return GraphOptions(**(chosen | instead))


def positive(text: str) -> int:
    """Returns a whole number, 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return value


def whole(text: str) -> int:
    """Returns a whole number, 0 or more."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 or more")
    return value


def seconds(text: str) -> float:
    """Returns a finite number, 0 or more."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: must be a number, 0 or more")
    return value
