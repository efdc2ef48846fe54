"""From pydantic's errors about a manifest's shape to problems with a cure. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster_kit.manifest.key_advice import meaning, nearest_key, words_of
from cluster_kit.problem import Cure, Problem, Setting
from cluster_kit.util.nearest import nearest
from cluster_kit.util.toml_text import dotted, to_toml


def keys_of(loc: Sequence[object]) -> list[str]:
    """The keys of a location in pydantic's error.

    Inside `gpus` and `data`, which are unions, pydantic adds the branches of the type, which are
    not in the file.
    """
    place = [str(part) for part in loc]
    if place[0] == "data":
        return [place[0], *place[2:]]
    return place[:1] if place[0] == "gpus" else place


def problem_of(place: Sequence[str], detail: Any) -> Problem:
    """The problem for one of pydantic's error details, at the keys `place`."""
    kind, value, key = detail["type"], _short(detail.get("input")), dotted(place)
    if kind == "missing":
        example = Setting(key, 1 if key == "format" else "my-cluster")
        return Problem(key, "", "is required", ("add ", example))
    if kind == "extra_forbidden":
        return Problem(key, value, "no such key", nearest_key(place))
    if key == "format":
        rule = "this kit reads format 1"
        return Problem(key, value, rule, ("write ", Setting(key, 1), ", or use the kit it is for"))
    return Problem(key, value, _rule(key, detail), _proposal(place, detail) or meaning(place))


def _proposal(place: Sequence[str], detail: Any) -> Cure:
    """Proposes the most similar of the words that a key allows; "" if there is none."""
    value = detail.get("input")
    near = nearest(value, words_of(place)) if isinstance(value, str) else None
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
