"""Every error that a user can cause, with its exit code.

KitError                     exit code
├── ManifestError            2   the manifest is invalid, or asks for something impossible
├── HostError                3   this host cannot do what was requested
├── EngineError              4   the engine that runs the containers failed
├── TrainingFailed           5   the training ended with an error
├── DrillFailed              5   a drill's result differs from its scenario
├── DeadlinePassed           6   a deadline of the manifest passed
├── Stopped                  7   a user or program stopped the run on purpose
├── DataFailed               8   the data step of a manifest failed
└── Interrupted              130 Ctrl-C or SIGTERM

Each has a message (what happened, with the value and the rule) and a hint (what to type or change
next). Any other exception is a bug in the kit and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster_kit.contract.endings import KIT_DEADLINE, KIT_HOST, KIT_STOPPED, KIT_TRAINING_FAILED
from cluster_kit.util.terminal import counted
from cluster_kit.util.toml_text import to_toml


@dataclass(frozen=True)
class Setting:
    """A key of the manifest, with its tables (`deadline.start`), and a value for it.

    `for_once`: the value is for a single command rather than for the file.
    """

    key: str
    value: str | int | float | bool | tuple[str, ...]
    for_once: bool = False


HintText = str | tuple[str | Setting, ...]
"""What to do next: text with settings, which are written in the user's form (file or options)."""


class KeyStyle(Protocol):
    """Writes keys and settings in messages: as in the file, or as command-line options."""

    def written(self, key: str) -> str:
        """The key as the message names it."""

    def setting(self, setting: Setting, key_path: str) -> str:
        """The setting as the user would write it to fix the problem at `key_path`."""


class TomlStyle:
    """Writes every key as in the manifest's file."""

    def written(self, key: str) -> str:
        return key

    def setting(self, setting: Setting, key_path: str) -> str:
        table, _, key = setting.key.rpartition(".")
        where = f" under [{table}]" if table and table != key_path.rpartition(".")[0] else ""
        return f"`{key} = {to_toml(setting.value)}`{where}"


TOML_STYLE = TomlStyle()


@dataclass(frozen=True)
class Problem:
    """A broken rule: the key (`key_path`), its value (TOML; "" to leave it out), rule and hint.

    `line` is the place in the file that the key names, `train.py:3`; "" if the problem is in the
    manifest itself. It is shown instead of the key, and `value` is then the text of that line.
    `reads` names the other top-level keys that the rule reads. If one of them is invalid, the rule
    was checked with that key's default, and the problem is not certain.
    """

    key_path: str
    value: str
    rule: str
    hint: HintText
    reads: tuple[str, ...] = ()
    line: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(self, words: KeyStyle = TOML_STYLE) -> str:
        """Two lines: what is wrong, and what to do."""
        value = f" = {self.value}" if self.value else ""
        place = self.line or words.written(self.key_path)
        return f"{place}{value}: {self.rule}\n    → {self.hint_text(words)}"

    def hint_text(self, words: KeyStyle = TOML_STYLE) -> str:
        """The hint, with its settings written by `words`."""
        return hint_text(self.hint, words, self.key_path)

    @property
    def place(self) -> str:
        """`line`, or else `key_path`; version 0.1 had only this."""
        return self.line or self.key_path

    @property
    def cure(self) -> HintText:
        """`hint`, by the name that it had in version 0.1."""
        return self.hint

    cure_text = hint_text


def hint_text(hint: HintText, words: KeyStyle = TOML_STYLE, key_path: str = "") -> str:
    """The hint for a problem at `key_path`, with its settings written by `words`."""
    parts = (hint,) if isinstance(hint, str) else hint
    return "".join(
        part if isinstance(part, str) else words.setting(part, key_path) for part in parts
    )


def shortened(problems: Sequence[Problem], most: int, key_path: str = "") -> list[Problem]:
    """The first `most` problems, and if there are more, one with their number at `key_path`."""
    more = len(problems) - most
    if more <= 0:
        return list(problems)
    rule = counted(more, "more problem")
    rest = Problem(key_path, "", rule, "fix the first ones, and try again")
    return [*problems[:most], rest]


class KitError(Exception):
    """A deliberate error: `message` says what happened, `hint` what to do next.

    `run` is the directory of the run that the error ended, "" if no run had begun.
    """

    exit_code = 1
    run = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def cure(self) -> str:
        """`hint`, by the name that it had in version 0.1."""
        return self.hint


class ManifestError(KitError):
    """The manifest is invalid, or describes an impossible cluster.

    `problems` holds every problem, not only the first.

    Args:
        source: where the problems are: a file, the command line, or both.
        words: how the message names keys and settings.
    """

    exit_code = 2

    def __init__(
        self, source: str, problems: Sequence[Problem], words: KeyStyle = TOML_STYLE
    ) -> None:
        count = counted(len(problems), "problem")
        lines = "\n".join(f"  {problem.text(words)}" for problem in problems)
        super().__init__(f"{source}: {count}\n{lines}")
        self.problems = tuple(problems)


class UsageError(KitError):
    """The command line is invalid, or names something that does not exist."""

    exit_code = 2


class HostError(KitError):
    """This host cannot do what was requested."""

    exit_code = KIT_HOST


class EngineError(KitError):
    """The engine that runs the containers failed; the message quotes its error."""

    exit_code = 4


class TrainingFailed(KitError):
    """The training ended with an error."""

    exit_code = KIT_TRAINING_FAILED


class DrillFailed(KitError):
    """A drill's result differs from what its scenario expects."""

    exit_code = 5


class DeadlinePassed(KitError):
    """A deadline of the manifest passed."""

    exit_code = KIT_DEADLINE


class Stopped(KitError):
    """A user or program stopped the run on purpose: `cluster-kit down`, `docker stop`."""

    exit_code = KIT_STOPPED


class DataFailed(KitError):
    """The program that fetches the data failed, or wrote no data; nothing was started."""

    exit_code = 8


class Interrupted(KitError):
    """Ctrl-C or SIGTERM; everything that the command had started is removed."""

    exit_code = 130
