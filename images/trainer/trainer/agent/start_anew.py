"""Becoming another process of the trainer, where no file of the program can take its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

SAFE = ("-P",) if sys.version_info >= (3, 11) else ()
"""Python's option that leaves the current directory out of the places of modules."""


def trainer_command(arguments: Sequence[str]) -> list[str]:
    """The command of `python3 -m trainer ARGUMENTS…`; it is to be started in the directory `/`.

    With `-m` Python looks for modules in the current directory first; a Python older than 3.11
    cannot be told not to. Nothing but the image's own files is in `/`.
    """
    return [sys.executable, *SAFE, "-m", "trainer", *arguments]


def start_anew(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> NoReturn:  # pragma: no cover - it does not return
    """Replace this process by `python3 -m trainer ARGUMENTS…` with these variables, in `/`."""
    os.chdir("/")
    os.execve(sys.executable, trainer_command(arguments), environment)
