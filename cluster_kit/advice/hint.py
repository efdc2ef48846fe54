"""One warning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hint:
    """`place` is `file:line`, or a key of the manifest; then what is there, the rule, the cure."""

    place: str
    what: str
    rule: str
    cure: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}\n    {self.rule}\n    → {self.cure}"
