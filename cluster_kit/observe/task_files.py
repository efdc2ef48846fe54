"""Files that tasks leave in their output: checkpoints and profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cluster_kit.contract.events import Profiled, Step
from cluster_kit.observe.state import RunState
from cluster_kit.resolved import ProfileAt
from cluster_kit.util.untrusted import files

INDEX = ".index"
"""TensorFlow writes this file of a checkpoint last."""
OF_MODEL = "variables.index"
"""The same of a SavedModel, which nobody goes on from."""


def complete(output: Path, below: str = "") -> Iterator[tuple[float, str]]:
    """Yields (Unix seconds of its completion, name) of each checkpoint of a run's output.

    Args:
        below: a directory in the output to which the search is limited.
    """
    for found in files(output, below, matches=_is_index):
        yield found.changed, found.name.rpartition("/")[2].removesuffix(INDEX)


def _is_index(name: str) -> bool:
    return name.endswith(INDEX) and name != OF_MODEL


def notes(asked: ProfileAt | None, seen: RunState) -> Iterator[str]:
    """A line if there is no trace, or one without some of the tasks."""
    if asked is None:
        return
    taken = [entry.event for entry in seen.entries if isinstance(entry.event, Profiled)]
    if not taken:
        yield f"no profile: {_why(asked, seen)}"
        return
    last = taken[-1]
    if last.message:
        yield f"no profile: {last.message}"
    elif last.missing:
        yield f"the profile lacks {', '.join(last.missing)}: no trace came from there in time"


def _why(asked: ProfileAt, seen: RunState) -> str:
    told = (entry.event.step for entry in seen.entries if isinstance(entry.event, Step))
    steps = [step for step in told if step is not None]
    if not steps:
        return f"the program reported no steps, so step {asked.at_step} was never reached"
    if max(steps) < asked.at_step:
        return f"step {asked.at_step} was never reached, the last reported one was {max(steps):g}"
    return f"step {asked.at_step} was reached, but the run ended before the trace was saved"
