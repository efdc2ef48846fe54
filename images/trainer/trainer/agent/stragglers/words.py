"""Sentences about stragglers."""

from __future__ import annotations

from trainer.agent.stragglers.limits import BANDWIDTH, CPU, MEMORY
from trainer.agent.stragglers.rule import Straggled, Straggling


def begins(found: Straggling, others: str) -> str:
    """One line; `others` is what the others are: `workers`."""
    if found.steps_per_s is None:
        slowed = f", which makes it {found.slowed:.1f} times slower" if found.slowed else ""
        return (
            f"{found.task} is a straggler: {reason(found)}{slowed}; the other {others} wait for it"
        )
    return (
        f"{found.task} is a straggler: {found.steps_per_s:.1f} steps/s, the median of the other"
        f" {others} is {found.others_steps_per_s:.1f}; {found.share:.0%} of the steps;"
        f" {reason(found)}"
    )


def ends(over: Straggled) -> str:
    """One line."""
    share = f", with {over.share:.0%} of the steps" if over.share is not None else ""
    return f"{over.task} was a straggler for {over.seconds:.0f} s{share}"


def reason(found: Straggling) -> str:
    """Why it is slow, as far as it shows."""
    if found.cause == CPU:
        return f"its CPU limit of {found.limit:g} is reached"
    if found.cause == BANDWIDTH:
        return f"its bandwidth limit of {found.limit / 1e6:g} Mbit/s is reached"
    if found.cause == MEMORY:
        return "it waits for memory"
    return "none of its limits is reached"
