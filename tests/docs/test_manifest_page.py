"""The manifest's page has every key with its true default, and no other key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from cluster_kit.platforms.platform import manifest_model
from docs.blocks import manifest as blocks
from tests.make import ROOT

PAGE = (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*) \| (.*) \|$", re.MULTILINE)
LEAST = {"format": 1, "name": "demo"}

Manifest = manifest_model()


def documented() -> dict[str, str]:
    """Returns key and default of each row of the page's tables."""
    return {key: default for key, default, _ in ROW.findall(PAGE)}


def keys(model: Any = Manifest, prefix: str = "") -> Iterator[str]:
    """Yields every key of the model and of its tables; keys of a task that its role also has are
    omitted."""
    for name, field in model.model_fields.items():
        below = models(field.annotation)
        if not below or name == "data" or prefix.startswith("sidecar"):
            yield f"{prefix}{name}"
        elif name == "role":
            yield from keys(*models(below[0].model_fields["ps"].annotation), "role.<role>.")
        elif name == "task":
            yield "task.<task>.ip"
        else:
            many = {list: "[].", dict: ".<name>."}.get(get_origin(field.annotation), ".")
            yield from keys(below[0], f"{name}{many}")
        if name == "data":
            yield from keys(below[0], "data.")


def models(annotation: Any) -> list[Any]:
    """Returns the models in the text of a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models(part)]


def test_the_tables_have_every_key_once_and_no_other() -> None:
    rows = [key for key, _, _ in ROW.findall(PAGE)]
    assert sorted(rows) == sorted(set(keys()))
    assert len(rows) == len(set(rows))


def test_the_page_begins_with_fifteen_everyday_keys() -> None:
    assert [key for key, _, _ in ROW.findall(PAGE)][:15] == list(blocks.EVERYDAY)


def test_every_key_has_a_meaning() -> None:
    assert all(len(meaning) > 10 for _, _, meaning in ROW.findall(PAGE))


WITH_A_DEFAULT = [
    key for key in keys() if not set("<[") & set(key) and not key.startswith(("data.", "profile."))
]


def test_stated_defaults_are_correct(subtests: pytest.Subtests) -> None:
    for key in WITH_A_DEFAULT:
        with subtests.test(key=key):
            stated = documented()[key]
            if stated == "required":
                assert key in LEAST
                continue
            if stated == "none":
                assert attrgetter(key)(Manifest.model_validate(LEAST)) in (None, {})
                continue
            given = tomllib.loads(f"{key} = {stated.strip('`')}")
            assert Manifest.model_validate({**given, **LEAST}) == Manifest.model_validate(LEAST)
