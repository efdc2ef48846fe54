"""The command line in a workspace of its own, as the unit tests have it."""

from tests.unit.conftest import cli, commands_made_once, machine, root

__all__ = ["cli", "commands_made_once", "machine", "root"]
