"""Starts another process of the trainer, in which no file of the program can replace a module."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

SAFE = ("-P",) if sys.version_info >= (3, 11) else ()
"""Python's option that removes the current directory from the module search path."""


def trainer_command(arguments: Sequence[str]) -> list[str]:
    """The command of `python3 -m trainer ARGUMENTS…`; it must be started in the directory `/`.

    With `-m`, Python looks for modules in the current directory first, and a Python older than 3.11
    has no option against that. `/` has only files of the image.
    """
    return [sys.executable, *SAFE, "-m", "trainer", *arguments]


def start_anew(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> NoReturn:  # pragma: no cover - it does not return
    """Replace this process by `python3 -m trainer ARGUMENTS…` with these variables, in `/`."""
    os.chdir("/")
    os.execve(sys.executable, trainer_command(arguments), environment)
