"""Every option is in the README's table, with its true default, and nothing else is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from cluster_kit.manifest.schema import Manifest, TaskLimits
from tests.make import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*) \|", re.MULTILINE)


def documented() -> dict[str, str]:
    """Key and default of each row of the table under the heading `Manifest`."""
    section = re.search(r"^##+ (?:Manifest|Options)\n(.*?)(?=^## |\Z)", README, re.S | re.M)
    assert section, "README.md has no heading `## Manifest`"
    return {key: default.strip() for key, default in ROW.findall(section[1])}


def keys(model: Any = Manifest, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        if name == "task":
            yield from keys(TaskLimits, "task.<task>.")
        elif name == "role":
            yield from keys(field.annotation.model_fields["worker"].annotation, "role.<role>.")
        elif hasattr(field.annotation, "model_fields"):
            yield from keys(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_every_key_of_the_manifest_has_a_row() -> None:
    missing = sorted(set(keys()) - documented().keys())
    assert not missing, f"add rows to README.md's table under `## Manifest`: {missing}"


def test_every_row_is_a_key_of_the_manifest() -> None:
    stray = sorted(documented().keys() - set(keys()))
    assert not stray, f"no such keys: {stray}"


@pytest.mark.parametrize("key", [key for key in keys() if "<" not in key])
def test_a_stated_default_is_the_true_one(key: str) -> None:
    stated = documented()[key]
    if not stated.startswith("`"):
        assert stated in ("required", "divided evenly", "even parts")
        return
    least = {"format": 1, "name": "demo"}
    given = tomllib.loads(f"{key} = {stated.strip('`')}")
    assert Manifest.model_validate({**given, **least}) == Manifest.model_validate(least)
