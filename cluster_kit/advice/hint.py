"""A warning as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hint:
    """What is at a place (`file:line` or a manifest key), the rule against it, and the cure.

    A hint with neither rule nor cure only says what the kit has done about it.
    """

    place: str
    what: str
    rule: str = ""
    cure: str = ""

    def __str__(self) -> str:
        rule, cure = self.rule and f"\n    {self.rule}", self.cure and f"\n    → {self.cure}"
        return f"{self.place}: {self.what}{rule}{cure}"
