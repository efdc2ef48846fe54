"""What pydantic finds wrong with a manifest's shape, as problems with a cure. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster_kit.manifest.keys import meaning, nearest_key, words_of
from cluster_kit.problem import Cure, Problem, Setting
from cluster_kit.util.nearest import nearest
from cluster_kit.util.toml_text import dotted, written


def keys_of(loc: Sequence[object]) -> list[str]:
    """The keys of a location that pydantic gives.

    Inside `gpus`, a union, it names the branches of the type as well, which are not in the file.
    """
    place = [str(part) for part in loc]
    return place[:1] if place[0] == "gpus" else place


def problem_of(place: Sequence[str], detail: Any) -> Problem:
    """The problem of one of pydantic's error details, with the cure for it."""
    kind, value, key = detail["type"], _short(detail.get("input")), dotted(place)
    if kind == "missing":
        example = Setting(key, 1 if key == "format" else "my-cluster")
        return Problem(key, "", "is required", ("add ", example))
    if kind == "extra_forbidden":
        return Problem(key, value, "no such key", nearest_key(place))
    if key == "format":
        rule = "this kit reads format 1"
        return Problem(key, value, rule, ("write ", Setting(key, 1), ", or use the kit it is for"))
    return Problem(key, value, _rule(key, detail), _meant(place, detail) or meaning(place))


def _meant(place: Sequence[str], detail: Any) -> Cure:
    """A proposal of the nearest of a key's few words, "" if none is near or it takes any."""
    given = detail.get("input")
    near = nearest(given, words_of(place)) if isinstance(given, str) else None
    return ("did you mean ", Setting(dotted(place), near), "?") if near else ""


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
    """What the value must be, in words of the manifest instead of pydantic's."""
    if key == "gpus":
        return 'must be "none", "auto" or a list of indexes or UUIDs'
    if detail["type"] in _TYPES:
        return _TYPES[detail["type"]]
    message = str(detail["msg"])
    if detail["type"] == "value_error":
        return message.removeprefix("Value error, ")
    return "must be " + message.removeprefix("Input should be ")


def _short(value: Any) -> str:
    """The value in TOML, cut to 60 characters."""
    shown = written(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"
