"""The table of a detection pipeline's keys, from the models' own descriptions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from cluster_kit.util.paths import FILES
from docs.blocks.table import table

sys.path.append(str(FILES / "images" / "trainer"))
from trainer.programs.detection.config.errors import models_in
from trainer.programs.detection.config.pipeline import Pipeline

Row = tuple[str, str, str]


def keys() -> str:
    """Every key: its default and its meaning."""
    return table(("key", "default", "meaning"), rows(Pipeline, ""))


def rows(model: Any, above: str) -> Iterator[Row]:
    for key, field in model.model_fields.items():
        place = f"{above}{key}"
        inner = models_in(field.annotation)
        if len(inner) > 1:
            yield from choices(inner, field, place)
            continue
        if not inner or field.default is None:
            yield f"`{place}`", default(field), field.description or ""
        for model_of_table in inner:
            yield from rows(model_of_table, f"{place}.")


def choices(models: list[Any], field: FieldInfo, place: str) -> Iterator[Row]:
    """A table whose `type` decides; keys that not all types have, or not alike, say whose."""
    names = [f"`{json.dumps(type_of(model))}`" for model in models]
    shown = "required" if field.is_required() else f"`{json.dumps(field.default.type)}`"
    yield f"`{place}.type`", shown, f"{field.description}: {', '.join(names)}"
    same: dict[tuple[str, str, str | None], list[str]] = {}
    for model in models:
        for key, one in model.model_fields.items():
            if key != "type":
                same.setdefault((key, default(one), one.description), []).append(type_of(model))
    for (key, shown, meaning), types in same.items():
        whose = "" if len(types) == len(models) else f" ({', '.join(types)})"
        yield f"`{place}.{key}`", shown, f"{meaning}{whose}"


def type_of(model: Any) -> str:
    return str(model.model_fields["type"].default)


def default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "none"
    return f"`{json.dumps(field.default)}`"
