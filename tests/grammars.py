"""Delays the grammars of internationalised addresses until a value is checked against one.

jsonschema imports `rfc3987_syntax` if it is installed, which builds 38 parsers at once. That takes
three seconds in every process of pytest, for a format that only one schema uses.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

NAME = "rfc3987_syntax"


def later() -> None:
    """Let jsonschema find the package without importing it; call this before importing
    jsonschema."""
    stand_in = ModuleType(NAME)
    stand_in.is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]
    sys.modules.setdefault(NAME, stand_in)


def _is_valid_syntax(term: str, value: str) -> Any:
    if sys.modules[NAME].__dict__.get("is_valid_syntax") is _is_valid_syntax:
        del sys.modules[NAME]
    return importlib.import_module(NAME).is_valid_syntax(term, value)
