"""One thing that is wrong with a manifest, as values; words are made of it when it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cluster_kit.util.toml_text import written


@dataclass(frozen=True)
class Setting:
    """A key of the manifest, with its tables (`deadline.start`), and the value it should have."""

    key: str
    value: str | int | float | bool | tuple[str, ...]


Cure = str | tuple[str | Setting, ...]
"""What to do next: words, and between them settings that are told as the person gives them."""


class Words(Protocol):
    """How a person gives the manifest's keys: in the file, or as options of the command line."""

    def place(self, key: str) -> str:
        """What to call a key."""

    def setting(self, setting: Setting, place: str) -> str:
        """What to write for a setting that cures the problem at `place`."""


class InFile:
    """All keys as the manifest's file has them."""

    def place(self, key: str) -> str:
        return key

    def setting(self, setting: Setting, place: str) -> str:
        return f"`{setting.key.rpartition('.')[2]} = {written(setting.value)}`"


IN_FILE = InFile()


@dataclass(frozen=True)
class Problem:
    """The key, its value (in TOML; "" to leave it out), the rule it breaks, and the cure.

    `reads` names the other top-level keys that the rule looks at. While one of them is broken, a
    default stands in for it, and it is not certain that the rule is broken, too.
    """

    place: str
    value: str
    rule: str
    cure: Cure
    reads: tuple[str, ...] = ()

    def told(self, words: Words = IN_FILE) -> str:
        """Two lines: what is wrong, and what to do."""
        shown = f" = {self.value}" if self.value else ""
        return f"{words.place(self.place)}{shown}: {self.rule}\n    → {self.cure_told(words)}"

    def cure_told(self, words: Words = IN_FILE) -> str:
        """The cure with its settings in these words."""
        parts = (self.cure,) if isinstance(self.cure, str) else self.cure
        return "".join(
            part if isinstance(part, str) else words.setting(part, self.place) for part in parts
        )
