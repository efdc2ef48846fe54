"""Flags as TensorFlow 1 had them."""

from __future__ import annotations

import sys
from types import ModuleType

KEPT = ("help", "helpfull", "helpshort", "helpxml", "flagfile", "undefok", "v")


def restore(v1: ModuleType) -> None:
    """Let a program define `log_dir` and others that absl, which TensorFlow uses today, has
    defined for itself; and let it parse flags by the name of the first versions."""
    wrapped = v1.flags.FLAGS
    for name in list(wrapped):
        if name not in KEPT:
            wrapped[name].allow_override = True
    values = type(wrapped.__dict__["__wrapped"])
    if not hasattr(values, "_parse_flags"):
        values._parse_flags = _parse


def _parse(self: object, args: list[str] | None = None) -> dict[str, object]:
    """`FLAGS._parse_flags()`: unknown flags are left alone. The values by name."""
    self([sys.argv[0], *args] if args is not None else sys.argv, known_only=True)
    return self.flag_values_dict()
