"""Checks the arguments of a built-in program before anything is started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from trainer.agent.errors import ContractError

PROGRAMS = Path(__file__).parent


def check(program: str, arguments: Sequence[str]) -> int:
    """Returns 0 if the program's arguments are valid; raises ContractError for an unknown program.

    The program's parser exits with 2 if they are invalid, and with 0 after `--help`. The host calls
    this with its own Python, without TensorFlow. If TF_CONFIG is the leader's, arguments that the
    program does not accept in this cluster raise ContractError, too.
    """
    package = program.replace("-", "_")
    if not (PROGRAMS / package / "options.py").exists():
        raise ContractError(f"no built-in program {program!r}")
    import_module(f"trainer.programs.{package}.options").check(arguments)
    if os.environ.get("TF_CONFIG") and (PROGRAMS / package / "option_rules.py").exists():
        import_module(f"trainer.programs.{package}.option_rules").check_here(arguments)
    return 0
