"""From pydantic's errors about a manifest's shape to problems with a hint. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cluster_kit.manifest.schema import (
    DataTable,
    DeadlineTable,
    Limits,
    Manifest,
    MountTable,
    NetworkTable,
    ProfileTable,
    SecretTable,
    SidecarTable,
    TaskLimits,
)
from cluster_kit.problem import HintText, Problem, Setting
from cluster_kit.util.nearest import nearest
from cluster_kit.util.toml_text import dotted, to_toml

_ONE_TASK = dict.fromkeys(TaskLimits.model_fields, "under [task.worker-0]")
_EVERY_TASK = dict.fromkeys(Limits.model_fields, "under [role.worker] or [task.worker-0]")
_DEADLINE = dict.fromkeys(DeadlineTable.model_fields, "under [deadline]")
_MOUNT = dict.fromkeys(MountTable.model_fields, "under [[mount]]")
_NETWORK = dict.fromkeys(NetworkTable.model_fields, "under [network]")
_SECRET = dict.fromkeys(SecretTable.model_fields, "under [secret.NAME]")
_SIDECAR = dict.fromkeys(SidecarTable.model_fields, "under [sidecar.NAME]")
_DATA = dict.fromkeys(DataTable.model_fields, "under [data]")
_PROFILE = dict.fromkeys(ProfileTable.model_fields, "under [profile]")


@cache
def homes(model: type[Manifest]) -> Mapping[str, str]:
    """Where each key is written, in a message's words."""
    platforms = model.model_fields.keys() - Manifest.model_fields.keys()
    of_platforms = {
        key: f"under [{name}]"
        for name in sorted(platforms, reverse=True)
        for key in _inside(model.model_fields[name].annotation).model_fields
    }
    top = dict.fromkeys(model.model_fields, "at the top, above the first [table]")
    own = _PROFILE | _SIDECAR | _DATA | _SECRET | _ONE_TASK | _EVERY_TASK | _DEADLINE | _MOUNT
    return of_platforms | own | _NETWORK | top


def nearest_key(key_path: Sequence[str], model: type[Manifest], value: object = None) -> str:
    """The hint for an unknown key: the most similar known one and its table, or all known keys.

    For a table (`value`) in the plural, `[secrets]`, that is the one that is there, `[secret]`.
    """
    table = _table(key_path, model)
    known = sorted(table.model_fields) if table else []
    one = key_path[-1].removesuffix("s")
    of_this = isinstance(value, Mapping) and one in known
    near = one if of_this else nearest(key_path[-1], [*known, *homes(model)])
    if near is None:
        return f"known keys: {', '.join(known)}"
    question = "" if near == key_path[-1] else f"did you mean `{near}`?"
    home = "" if near in known else f"write it {homes(model)[near]}"
    return f"{question} {home}".strip()


def meaning(key_path: Sequence[str], model: type[Manifest]) -> HintText:
    """The hint for an invalid value: an example, and what the key is for.

    A key without a description has those of the table that it is in.
    """
    for end in range(len(key_path), 0, -1):
        info = getattr(_table(key_path[:end], model), "model_fields", {}).get(key_path[end - 1])
        if info is not None and info.description:
            key, usual = key_path[end - 1], info.default
            if end < len(key_path) or not isinstance(usual, str | int | float):
                return f"{key}: {info.description}"
            whole = isinstance(usual, float) and usual.is_integer()
            example = Setting(dotted(key_path), int(usual) if whole else usual)
            return ("for example ", example, f": {info.description}")
    return "see docs/manifest.md"


def words_of(key_path: Sequence[str], model: type[Manifest]) -> tuple[str, ...]:
    """The words that a key allows, if it allows only certain ones; () for any other key."""
    info = getattr(_table(key_path, model), "model_fields", {}).get(key_path[-1])
    kinds = () if info is None else (info.annotation, *get_args(info.annotation))
    literals = (get_args(kind) for kind in kinds if get_origin(kind) is Literal)
    return tuple(word for words in literals for word in words if isinstance(word, str))


def _inside(annotation: Any) -> Any:
    """The model that a key's type has: alone, with notes, or as one of several."""
    if get_origin(annotation) is Annotated:
        return _inside(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        inner = [_inside(part) for part in get_args(annotation)]
        return next((part for part in inner if hasattr(part, "model_fields")), annotation)
    return annotation


def _table(key_path: Sequence[str], manifest: type[Manifest]) -> Any:
    """The model of the table that the last key of `key_path` is in, None if there is none."""
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
    kind, value, key = detail["type"], _short(detail.get("input")), dotted(key_path)
    if kind == "missing":
        example = Setting(key, 1 if key == "format" else "my-cluster")
        return Problem(key, "", "is required", ("add ", example))
    if kind == "extra_forbidden":
        return Problem(key, value, "no such key", nearest_key(key_path, model, detail.get("input")))
    if key == "format":
        rule = "this kit reads format 1"
        return Problem(key, value, rule, ("write ", Setting(key, 1), ", or use the kit it is for"))
    hint = _proposal(key_path, detail, model) or meaning(key_path, model)
    if key_path[-1] == "secrets" and isinstance(detail.get("input"), Mapping):
        hint = "write it as [secret], at the end of the manifest: secrets by name, in files"
    return Problem(key, value, _rule(key, detail), hint)


def _proposal(key_path: Sequence[str], detail: Any, model: type[Manifest]) -> HintText:
    """Proposes the most similar of the words that a key allows; "" if there is none."""
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
    """What the value must be, in the manifest's terms instead of pydantic's."""
    if key == "gpus":
        return 'must be "none", "auto", "require" or a list of indexes or UUIDs'
    if detail["type"] in _TYPES:
        return _TYPES[detail["type"]]
    message = str(detail["msg"])
    if detail["type"] == "value_error":
        return message.removeprefix("Value error, ")
    return "must be " + message.removeprefix("Input should be ")


def _short(value: Any) -> str:
    """The value in TOML, cut to 60 characters."""
    text = to_toml(value)
    return text if len(text) <= 60 else text[:57] + "…"
