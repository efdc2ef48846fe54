"""The keys that have a command-line option of their own. Pure.

The command line makes its options from this table; messages and docs/manifest.md take the names of
options and Make variables from it; a test compares the Makefile's list with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["count", "text", "program", "data", "file", "words", "gpus", "switch"]
"""How an option's text becomes the key's value (see cli/override_values)."""


@dataclass(frozen=True)
class Override:
    """A key of the manifest, its option, its Make variable and its help text."""

    key: str
    option: str
    variable: str
    kind: Kind
    help: str
    metavar: str | None = None


OVERRIDES = (
    Override("chief", "--chief", "N_CHIEF", "count", "Number of chiefs: 0 or 1.", "INTEGER"),
    Override("worker", "--workers", "N_WORKERS", "count", "Number of workers.", "INTEGER"),
    Override("ps", "--ps", "N_PS", "count", "Number of parameter servers.", "INTEGER"),
    Override("style", "--style", "STYLE", "text",
             "Who runs the program: the chief alone, or the workers, too.",
             "[auto|coordinator|all-tasks]"),
    Override("name", "--name", "NAME", "text", "Run it under another name."),
    Override("engine", "--engine", "BACKEND", "text", "What runs the containers."),
    Override("program", "--program", "PROGRAM", "program",
             "Run this program instead (without args and evaluator)."),
    Override("args", "--args", "ARGS", "words", "Further arguments; the last of a flag wins."),
    Override("tf1", "--tf1", "TF1", "switch", "The program is written for TensorFlow 1."),
    Override("requirements", "--requirements", "REQUIREMENTS", "file",
             "A file of pip requirements for the image."),
    Override("data", "--data", "DATA", "data", "Data set of the image, or directory."),
    Override("gpus", "--gpus", "GPUS", "gpus", "none, auto, or ids: 0,1 or GPU-<uuid>."),
)  # fmt: skip
SET_OPTION, SET_VARIABLE = "--set", "SET"
"""For every other key: `--set key=value`, with the value in TOML."""


def override_of(key: str) -> Override | None:
    """The override of a key, or of the list that it is in (`args` of `args.3`); None if none."""
    top, _, inner = key.partition(".")
    whole = top if inner.isdecimal() else key
    return next((override for override in OVERRIDES if override.key == whole), None)
