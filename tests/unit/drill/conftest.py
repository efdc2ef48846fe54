"""The stage on which whole drills are played."""

from tests.fakes.stage import stage

__all__ = ["stage"]
