"""Every key of a manifest is on its page, with its true default, and nothing else is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, get_args, get_origin

import pytest

from cluster_kit.manifest.schema import DataTable, Manifest, SecretTable, SidecarTable, TaskLimits
from tests.make import ROOT

PAGE = (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*) \| (.*) \|$", re.MULTILINE)
LEAST = {"format": 1, "name": "demo"}


def documented() -> dict[str, str]:
    """Key and default of each row of the table under the heading `Keys`."""
    _, _, section = PAGE.partition("\n## Keys\n")
    return {key: default for key, default, _ in ROW.findall(section.partition("\n## ")[0])}


def keys(model: Any = Manifest, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        if name == "task":
            yield from keys(TaskLimits, "task.<task>.")
        elif name == "data":
            yield name
            yield from keys(DataTable, "data.")
        elif name == "secret":
            yield from keys(SecretTable, "secret.<name>.")
        elif name == "sidecar":
            yield from (f"sidecar.<name>.{key}" for key in SidecarTable.model_fields)
        elif name == "role":
            yield from keys(field.annotation.model_fields["worker"].annotation, "role.<role>.")
        elif get_origin(field.annotation) is list and hasattr(
            get_args(field.annotation)[0], "model_fields"
        ):
            yield from keys(get_args(field.annotation)[0], f"{name}[].")
        elif hasattr(field.annotation, "model_fields"):
            yield from keys(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_the_table_has_every_key_and_no_other() -> None:
    assert list(documented()) == list(keys())


def test_every_key_has_a_meaning() -> None:
    assert all(len(meaning) > 10 for _, _, meaning in ROW.findall(PAGE))


@pytest.mark.parametrize(
    "key", [key for key in keys() if not set("<[") & set(key) and "data." not in key]
)
def test_a_stated_default_is_the_true_one(key: str) -> None:
    stated = documented()[key]
    if stated == "required":
        assert key in LEAST
        return
    if stated == "none":
        assert attrgetter(key)(Manifest.model_validate(LEAST)) in (None, {})
        return
    given = tomllib.loads(f"{key} = {stated.strip('`')}")
    assert Manifest.model_validate({**given, **LEAST}) == Manifest.model_validate(LEAST)
