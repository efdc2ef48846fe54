"""A problem of a manifest as values, and its text for the message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cluster_kit.util.toml_text import to_toml


@dataclass(frozen=True)
class Setting:
    """A key of the manifest, with its tables (`deadline.start`), and a value to set it to.

    `for_once`: better given to a command than written into the file, whatever gave the key now.
    """

    key: str
    value: str | int | float | bool | tuple[str, ...]
    for_once: bool = False


Cure = str | tuple[str | Setting, ...]
"""What to do next: text, with settings in it that are written as the user gives them."""


class Words(Protocol):
    """How a message writes keys and settings: as in the file, or as command-line options."""

    def place(self, key: str) -> str:
        """The key as the message names it."""

    def setting(self, setting: Setting, place: str) -> str:
        """The setting as the user would write it, to cure the problem at the key `place`."""


class InFile:
    """Every key as in the manifest's file."""

    def place(self, key: str) -> str:
        return key

    def setting(self, setting: Setting, place: str) -> str:
        return f"`{setting.key.rpartition('.')[2]} = {to_toml(setting.value)}`"


IN_FILE = InFile()


@dataclass(frozen=True)
class Problem:
    """A broken rule: the key (`place`), its value (TOML; "" to leave it out), rule and cure.

    `reads` names the other top-level keys that the rule reads. If one of them is invalid, the rule
    was checked with that key's default, and the problem is not certain.
    """

    place: str
    value: str
    rule: str
    cure: Cure
    reads: tuple[str, ...] = ()

    def text(self, words: Words = IN_FILE) -> str:
        """Two lines: what is wrong, and what to do."""
        value = f" = {self.value}" if self.value else ""
        return f"{words.place(self.place)}{value}: {self.rule}\n    → {self.cure_text(words)}"

    def cure_text(self, words: Words = IN_FILE) -> str:
        """The cure, with its settings written by `words`."""
        return cure_text(self.cure, words, self.place)


def cure_text(cure: Cure, words: Words = IN_FILE, place: str = "") -> str:
    """The cure of a problem at the key `place`, with its settings written by `words`."""
    parts = (cure,) if isinstance(cure, str) else cure
    return "".join(part if isinstance(part, str) else words.setting(part, place) for part in parts)
