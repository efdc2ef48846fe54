"""The stage on which whole runs are played, for all tests of this folder."""

from tests.fakes.stage import stage

__all__ = ["stage"]
