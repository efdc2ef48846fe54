"""The stage on which whole runs play, for every test of this room."""

from tests.fakes.stage import stage

__all__ = ["stage"]
