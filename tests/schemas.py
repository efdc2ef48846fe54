"""Checks the files of a run against the JSON Schemas in docs/schemas/."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.make import ROOT

SCHEMAS = ROOT / "docs" / "schemas"


@functools.cache
def schema(what: str) -> Draft202012Validator:
    """Returns the newest schema of `outcome`, `event` or `progress`."""
    newest = max(SCHEMAS.glob(f"{what}-*.json"), key=lambda path: int(path.stem.split("-")[1]))
    return Draft202012Validator(json.loads(newest.read_text(encoding="utf-8")))


def check(what: str, value: Any) -> None:
    """Raise ValidationError if the value does not match the schema."""
    schema(what).validate(value)


def check_run(run: Path) -> int:
    """Check all files in a run's directory; returns the number of their lines."""
    check("outcome", json.loads((run / "outcome.json").read_text()))
    files = {"event": [run / "events.jsonl"], "progress": (run / "output/progress").glob("*.jsonl")}
    lines = [
        (what, line)
        for what, paths in files.items()
        for path in paths
        for line in path.read_text().splitlines()
    ]
    for what, line in lines:
        check(what, json.loads(line))
    return len(lines)
