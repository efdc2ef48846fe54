"""The command line in a workspace of its own, as the unit tests have it."""

from tests.unit.conftest import cli, root

__all__ = ["cli", "root"]
