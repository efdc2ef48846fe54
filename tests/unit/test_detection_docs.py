"""docs/detection.md lists every key of a pipeline, and says what the models say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from tests.make import ROOT

sys.path.insert(0, str(ROOT / "images" / "trainer"))
from pydantic.fields import FieldInfo

from trainer.programs.detection.config.errors import models_in
from trainer.programs.detection.config.pipeline import Pipeline

PAGE = ROOT / "docs" / "detection.md"
BEGIN, END = "<!-- keys -->\n", "<!-- /keys -->\n"
HEAD = ("| key | default | |", "|---|---|---|")


def test_the_page_lists_every_key_with_its_default_and_meaning() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    found, _, after = rest.partition(END)
    expected = "\n".join((*HEAD, *rows(Pipeline, ""))) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(before + BEGIN + expected + END + after)
        return
    assert found == expected, (
        "run UPDATE_GOLDEN=1 .venv/bin/pytest tests/unit/test_detection_docs.py"
    )


def rows(model: Any, above: str) -> Iterator[str]:
    for key, field in model.model_fields.items():
        place = f"{above}{key}"
        inner = models_in(field.annotation)
        if len(inner) > 1:
            yield from choices(inner, field, place)
            continue
        if not inner or field.default is None:
            yield f"| `{place}` | {default(field)} | {field.description} |"
        for table in inner:
            yield from rows(table, f"{place}.")


def choices(models: list[Any], field: FieldInfo, place: str) -> Iterator[str]:
    """A table whose `type` decides; keys that not all types have, or not alike, say whose."""
    names = [f"`{json.dumps(type_of(model))}`" for model in models]
    shown = "required" if field.is_required() else f"`{json.dumps(field.default.type)}`"
    yield f"| `{place}.type` | {shown} | {field.description}: {', '.join(names)} |"
    same: dict[tuple[str, str, str | None], list[str]] = {}
    for model in models:
        for key, one in model.model_fields.items():
            if key != "type":
                same.setdefault((key, default(one), one.description), []).append(type_of(model))
    for (key, shown, meaning), types in same.items():
        whose = "" if len(types) == len(models) else f" ({', '.join(types)})"
        yield f"| `{place}.{key}` | {shown} | {meaning}{whose} |"


def type_of(model: Any) -> str:
    return str(model.model_fields["type"].default)


def default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "none"
    return f"`{json.dumps(field.default)}`"
