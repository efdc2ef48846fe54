"""One line of `doctor`, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """The name of the check, its result, what was found, and the cure ("" if none is needed)."""

    name: str
    state: State
    found: str
    cure: str = ""
