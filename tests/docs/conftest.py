"""The command line in a temporary workspace, as in the unit tests."""

from tests.unit.conftest import cli, commands_made_once, machine, root

__all__ = ["cli", "commands_made_once", "machine", "root"]
