"""Answers Tab in bash, zsh, fish and PowerShell, without importing typer or a verb.

Verbs and their options are in `completion.json`, which `make docs` writes. A
line is parsed by typer's rules for incomplete lines: what comes after a mistake is ignored.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import re
import shlex
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from cluster_kit.manifest.command_line import name_where_expected, with_bare_values

Kind = Literal["manifests", "clusters", "tasks", "runs"]
"""The kinds of words that depend on the directory or on the engine."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SETTINGS: Literal["settings"] = "settings"
"""The keys of the manifest, each with `=`, and then its values."""
VARIABLE = "_CLUSTER_KIT_COMPLETE"
"""The variable by which a shell asks for words: `complete_` and the shell's name."""
TABLE = Path(__file__).with_name("completion.json")
WITHIN_S = 2.0
"""Seconds to wait for an engine's answer."""


@dataclass(frozen=True)
class Parameter:
    """An option or an argument of a verb. `values` is a kind of words or the allowed values."""

    name: str
    options: tuple[str, ...] = ()
    help: str = ""
    flag: bool = False
    many: bool = False
    hidden: bool = False
    values: Kind | Literal["settings"] | tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Parameter:
        """The parameter of a row as `completion.json` has it."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
        }
        return cls(**fields)


@dataclass(frozen=True)
class Command:
    """A verb, or the word before its verbs; `bare` as in `with_bare_values`.

    `passes_on`: unknown options are words for a program. `settings`, which only the root has, are
    the keys of a manifest with the values to propose.
    """

    help: str
    parameters: tuple[Parameter, ...]
    bare: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    hidden: bool = False
    passes_on: bool = False
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Command:
        """The command of a table as `completion.json` has it."""
        parameters = map(Parameter.of, table["parameters"])
        below = {name: cls.of(one) for name, one in table.get("commands", {}).items()}
        return cls(**{**table, "parameters": tuple(parameters), "commands": below})

    @property
    def arguments(self) -> list[Parameter]:
        """The arguments, in their order."""
        return [one for one in self.parameters if not one.options]


@dataclass(frozen=True)
class Word:
    """A word that can stand at the end of the line, and its help."""

    text: str
    help: str = ""


def asked() -> str:
    """The shell that asks for words, "" if none does."""
    instruction, _, shell = os.environ.get(VARIABLE, "").partition("_")
    return shell if instruction == "complete" and shell in SHELLS else ""


def answer(shell: str) -> int:
    """Print the words for a shell; returns the exit code."""
    words, incomplete = _line(shell)
    found = completed(words, incomplete)
    if shell == "bash":
        print("\n".join(word.text for word in found))
    elif shell == "zsh":
        shown = "\n".join(map(_in_zsh, found))
        print(f"_arguments '*: :(({shown}))'" if found else "_files")
    elif shell == "fish":
        if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            return 0 if found else 1
        print("\n".join(f"{w.text}\t{w.help}" if w.help else w.text for w in found))
    else:
        print("\n".join(f"{word.text}:::{word.help or ' '}" for word in found))
    return 0


SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_ZSH = {'"': '""', "'": "''", "$": "\\$", "`": "\\`", ":": r"\\:"}


def _in_zsh(word: Word) -> str:
    text, help_ = (re.sub(r"""["'$`:]""", lambda found: _ZSH[found[0]], one)
                   for one in (word.text, word.help))  # fmt: skip
    return f'"{text}":"{help_}"' if help_ else f'"{text}"'


def _line(shell: str) -> tuple[list[str], str]:
    """The complete words after the program's name, and the incomplete one; "" for a new one."""
    if shell == "bash":
        words, place = _split(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"])
        return words[1:place], words[place] if place < len(words) else ""
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    if shell in ("powershell", "pwsh"):
        incomplete = os.environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
        return words[:-1] if incomplete else words, incomplete
    if words and not line.endswith(" "):
        return words[:-1], words[-1]
    return words, ""


def _split(line: str) -> list[str]:
    """The words of a line as a shell splits it; the last one can lack its closing quote."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def completed(words: Sequence[str], incomplete: str) -> list[Word]:
    """The words that can replace the incomplete one.

    Args:
        words: the complete words before it.
    """
    before = list(words)
    root = Command.of(json.loads(TABLE.read_text(encoding="utf-8")))
    command, given = _parsed(root, before)
    for one in command.parameters:
        if one.values == SETTINGS and (found := _set(one, root.settings, before, incomplete)):
            return found
    if incomplete == "=":
        incomplete = ""
    elif "=" in incomplete and incomplete.startswith("-"):
        option, _, incomplete = incomplete.partition("=")
        before.append(option)
    if "--" not in before and incomplete.startswith("-"):
        return _options(command, given, incomplete)
    last = before[-1] if before else ""
    for one in command.parameters:
        if last.startswith("-") and not one.flag and last in one.options:
            return _values(one, given, incomplete)
    for one in command.arguments:
        if one.many or one.name not in given:
            return _values(one, given, incomplete)
    verbs = [
        Word(name, below.help)
        for name, below in command.commands.items()
        if name.startswith(incomplete) and not below.hidden
    ]
    return verbs + (_options(command, given, incomplete) if incomplete.startswith("-") else [])


def _options(command: Command, given: Mapping[str, Any], incomplete: str) -> list[Word]:
    return [
        Word(option, one.help)
        for one in command.parameters
        if not one.hidden and (one.many or one.name not in given)
        for option in one.options
        if option.startswith(incomplete)
    ]


def _set(
    option: Parameter, settings: Mapping[str, Sequence[str]], before: list[str], incomplete: str
) -> list[Word]:
    """The keys and values for the option that sets a key, [] if no word of it is incomplete.

    If one key is left, its values are proposed, too: then a shell writes the key and `=`, but not
    the space that it writes after a single word. Bash makes a word of each `=`.
    """
    *_, third, second, last = ["", "", "", *before]
    inline, equals, rest = incomplete.partition("=")
    if incomplete == "=" and second in option.options:
        return [Word(value) for value in settings.get(last, ())]
    if last == "=" and incomplete and third in option.options:
        return [Word(value) for value in settings.get(second, ()) if value.startswith(incomplete)]
    if equals and inline in option.options:
        incomplete = rest
    elif incomplete == "=" and last in option.options:
        incomplete = ""
    elif last not in option.options and not (
        last == "=" and incomplete and second in option.options
    ):
        return []
    written, equals, _ = incomplete.partition("=")
    keys = [key for key in settings if key == written or (not equals and key.startswith(written))]
    texts = [f"{key}=" for key in keys]
    if len(keys) == 1:
        texts += [f"{keys[0]}={value}" for value in settings[keys[0]]]
    return [Word(text) for text in texts if text.startswith(incomplete) and text != incomplete]


def _values(parameter: Parameter, given: Mapping[str, Any], incomplete: str) -> list[Word]:
    if parameter.values == SETTINGS:
        return []
    if isinstance(parameter.values, tuple):
        return [Word(value) for value in parameter.values if value.startswith(incomplete)]
    name = given.get("name")
    return [Word(text) for text in words(parameter.values, name, incomplete)]


def _parsed(root: Command, words: list[str]) -> tuple[Command, dict[str, Any]]:
    """The last verb of a line, and what the line gives of its parameters, by their names."""
    command = root
    given, rest = _given(command, words)
    while rest and command.commands:
        below = command.commands.get(rest[0])
        if below is None:
            break
        takes_option = any("--name" in one.options for one in below.parameters)
        arguments = [one.name for one in below.arguments]
        ordered = rest[1:]
        if command is root:
            ordered = name_where_expected(ordered, arguments, takes_option=takes_option)
        command = below
        given, rest = _given(command, with_bare_values(ordered, command.bare))
    return command, given


def _given(command: Command, words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """What words give of a command's parameters, and the words after them."""
    line = _Line(command, words)
    if not line.parsed():
        return line.given, []
    if command.commands:
        return line.given, line.plain
    plain, after = line.plain, command.arguments
    while after and not after[0].many:
        name = after.pop(0).name
        line.given |= {name: plain.pop(0)} if plain else {}
    while after and not after[-1].many:
        name = after.pop().name
        line.given |= {name: plain.pop()} if plain else {}
    if after and plain:
        line.given[after[0].name] = plain
    return line.given, []


class _Line:
    """The words after a command: its options in `given`, the others in `plain`."""

    def __init__(self, command: Command, words: Sequence[str]) -> None:
        self.given: dict[str, Any] = {}
        self.plain: list[str] = []
        self._rest = list(words)
        self._command = command
        self._options = {option: one for one in command.parameters for option in one.options}

    def parsed(self) -> bool:
        """Parse the words up to a mistake; returns whether there is none."""
        while self._rest:
            word = self._rest.pop(0)
            if word == "--":
                break
            if not word.startswith("-") or len(word) == 1:
                self.plain.append(word)
                if self._command.commands:
                    break
            elif not (self._long(word) if word.startswith("--") else self._short(word)):
                return False
        self.plain += self._rest
        return True

    def _long(self, word: str) -> bool:
        name, equals, value = word.partition("=")
        one = self._options.get(name)
        if one is None:
            return self._unknown(word)
        if one.flag:
            self.given |= {} if equals else {one.name: True}
            return not equals
        if equals:
            self._rest.insert(0, value)
        return self._value(one)

    def _short(self, word: str) -> bool:
        """Parse `-xvalue`, or several flags in one word."""
        unknown = ""
        for place, letter in enumerate(word[1:], 2):
            one = self._options.get(f"-{letter}")
            if one is None:
                if not self._command.passes_on:
                    return False
                unknown += letter
            elif one.flag:
                self.given[one.name] = True
            else:
                if word[place:]:
                    self._rest.insert(0, word[place:])
                if not self._value(one):
                    return False
                break
        return not unknown or self._unknown(f"-{unknown}")

    def _unknown(self, word: str) -> bool:
        self.plain += [word] if self._command.passes_on else []
        return self._command.passes_on

    def _value(self, parameter: Parameter) -> bool:
        """Take the next word as a parameter's value; returns whether there is one."""
        if self._rest:
            self.given[parameter.name] = self._rest.pop(0)
            return True
        return False


def words(kind: Kind, name: str | None, incomplete: str) -> list[str]:
    """The words of a kind that begin with the given text, sorted; [] if they cannot be found.

    Args:
        name: the cluster that the line names, if it names one.
    """
    nowhere = io.StringIO()
    try:
        # What a library prints would stand in the line that is being typed.
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            return sorted({word for word in _WORDS[kind](name) if word.startswith(incomplete)})
    except Exception:  # noqa: BLE001 - it would be printed into the line, too
        return []


def _manifests(_name: str | None) -> Iterable[str]:
    """Names of manifests: this directory's, and the kit's own."""
    from cluster_kit.util.paths import MANIFESTS  # each Tab imports only what it needs
    from cluster_kit.workspace import here, names

    return names(here().manifests, MANIFESTS)


def _clusters(_name: str | None) -> Iterable[str]:
    """Names of clusters that are up."""
    return (container.cluster for container in _containers())


def _tasks(name: str | None) -> Iterable[str]:
    """Names of tasks: of the cluster that the line names, else of this directory's, else of all."""
    from cluster_kit.run.find import of_workspace
    from cluster_kit.workspace import here

    containers = _containers()
    up = {container.cluster for container in containers}
    shown = {name} if name else set(of_workspace(containers, here(), up)) or up
    return (container.name for container in containers if container.cluster in shown)


def _runs(_name: str | None) -> Iterable[str]:
    """Names of runs, such as `quickstart/20261122-101500`, and of their clusters."""
    from cluster_kit.run.history import runs_of
    from cluster_kit.workspace import here

    past_runs = runs_of(here())
    return [*(run.name for run in past_runs), *(run.cluster for run in past_runs)]


_WORDS = {"manifests": _manifests, "clusters": _clusters, "tasks": _tasks, "runs": _runs}


def _containers() -> Sequence[Any]:
    """The containers of the kit's clusters, as summaries.

    Raises:
        TimeoutError: the engine does not answer in time.
        KitError: it does not answer at all.
    """
    from cluster_kit.this_host import this_host

    answers: queue.SimpleQueue[Sequence[Any] | Exception] = queue.SimpleQueue()
    host = this_host()

    def ask() -> None:
        try:
            answers.put(host.glance())
        except Exception as error:  # noqa: BLE001 - raised below
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        result = answers.get(timeout=WITHIN_S)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, Exception):
        raise result
    return result
