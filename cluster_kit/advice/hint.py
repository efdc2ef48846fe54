"""A warning as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hint:
    """What is at a place (`file:line` or a manifest key), the rule against it, and the cure."""

    place: str
    what: str
    rule: str
    cure: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}\n    {self.rule}\n    → {self.cure}"
