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


HintText = str | tuple[str | Setting, ...]
"""What to do next: text, with settings in it that are written as the user gives them."""


class KeyStyle(Protocol):
    """How a message writes keys and settings: as in the file, or as command-line options."""

    def written(self, key: str) -> str:
        """The key as the message names it."""

    def setting(self, setting: Setting, key_path: str) -> str:
        """The setting as the user would write it, to solve the problem at `key_path`."""


class TomlStyle:
    """Every key as in the manifest's file."""

    def written(self, key: str) -> str:
        return key

    def setting(self, setting: Setting, key_path: str) -> str:
        return f"`{setting.key.rpartition('.')[2]} = {to_toml(setting.value)}`"


TOML_STYLE = TomlStyle()


@dataclass(frozen=True)
class Problem:
    """A broken rule: the key (`key_path`), its value (TOML; "" to leave it out), rule and hint.

    `reads` names the other top-level keys that the rule reads. If one of them is invalid, the rule
    was checked with that key's default, and the problem is not certain.
    """

    key_path: str
    value: str
    rule: str
    hint: HintText
    reads: tuple[str, ...] = ()

    def text(self, words: KeyStyle = TOML_STYLE) -> str:
        """Two lines: what is wrong, and what to do."""
        value = f" = {self.value}" if self.value else ""
        return f"{words.written(self.key_path)}{value}: {self.rule}\n    → {self.hint_text(words)}"

    def hint_text(self, words: KeyStyle = TOML_STYLE) -> str:
        """The hint, with its settings written by `words`."""
        return hint_text(self.hint, words, self.key_path)

    @property
    def place(self) -> str:
        """`key_path`, by the name that it had in version 0.1."""
        return self.key_path

    @property
    def cure(self) -> HintText:
        """`hint`, by the name that it had in version 0.1."""
        return self.hint

    cure_text = hint_text


def hint_text(hint: HintText, words: KeyStyle = TOML_STYLE, key_path: str = "") -> str:
    """The hint of a problem at the key `key_path`, with its settings written by `words`."""
    parts = (hint,) if isinstance(hint, str) else hint
    return "".join(
        part if isinstance(part, str) else words.setting(part, key_path) for part in parts
    )
