"""The stage on which whole drills play."""

from tests.fakes.stage import stage

__all__ = ["stage"]
