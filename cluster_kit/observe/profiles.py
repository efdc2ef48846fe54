"""What became of the trace that a manifest asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.observe.figures import number
from cluster_kit.observe.state import RunState
from cluster_kit.parts import ProfileAt


def notes(asked: ProfileAt | None, seen: RunState) -> Iterator[str]:
    """A line if there is no trace, or one without some of the tasks."""
    if asked is None:
        return
    taken = [entry.fields for entry in seen.entries if entry.event == "profiled"]
    if not taken:
        yield f"no profile: {_why(asked, seen)}"
        return
    last = taken[-1]
    if message := last.get("message"):
        yield f"no profile: {message}"
    elif missing := last.get("missing"):
        yield f"the profile lacks {', '.join(map(str, missing))}: no trace came from there in time"


def _why(asked: ProfileAt, seen: RunState) -> str:
    told = (entry.fields.get("step") for entry in seen.entries if entry.event == "step")
    steps = [step for value in told if (step := number(value)) is not None]
    if not steps:
        return f"the program reported no steps, so step {asked.at_step} was never reached"
    if max(steps) < asked.at_step:
        return f"step {asked.at_step} was never reached, the last reported one was {max(steps):g}"
    return f"step {asked.at_step} was reached, but the run ended before the trace was saved"
