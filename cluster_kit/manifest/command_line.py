"""Finds the values that the command line set, and names them in messages: as options, variables or
keys. Pure."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from cluster_kit.errors import TOML_STYLE, ManifestError, Problem, Setting
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import MASK, looks_secret, without_values
from cluster_kit.util.paths import CALLED_BY, MANIFESTS
from cluster_kit.util.toml_text import to_toml

Kind = Literal["count", "text", "program", "data", "file", "words", "gpus", "switch"]
"""How an option's text becomes the key's value (see cli/override_values)."""


@dataclass(frozen=True)
class Override:
    """A key of the manifest, its option, its Make variable and its help text."""

    key: str
    option: str
    variable: str
    kind: Kind
    help: str
    metavar: str | None = None


OVERRIDES = (
    Override("chief", "--chief", "N_CHIEF", "count", "Number of chiefs: 0 or 1.", "INTEGER"),
    Override("worker", "--workers", "N_WORKERS", "count", "Number of workers.", "INTEGER"),
    Override("ps", "--ps", "N_PS", "count", "Number of parameter servers.", "INTEGER"),
    Override("data_worker", "--data-workers", "N_DATA_WORKERS", "count",
             "Number of tf.data service's workers.", "INTEGER"),
    Override("style", "--style", "STYLE", "text",
             "Who runs the program: the chief alone, or the workers, too.",
             "[auto|coordinator|all-tasks]"),
    Override("name", "--name", "NAME", "text", "Run it under another name."),
    Override("engine", "--engine", "BACKEND", "text", "What runs the containers."),
    Override("program", "--program", "PROGRAM", "program",
             "Run this program instead (without args and evaluator)."),
    Override("args", "--args", "ARGS", "words", "Further arguments; a flag's last value counts."),
    Override("tf1", "--tf1", "TF1", "switch", "The program is written for TensorFlow 1."),
    Override("requirements", "--requirements", "REQUIREMENTS", "file",
             "A file of pip requirements for the image."),
    Override("data", "--data", "DATA", "data", "Data set of the image, or directory."),
    Override("gpus", "--gpus", "GPUS", "gpus", "none, auto, or ids: 0,1 or GPU-<uuid>."),
)  # fmt: skip
SET_OPTION, SET_VARIABLE = "--set", "SET"
"""The option for all other keys: `--set key=value`, with the value in TOML."""


def override_of(key: str) -> Override | None:
    """The override of a key, or of the list that it is in (`args` of `args.3`); else None."""
    top, _, inner = key.partition(".")
    whole = top if inner.isdecimal() else key
    return next((override for override in OVERRIDES if override.key == whole), None)


HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""A template's `{{ … }}` or `{% … %}` in an argument."""
DEEPEST = 20


def render_command(
    manifest: Path,
    overrides: Mapping[str, Any],
    root: Path,
    merged: Mapping[str, Any] | None = None,
    by_set: Collection[str] = (),
) -> str:
    """Returns the command that renders this manifest with these overrides in the folder `root`.

    The same manifest and overrides give the same text, in whatever form the user typed them. A
    value that looks like a secret is masked, since the text is written into files.

    Args:
        merged: the manifest's tables with the overrides; without them, the overrides.
        by_set: the keys that `--set` gave: relative paths in these start at the manifest's folder.
    """
    overrides = _without_values_of_options(overrides, merged or overrides)
    words = ["cluster-kit", "render", _reference(manifest, root)]
    tables = {key for key, value in overrides.items() if isinstance(value, dict)}
    for override in OVERRIDES:
        key = "extra_args" if override.kind == "words" else override.key
        if key in overrides.keys() - tables and not _implied(key, overrides):
            words += _words(override, overrides[key], root, by_set)
    known = {override.key for override in OVERRIDES if override.kind != "words"} - tables
    other_overrides = {
        key: value for key, value in overrides.items() if key not in (*known, "extra_args")
    }
    for key, value in sorted(_flat(other_overrides)):
        if not _implied(key, overrides):
            secret = looks_secret(key.rpartition(".")[2])
            shown = MASK if secret else to_toml(without_values(value), DEEPEST)
            words += [SET_OPTION, f"{key}={shown}"]
    return shlex.join(words)


def _without_values_of_options(
    overrides: Mapping[str, Any], merged: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The overrides with MASK for the value of an option that is at the end of another key.

    Added arguments follow those of the file, and a sidecar's `command` follows its `entrypoint`.
    """
    masked, sidecars = dict(overrides), merged.get("sidecar")
    if "extra_args" in masked and _is_words(merged.get("args")):
        begin = merged["args"][: len(merged["args"]) - len(masked["extra_args"])]
        masked["extra_args"] = _after(begin, masked["extra_args"])
    tables = masked.get("sidecar")
    if not (isinstance(tables, dict) and isinstance(sidecars, dict)):
        return masked
    masked["sidecar"] = dict(tables)
    for name, table in tables.items():
        entry = sidecars.get(name)
        begin = entry.get("entrypoint") if isinstance(entry, dict) else None
        if isinstance(table, dict) and _is_words(begin) and _is_words(table.get("command")):
            masked["sidecar"][name] = {**table, "command": _after(begin, table["command"])}
    return masked


def masked_words(words: Sequence[str]) -> list[str]:
    """The words of a command line with MASK for each value that looks like a secret, also within
    the table of a `--set key={…}`."""
    shown: list[str] = without_values(words)
    for at, word in enumerate(words):
        begin = "" if words[at - 1 : at] == [SET_OPTION] else f"{SET_OPTION}="
        if not begin or word.startswith(begin):
            shown[at] = begin + _without_secrets(word.removeprefix(begin), shown[at])
    return shown


def _without_secrets(text: str, otherwise: str) -> str:
    """`key=value` with MASK for values that look like secrets; `otherwise` if it has none."""
    key, _, value = text.partition("=")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    masked = _masked(key.strip().rpartition(".")[2], parsed)
    return otherwise if masked == parsed else f"{key}={to_toml(masked, DEEPEST)}"


def _masked(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {inner: _masked(inner, one) for inner, one in value.items()}
    is_secret = isinstance(value, str) and value and looks_secret(key)
    return MASK if is_secret else without_values(value)


def _after(begin: Any, words: Any) -> list[str]:
    """The words without values of options, including the value of an option at the end of
    `begin`."""
    shown: list[str] = without_values([*begin, *words])
    return shown[len(begin) :]


def _is_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def below(path: Path, root: Path) -> str:
    """The path relative to `root` if it is below it, else the absolute path."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _reference(manifest: Path, root: Path) -> str:
    named = root / "compose" / f"{manifest.stem}.toml"
    of_kit = manifest.parent == MANIFESTS and not named.exists()
    return manifest.stem if manifest == named or of_kit else below(manifest, root)


def with_another_program() -> dict[str, Any]:
    """The overrides that reset a manifest's settings for its own program, if another program
    runs."""
    evaluators = {role.name: 0 for role in ROLES.values() if role.evaluates}
    return {**evaluators, "args": [], "requirements": "", "tf1": False}


def _implied(key: str, overrides: Mapping[str, Any]) -> bool:
    """Whether `--program` alone sets this key to this value."""
    implied = with_another_program()
    return "program" in overrides and key in implied and overrides.get(key) == implied[key]


def _words(override: Override, value: Any, root: Path, by_set: Collection[str]) -> list[str]:
    """The option with this value; a switch has no value, and can only be on."""
    of_manifest = override.kind in PATHS and override.key in by_set and not _is_absolute(value)
    if override.kind != "switch" and not of_manifest:
        return [override.option, _text(override, value, root)]
    on = override.kind == "switch" and value is True
    return [override.option] if on else [SET_OPTION, f"{override.key}={to_toml(value)}"]


PATHS = ("program", "data", "file")
"""The kinds of options whose value can be a path."""


def _is_absolute(value: object) -> bool:
    """Whether it is an absolute path."""
    return isinstance(value, str) and Path(value).is_absolute()


def _text(override: Override, value: Any, root: Path) -> str:
    """The text of an option that gives this value."""
    if override.kind == "words":
        return " ".join(map(quoted, without_values(value)))
    if override.kind == "gpus" and isinstance(value, list):
        return ",".join(map(str, value))
    if override.kind in PATHS and _is_absolute(value):
        return below(Path(value), root)
    return str(value)


def quoted(word: str) -> str:
    """The word quoted for a shell, except inside a template's braces."""
    holes = HOLE.findall(word)
    plain = HOLE.sub("", word)
    if holes and shlex.quote(plain) in (plain, "''"):
        return word
    quoted = shlex.quote(HOLE.sub("\ue000", word))
    for hole in holes:
        quoted = quoted.replace("\ue000", hole, 1)
    return quoted


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class Caller(StrEnum):
    """The caller of the kit (Make, shell, Python), which decides how messages name keys and
    settings."""

    SHELL = "cluster-kit"
    MAKE = "make"
    PYTHON = "python"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Caller:
        """The caller that started this process: `make`, or else a shell."""
        return cls.MAKE if environment.get(CALLED_BY) == cls.MAKE else cls.SHELL

    def written(self, key: str) -> str:
        """The name by which the caller sets a key: `--workers`, `N_WORKERS`, or in Python the key's
        name."""
        override = override_of(key)
        if override is None:
            return self.by_set(key)
        names = {self.SHELL: override.option, self.MAKE: override.variable}
        return names.get(self, key)

    def by_set(self, key: str) -> str:
        """The text that sets a key by the option for all keys: `--set port`."""
        names = {self.SHELL: SET_OPTION, self.MAKE: SET_VARIABLE}
        return f"{names[self]} {key}" if self in names else key

    def setting(self, setting: Setting, key_path: str = "") -> str:
        """The setting to type: `` `--workers 2` ``, `` `N_WORKERS=2` ``, in Python `` `worker = 2`
        ``."""
        if self is self.PYTHON:
            return TOML_STYLE.setting(setting, key_path)
        key, value = setting.key, _value(setting)
        override = override_of(key)
        if override is None or (override.kind == "switch" and value != "true"):
            return self._set(f"{key}={value}", setting)
        option, word = override.option, shlex.quote(value)
        if override.kind == "switch":
            return f"`{option}`" if self is self.SHELL else f"`{override.variable}=1`"
        return f"`{option} {word}`" if self is self.SHELL else f"`{override.variable}={word}`"

    def _set(self, pair: str, setting: Setting) -> str:
        """The setting of a key without its own option. Make splits a value with spaces."""
        if self is self.SHELL:
            return f"`{SET_OPTION} {shlex.quote(pair)}`"
        if pair.split() != [pair]:
            return TOML_STYLE.setting(setting, "")
        return f"`{SET_VARIABLE}={shlex.quote(pair)}`"


def _value(setting: Setting) -> str:
    """The value as the option's argument."""
    value = setting.value
    if isinstance(value, tuple) and setting.key == "args":
        return " ".join(map(quoted, value))
    if not isinstance(value, str) or (override_of(setting.key) is None and _is_toml(value)):
        return to_toml(value)
    return value


def _is_toml(text: str) -> bool:
    """Whether `--set` would read a text as a value of another kind: `2.15` as a number."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return False
    return True


@dataclass(frozen=True)
class CommandLine:
    """The keys whose values the command line set; every other value is from the file.

    An argument that was added to the file's has its own key: `args.3`. `by_set` are the keys that
    `--set` gave, including keys that have their own option. `tables` are those that the file does
    not have as tables.
    """

    keys: frozenset[str] = frozenset()
    by_set: frozenset[str] = frozenset()
    caller: Caller = Caller.SHELL
    tables: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        overrides: Mapping[str, Any],
        added: range,
        by_set: frozenset[str] = frozenset(),
        caller: Caller = Caller.SHELL,
        file: Mapping[str, Any] = MappingProxyType({}),
    ) -> CommandLine:
        """The keys of these overrides, and those of the arguments numbered `added`.

        Args:
            file: the manifest's tables without the overrides.
        """
        keys = [*_keys(overrides), *(f"args.{number}" for number in added)]
        keys += ["args"] if added else []
        return cls(frozenset(keys), by_set, caller, frozenset(_new_tables(overrides, file)))

    def written(self, key: str) -> str:
        """The option or the Make variable if the command line gave the key, else the key."""
        given = self._given(key)
        if given is None:
            return key
        by_set = given in self.by_set or any(one.startswith(f"{given}.") for one in self.by_set)
        return self.caller.by_set(key) if by_set else self.caller.written(key)

    def setting(self, setting: Setting, key_path: str) -> str:
        """The setting as an option or variable if the command line gave its key or the problem's
        key; else as TOML.
        """
        if not setting.for_once and self.keys.isdisjoint((key_path, setting.key)):
            return TOML_STYLE.setting(setting, key_path)
        return self.caller.setting(setting, key_path)

    def error(self, path: Path, problems: Sequence[Problem]) -> ManifestError:
        """The error with these problems; its source is the file, the command line (in Python: the
        overrides), or both."""
        by_command_line = sum(map(self._gave, problems))
        given = "the overrides" if self.caller is Caller.PYTHON else "the command line"
        source = f"{path} and {given}" if by_command_line else str(path)
        return ManifestError(given if by_command_line == len(problems) else source, problems, self)

    def _gave(self, problem: Problem) -> bool:
        """Whether the command line gave the invalid value, or named the file that contains it."""
        return self._given(problem.key_path) is not None

    def _given(self, key: str) -> str | None:
        """The key itself or the list that it is in, if the command line gave that; else None."""
        if key in self.keys or key in self.tables:
            return key
        whole = key.rpartition(".")[0]
        has_own_keys = any(one.startswith(f"{whole}.") for one in self.keys)
        return None if not whole or has_own_keys else self._given(whole)


def _keys(overrides: Mapping[str, Any], table: str = "") -> Iterator[str]:
    """The dotted keys of nested tables."""
    for name, value in overrides.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{table}{name}.")
        else:
            yield f"{table}{name}"


def _new_tables(
    overrides: Mapping[str, Any], file: Mapping[str, Any], table: str = ""
) -> Iterator[str]:
    """The dotted names of nested tables that the file does not have, or has as other values."""
    for name, value in overrides.items():
        if isinstance(value, dict):
            of_file = file.get(name)
            if not isinstance(of_file, dict):
                yield f"{table}{name}"
            inner = of_file if isinstance(of_file, dict) else {}
            yield from _new_tables(value, inner, f"{table}{name}.")


_TASK = re.compile(rf"({'|'.join(ROLES)})-[0-9]+")


def name_where_expected(
    words: list[str], arguments: Sequence[str], *, takes_option: bool
) -> list[str]:
    """The words after a verb, with the cluster's name in the form that the verb takes.

    Args:
        arguments: the names of the verb's arguments, in their order.
        takes_option: whether the verb has the option `--name`.
    """
    if takes_option and arguments[:1] == ["task"]:  # CLUSTER TASK means TASK --name CLUSTER
        named_first = len(words) > 1 and _TASK.fullmatch(words[1]) and not words[0].startswith("-")
        is_cluster = named_first and not _TASK.fullmatch(words[0])
        return ["--name", words[0], *words[1:]] if is_cluster else words
    if takes_option or arguments[:1] not in (["name"], ["run"], ["runs"]):
        return words
    ours = words.index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:ours]):
        option, equals, value = word.partition("=")
        if option == "--name" and (equals or place + 1 < ours):
            after = place + 1 if equals else place + 2
            return [value if equals else words[place + 1], *words[:place], *words[after:]]
    return words


def with_bare_values(words: Sequence[str], bare: Mapping[str, Sequence[str]]) -> list[str]:
    """The words after a verb; an option that is given without a value gets its default.

    Args:
        bare: options that may have no value, with their allowed values, the default first.
    """
    after = [*words[1:], ""][: len(words)]
    return [
        f"{word}={bare[word][0]}" if word in bare and following not in bare[word] else word
        for word, following in zip(words, after, strict=True)
    ]
