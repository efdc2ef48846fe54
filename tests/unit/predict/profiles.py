"""Profiles for tests, from a few keys."""

from __future__ import annotations

from typing import Any

from cluster_kit.predict.plan import Change, Fitted, Setup, setup
from cluster_kit.predict.profile import Profile, parse
from cluster_kit.predict.simulate import Simulated, simulate

VARIABLES = [
    {"name": "features/kernel", "bytes": 80_000_000},
    {"name": "bias", "bytes": 20_000_000},
]
RAW: dict[str, Any] = {
    "format": 1,
    "way": "async-ps",
    "batch": 32,
    "step": {"seconds": 0.3, "spread": 0.0},
    "exchange": {"overlap": 0.0},
    "machines": {"bandwidth": "10gbit", "latency": "1us"},
    "transport": {"goodput": 1.0},
    "variable": VARIABLES,
}


def raw(**changes: Any) -> dict[str, Any]:
    """The tables of a profile; a changed table keeps its other keys."""
    tables = {**RAW}
    for key, value in changes.items():
        before = tables.get(key)
        both = isinstance(value, dict) and isinstance(before, dict)
        tables[key] = {**before, **value} if both and before else value
    return {key: value for key, value in tables.items() if value is not None}


def profile(**changes: Any) -> Profile:
    """A profile of 100 MB, two variables, and 0.3 s steps on 10 Gbit/s."""
    return parse(raw(**changes), "test")


def setup_of(found: Profile, workers: int, ps: int = 1, change: Change | None = None) -> Setup:
    """The setup of a profile that needs no calibration."""
    return setup(found, Fitted(found.step.mean or 0.0), workers, ps, 0.0, change)


def simulated(
    found: Profile,
    workers: int,
    ps: int = 1,
    steps: int | None = None,
    change: Change | None = None,
) -> Simulated:
    """What the simulation says of it."""
    return simulate(setup_of(found, workers, ps, change), steps)
