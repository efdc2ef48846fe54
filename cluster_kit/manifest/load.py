"""Reads a TOML file and command-line overrides into a Manifest, with all problems of its shape."""

from __future__ import annotations

import copy
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError

from cluster_kit.errors import HintText, ManifestError, Problem, Setting, UsageError
from cluster_kit.manifest.command_line import Caller, CommandLine, render_command
from cluster_kit.manifest.schema import (
    DataTable,
    DeadlineTable,
    Limits,
    Manifest,
    MountTable,
    NetworkTable,
    ProfileTable,
    RestartTable,
    SecretTable,
    SidecarTable,
    TaskLimits,
)
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import (
    MASK,
    looks_secret,
    masker,
    option_values,
    url_passwords,
    without_shell_values,
    without_values,
)
from cluster_kit.util.nearest import did_you_mean_path, nearest, proposal
from cluster_kit.util.paths import MANIFESTS, is_directory, is_file
from cluster_kit.util.toml_text import dotted, to_toml
from cluster_kit.workspace import RunDirectory, names

_ONE_TASK = dict.fromkeys(TaskLimits.model_fields, "under [task.worker-0]")
_EVERY_TASK = dict.fromkeys(Limits.model_fields, "under [role.worker] or [task.worker-0]")
_DEADLINE = dict.fromkeys(DeadlineTable.model_fields, "under [deadline]")
_MOUNT = dict.fromkeys(MountTable.model_fields, "under [[mount]]")
_NETWORK = dict.fromkeys(NetworkTable.model_fields, "under [network]")
_SECRET = dict.fromkeys(SecretTable.model_fields, "under [secret.NAME]")
_SIDECAR = dict.fromkeys(SidecarTable.model_fields, "under [sidecar.NAME]")
_DATA = dict.fromkeys(DataTable.model_fields, "under [data]")
_PROFILE = dict.fromkeys(ProfileTable.model_fields, "under [profile]")
_RESTART = dict.fromkeys(RestartTable.model_fields, "under [restart]")


@cache
def homes(model: type[Manifest]) -> Mapping[str, str]:
    """The source of each key (file or option), for messages."""
    platforms = model.model_fields.keys() - Manifest.model_fields.keys()
    of_platforms = {
        key: f"under [{name}]"
        for name in sorted(platforms, reverse=True)
        for key in _inside(model.model_fields[name].annotation).model_fields
    }
    top = {key: _written(key, model) for key in model.model_fields}
    fixed_tables = (
        _PROFILE | _SIDECAR | _DATA | _SECRET | _ONE_TASK | _EVERY_TASK | _DEADLINE | _MOUNT
    )
    return of_platforms | fixed_tables | _NETWORK | _RESTART | top


def _written(key: str, model: type[Manifest]) -> str:
    """Where and how a key of the manifest itself is written."""
    annotation = model.model_fields[key].annotation
    if get_origin(annotation) is list and hasattr(_inside(get_args(annotation)[0]), "model_fields"):
        return f"as [[{key}]]"
    is_model = hasattr(_inside(annotation), "model_fields") and not takes_text((key,), model)
    is_table = is_model or get_origin(annotation) is dict
    return f"as [{key}]" if is_table else "at the top, above the first [table]"


_COUNTS = ("count", "instances", "num", "number", "replicas", "size", "tasks")
"""Keys by which others give the number of a role's tasks."""


OTHER_NAMES = {
    "cpu_count": "cpus", "cpu_limit": "cpus", "env": "environment", "mem_limit": "memory",
    "backoff_limit": "retries", "max_restarts": "retries", "restart_policy": "retries",
    "retry": "retries",
    **{other: role.name for role in ROLES.values() for other in role.other_names},
}  # fmt: skip
"""Keys by the names that others have for them, and that look like other keys or like none."""
_OF_COMPOSE = ("cap_add", "devices", "dns", "dns_search", "extra_hosts", "sysctls", "tmpfs")
"""What only a user's own Compose file can set."""
_SURE = 0.85
"""A key of another table is meant only if it is so similar."""


def nearest_key(key_path: Sequence[str], model: type[Manifest], value: object = None) -> HintText:
    """The hint for an unknown key: the most similar known one and its table, or all known keys.

    For a table (`value`) in the plural, such as `[secrets]`, it is the singular, `[secret]`; so it
    is for a plural that is no key elsewhere.
    """
    if len(key_path) == 3 and key_path[0] == "role" and key_path[-1] in _COUNTS:
        tasks = Setting(key_path[1], value if isinstance(value, int) else 1)
        return ("write ", tasks, " at the top, above the first [table]")
    if key_path[-1] == "volumes":
        sidecar = f"{key_path[0]}.{key_path[1]}." if key_path[0] == "sidecar" else ""
        return f"write each as [[{sidecar}mount]], with `source` and `target`"
    if list(key_path) == ["timeout"]:
        return "write it as `job` under [deadline]"
    table = _table(key_path, model)
    known = sorted(table.model_fields) if table else []
    other = OTHER_NAMES.get(key_path[-1], "")
    if other in known:
        return f"did you mean `{other}`?"
    if key_path[-1] in _OF_COMPOSE:
        return "write it into compose/NAME/compose.override.yaml: docs/real-projects.md"
    singular = key_path[-1].removesuffix("s")
    plural = isinstance(value, Mapping) or key_path[-1] not in homes(model)
    of_this = plural and singular in known
    # What tasks can have elsewhere is of no use to a sidecar.
    elsewhere = () if key_path[0] == "sidecar" else homes(model)
    near = singular if of_this else other or _similar(key_path[-1], known, elsewhere)
    if near is None:
        return f"known keys: {', '.join(known)}"
    question = "" if near == key_path[-1] else f"did you mean `{near}`?"
    home = "" if near in known else f"write it {homes(model)[near]}"
    return f"{question} {home}".strip()


def _similar(key: str, known: Collection[str], elsewhere: Collection[str]) -> str | None:
    """The most similar key of its table, or of another table if that one is clearly meant."""
    near = nearest(key, [*known, *elsewhere])
    if near is None or near in known or near.startswith(key):
        return near
    is_sure = SequenceMatcher(None, key, near).ratio() >= _SURE
    return near if is_sure else nearest(key, known)


def meaning(key_path: Sequence[str], model: type[Manifest]) -> HintText:
    """The hint for an invalid value: an example, and what the key is for.

    A key without a description gets those of its table.
    """
    for end in range(len(key_path), 0, -1):
        info = getattr(_table(key_path[:end], model), "model_fields", {}).get(key_path[end - 1])
        if info is not None and info.description:
            key, usual = key_path[end - 1], info.examples[0] if info.examples else info.default
            if end < len(key_path) or not isinstance(usual, str | int | float) or usual == "":
                return f"{key}: {info.description}"
            whole = isinstance(usual, float) and usual.is_integer()
            example = Setting(dotted(key_path), int(usual) if whole else usual)
            return ("for example ", example, f": {info.description}")
    return "see docs/manifest.md"


def words_of(key_path: Sequence[str], model: type[Manifest]) -> tuple[str, ...]:
    """The values of a key that allows only certain words; () for any other key."""
    info = getattr(_table(key_path, model), "model_fields", {}).get(key_path[-1])
    kinds = () if info is None else (info.annotation, *get_args(info.annotation))
    literals = (get_args(kind) for kind in kinds if get_origin(kind) is Literal)
    return tuple(word for words in literals for word in words if isinstance(word, str))


def takes_text(key_path: Sequence[str], model: type[Manifest]) -> bool:
    """Whether a key's value may be a text."""
    kind: Any = model
    for part in key_path:
        kind = _inside(kind)
        info = getattr(kind, "model_fields", {}).get(part)
        if info is None and get_origin(kind) is not dict:
            return False
        kind = get_args(kind)[-1] if info is None else info.annotation
    kinds = [kind, *(get_args(kind) if get_origin(kind) in (Union, UnionType) else ())]
    return any(str in (one, getattr(one, "__origin__", None)) for one in kinds)


def keys_in(key_path: Sequence[str], model: type[Manifest]) -> list[str]:
    """The keys of a table; [] for any other key, and for a table whose keys are names."""
    table = None if takes_text(key_path, model) else _table([*key_path, ""], model)
    return sorted(table.model_fields) if table else []


def _inside(annotation: Any) -> Any:
    """The model in a key's type, which may be annotated, or one type of a union; None if none."""
    if get_origin(annotation) is Annotated:
        return _inside(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        inner = [_inside(part) for part in get_args(annotation)]
        return next((part for part in inner if hasattr(part, "model_fields")), annotation)
    return annotation


def _table(key_path: Sequence[str], manifest: type[Manifest]) -> Any:
    """The model of the table that contains the last key of `key_path`, None if there is none."""
    model: Any = manifest
    for part in key_path[:-1]:
        model = _inside(model)
        if get_origin(model) in (list, dict):  # its tables are numbered, or have names
            model = get_args(model)[-1]
        elif part in getattr(model, "model_fields", {}):
            model = model.model_fields[part].annotation
        else:
            return None
    model = _inside(model)
    return model if hasattr(model, "model_fields") else None


def keys_of(loc: Sequence[object]) -> list[str]:
    """The keys of a location in pydantic's error.

    Inside `gpus` and `data`, which are unions, pydantic adds the branches of the type, which are
    not in the file.
    """
    key_path = [str(part) for part in loc]
    if key_path[0] == "data":
        return [key_path[0], *key_path[2:]]
    return key_path[:1] if key_path[0] == "gpus" else key_path


def problem_of(key_path: Sequence[str], detail: Any, model: type[Manifest]) -> Problem:
    """The problem for one of pydantic's error details, at the keys `key_path`."""
    is_secret = key_path[-2:-1] == ["environment"] and looks_secret(key_path[-1])
    value = to_toml(MASK) if is_secret else _short(detail.get("input"))
    kind, key = detail["type"], dotted(key_path)
    if kind == "missing":
        known: dict[str, str | int] = {"format": 1, "name": "my-cluster"}
        example = ("add ", Setting(key, known[key])) if key in known else meaning(key_path, model)
        return Problem(key, "", "is required", example)
    if kind == "extra_forbidden":
        return Problem(key, value, "no such key", nearest_key(key_path, model, detail.get("input")))
    if key == "format":
        rule = "this kit reads format 1"
        return Problem(key, value, rule, ("write ", Setting(key, 1), ", or use the kit it is for"))
    hint = _proposal(key_path, detail, model) or meaning(key_path, model)
    number = type(detail.get("input")) in (int, float)
    if kind == "string_type" and number and isinstance(hint, tuple):
        hint = ("write ", Setting(key, str(detail["input"])), *hint[2:])
    elif kind == "string_type" and number and str(hint).startswith(f"{key_path[-1]}: "):
        said = str(hint).removeprefix(key_path[-1])  # the key's own description, without an example
        hint = ("write ", Setting(key, str(detail["input"])), said)
    elif kind == "list_type" and key == "args" and isinstance(detail.get("input"), str):
        hint = ("write ", Setting(key, _words(detail["input"])))
    elif kind == "list_type" and homes(model).get(key) == f"as [[{key}]]":
        hint = f"write it as [[{key}]]"
    elif kind == "list_type" and type(detail.get("input")) in (str, int):
        hint = ("write ", Setting(key, (detail["input"],)))
    elif kind == "dict_type" and key_path[-1] == "environment" and "=" in str(detail.get("input")):
        name, _, text = str(detail["input"]).partition("=")
        hint = ("write ", Setting(dotted([*key_path, name]), MASK if looks_secret(name) else text))
    elif kind in ("dict_type", "model_type") and (keys := keys_in(key_path, model)):
        hint = f"{hint}; its keys are {', '.join(f'{key}.{one}' for one in keys)}"
    elif kind == "int_type" and key in ROLES and isinstance(detail.get("input"), Mapping):
        hint = f"{key} is the number of its tasks: write their limits as [role.{key}]"
    if key_path[-1] == "secrets" and isinstance(detail.get("input"), Mapping):
        hint = "write it as [secret], at the end of the manifest: secrets by name, in files"
    return Problem(key, value, _rule(key, detail), hint)


def _words(text: str) -> tuple[str, ...]:
    """The words of a command line."""
    try:
        return tuple(shlex.split(text))
    except ValueError:  # an open quote
        return tuple(text.split())


def _proposal(key_path: Sequence[str], detail: Any, model: type[Manifest]) -> HintText:
    """The hint with the most similar word that a key allows; "" if no word is similar."""
    value = detail.get("input")
    near = nearest(value, words_of(key_path, model)) if isinstance(value, str) else None
    return ("did you mean ", Setting(dotted(key_path), near), "?") if near else ""


_TYPES = {
    "string_type": "must be a text in quotes",
    "string_unicode": "must be valid Unicode",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


def _rule(key: str, detail: Any) -> str:
    """The rule for the value, in the manifest's terms instead of pydantic's."""
    if key == "gpus":
        return 'must be "none", "auto", "require" or a list of indexes or UUIDs'
    if detail["type"] in _TYPES:
        return _TYPES[detail["type"]]
    message = str(detail["msg"])
    if detail["type"] == "value_error":
        return message.removeprefix("Value error, ")
    return "must be " + message.removeprefix("Input should be ")


def _short(value: Any) -> str:
    """The value in TOML, with secrets masked, cut to 60 characters."""
    text = to_toml(_without_secrets(value))
    return text if len(text) <= 60 else text[:57] + "…"


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: MASK if looks_secret(key) and isinstance(inner, str) else _without_secrets(inner)
            for key, inner in value.items()
        }
    return without_values(value)


@dataclass(frozen=True)
class Loaded:
    """A manifest, the problems of its shape, and the source of its values.

    If there are `problems`, the invalid keys (`broken`) have their defaults, so that a plan can
    find further problems; such a manifest is never run.
    """

    manifest: Manifest
    path: Path
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()
    command_line: CommandLine = field(default_factory=CommandLine)
    command: str = ""
    """The command that renders this manifest with these values; "" if its folder is unknown."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The tables as written, with the overrides and what was fitted to the program."""

    def refuse(self, broken_rules: Iterable[Problem] = ()) -> None:
        """Raises ManifestError if the manifest's shape is invalid or it breaks a rule.

        The error has each problem once, in the manifest's order, without values that look like
        secrets.
        """
        problems = [*self.problems, *filter(self.certain, broken_rules)]
        if problems:
            shown = map(_masked(self.values), problems)
            in_order = sorted(dict.fromkeys(shown), key=self._position)
            raise self.command_line.error(self.path, in_order)

    def _position(self, problem: Problem) -> int:
        keys = list(type(self.manifest).model_fields)
        key = _key(problem.key_path)
        return keys.index(key) if key in keys else len(keys)

    def certain(self, problem: Problem) -> bool:
        """Whether a problem is certain: it does not depend on the default of an invalid key."""
        broken_keys = {_key(key_path) for key_path in self.broken}
        return problem.key_path not in self.broken and broken_keys.isdisjoint(problem.reads)


def _masked(values: Mapping[str, Any]) -> Callable[[Problem], Problem]:
    """A function that masks a problem's value and rule: secrets of a manifest's values."""
    mask = masker(_secrets_in(values))

    def shown(problem: Problem) -> Problem:
        value = mask(without_shell_values(problem.value))
        return replace(problem, value=value, rule=mask(problem.rule))

    return shown


def _secrets_in(value: object) -> Iterator[str]:
    """Yields the values of variables and options that look like secrets, and passwords."""
    if isinstance(value, str):
        yield from url_passwords(value)
    elif isinstance(value, list):
        yield from option_values([word for word in value if isinstance(word, str)])
        for inner in value:
            yield from _secrets_in(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and looks_secret(key):
                yield inner
            yield from _secrets_in(inner)


def _key(key_path: str) -> str:
    return key_path.partition(".")[0]


def load(
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    root: Path | None = None,
    by_set: frozenset[str] = frozenset(),
    caller: Caller = Caller.SHELL,
    *,
    model: type[Manifest],
) -> Loaded:
    """The manifest in a file, with the overrides merged into its tables.

    `extra_args` among the overrides are appended to the file's `args`.

    Args:
        root: the folder in which `Loaded.command` is to be typed.
        by_set: the overrides' keys that `--set` gave; messages name `--set` instead of their
            option.
        caller: decides how messages name keys: as options, Make variables or keyword arguments.
        model: the manifest's, with the tables of all platforms (`schema.with_platforms`).
    Raises:
        ManifestError: the file cannot be read, or is not valid TOML.
    """
    values = copy.deepcopy(dict(overrides or {}))
    extra = values.pop("extra_args", [])
    file = _read(path)
    raw = _merged(file, values)
    file_args = raw.get("args", [])
    added = range(0)
    if isinstance(file_args, list) and extra:
        raw["args"] = [*file_args, *extra]
        added = range(len(file_args), len(raw["args"]))
    read = _validated(raw, path, CommandLine.of(values, added, by_set, caller, file), model)
    command = render_command(path, overrides or {}, root, raw, by_set) if root else ""
    return replace(read, command=command)


def _validated(
    raw: dict[str, Any], path: Path, command_line: CommandLine, model: type[Manifest]
) -> Loaded:
    """The manifest of these values, with a default and a problem for each invalid one.

    A value that pydantic rejects is removed, and the rest is validated again, since one error can
    hide another.
    """
    problems: list[Problem] = []
    broken: set[str] = set()
    for _ in range(20):
        try:
            manifest = model.model_validate(raw)
            read = Loaded(manifest, path, tuple(problems), frozenset(broken), command_line)
            return replace(read, values=raw)
        except ValidationError as error:
            for detail in error.errors():
                key_path = keys_of(detail["loc"])
                problem = problem_of(key_path, detail, model)
                if problem.key_path not in broken:
                    problems.append(problem)
                    broken.add(problem.key_path)
                _remove(raw, key_path, path)
    raise command_line.error(path, problems)


def _read(path: Path) -> dict[str, Any]:
    """The file's tables and values; raises ManifestError if it cannot be read."""
    try:
        # Some editors begin a file with a byte order mark.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule, hint = f"cannot be read: {error.strerror}", "name a file that you may read"
    except UnicodeDecodeError as error:
        rule, hint = f"not valid TOML: {error}", "save the file as UTF-8"
    except RecursionError:
        rule, hint = "not valid TOML: nested too deeply", "a manifest has three levels at most"
    except ValueError as error:
        hint = "fix the line it names"
        if path.suffix in (".yaml", ".yml"):  # a rendered file, or one that a person wrote
            hint = "name the manifest: compose/NAME.toml; `cluster-kit new` writes one"
        rule = f"not valid TOML: {error}"
    raise ManifestError(str(path), [Problem(path.name, "", rule, hint)])


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """A new table with the values of both; for a key in both, that of `above`."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        tables = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merged(inner, value) if tables and inner is not None else value
    return merged


def _remove(raw: dict[str, Any], key_path: Sequence[str], path: Path) -> None:
    """Remove an invalid value from `raw`, so that other checks use its default."""
    table: Any = raw
    for part in key_path[:-1]:
        inner = table.get(part)
        if not isinstance(inner, dict):
            table.pop(part, None)
            return
        table = inner
    table.pop(key_path[-1], None)
    if list(key_path) == ["format"]:
        raw["format"] = 1
    if list(key_path) == ["name"]:
        raw["name"] = path.stem


def find(reference: str, folder: Path) -> Path:
    """The manifest file with this path, or with this name in `folder`, or one of the kit's own, or
    with this name in the current directory.

    Raises:
        UsageError: it was not found; the hint lists the names that exist.
    """
    file = first(reference, folder, MANIFESTS, Path())
    if file and file.suffix != ".py":
        return file
    path, known = Path(reference), names(folder, MANIFESTS)
    if path.suffix == ".py":
        raise UsageError(
            f"no manifest `{reference}`: this is a program",
            f"give it with `--program {reference}` (make: `PROGRAM={reference}`), or name it in a "
            "manifest; `cluster-kit new` writes one",
        )
    if reference and is_file(RunDirectory(path).record):
        raise UsageError(
            f"no manifest `{reference}`: this is a run's directory",
            f"to repeat the run, copy {reference.rstrip('/')}/manifest.toml beside the manifest of "
            f"its cluster ({folder}/), where paths in it start, and name the copy",
        )
    if reference and is_directory(path):
        raise UsageError(
            f"no manifest `{reference}`: this is a directory, and a manifest is a TOML file",
            f"name a file in it, or a name in {folder}/; {proposal(path.stem, known)}",
        )
    raise UsageError(
        f"no manifest `{reference}`: no file, no name in {folder}/, and none of the kit's own",
        proposal(path.stem, known, did_you_mean_path(reference, Path()) if path.suffix else ""),
    )


def first(reference: str, *folders: Path) -> Path | None:
    """The file with this path, else the first with this name, with or without `.toml`, in the
    folders; else None."""
    named = (folder / f"{reference.removesuffix('.toml')}.toml" for folder in folders)
    return next((file.resolve() for file in (Path(reference), *named) if is_file(file)), None)
