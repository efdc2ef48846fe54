"""The published JSON Schema matches the manifests and describes every key."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cluster_kit.platforms.platform import json_schema
from tests.make import ROOT

SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MANIFESTS = [*sorted((ROOT / "compose").glob("*.toml")), *sorted(ROOT.glob("tests/golden/*.toml"))]


def properties(schema: dict[str, Any], key_path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{key_path}{name}", inner
    for name, table in schema.get("$defs", {}).items():
        yield from properties(table, f"{name}.")


def test_it_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_kits_manifests_match_the_schema(path: Path) -> None:
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    VALIDATOR.validate(written)


@pytest.mark.parametrize(
    "wrong",
    [{"wrker": 1}, {"worker": "3"}, {"gpus": "all"}, {"format": 2}, {"role": {"boss": {}}}],
    ids=str,
)
def test_an_invalid_manifest_does_not_match_the_schema(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({"format": 1, "name": "demo", **wrong})


def test_every_property_has_a_description() -> None:
    found = dict(properties(SCHEMA))
    assert {"worker", "DeadlineTable.start", "TaskLimits.ip", "RoleTable.ps"} <= found.keys()
    assert not [key_path for key_path, inner in found.items() if not inner.get("description")]


def test_the_published_copy_is_up_to_date() -> None:
    published = json.loads((ROOT / "compose" / "schema.json").read_text(encoding="utf-8"))
    assert published == SCHEMA, "run `make schema`"
