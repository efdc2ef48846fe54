"""Grammars of internationalised addresses, made when a value is checked against one.

jsonschema imports `rfc3987_syntax` where it is installed, and that makes 38 parsers at once: three
seconds in every process of pytest, for a format that one schema of all uses.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

NAME = "rfc3987_syntax"


def later() -> None:
    """Let jsonschema find the package without importing it; has to come before jsonschema."""
    stand_in = ModuleType(NAME)
    stand_in.is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]
    sys.modules.setdefault(NAME, stand_in)


def _is_valid_syntax(term: str, value: str) -> Any:
    if sys.modules[NAME].__dict__.get("is_valid_syntax") is _is_valid_syntax:
        del sys.modules[NAME]
    return importlib.import_module(NAME).is_valid_syntax(term, value)
