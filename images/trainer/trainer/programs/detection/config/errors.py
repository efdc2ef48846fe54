"""The problems of a pipeline configuration, reported together: key, value, rule and hint of
each."""

from __future__ import annotations

import difflib
import json
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from trainer.agent.errors import ContractError
from trainer.programs.detection.config.pipeline import Part


def nearest(name: str, known: Iterable[str], among: str = "known keys") -> str:
    """Returns ``did you mean `batch_size`?``, or the list of known names after the words
    `among`."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"{among}: {', '.join(names) or 'nothing'}"


TYPES = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "finite_number": "must be a finite number",
}
CHOSEN_BY_TYPE = ("optimizer", "learning_rate")
"""Tables whose other keys depend on their key `type`."""
LONGEST = 60


@dataclass(frozen=True)
class Problem:
    """`key_path = value: rule`, and what to do."""

    key_path: str
    value: str
    rule: str
    hint: str

    def __str__(self) -> str:
        value = f" = {self.value}" if self.value else ""
        return f"  {self.key_path}{value}: {self.rule}\n    → {self.hint}"


class PipelineError(ContractError):
    """The configuration is invalid; `problems` has all problems that could be found."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join((f"{file}: {count}", *map(str, problems))))
        self.problems = tuple(problems)


def found_by(
    error: ValidationError, model: type[BaseModel], written: Mapping[str, str]
) -> list[Problem]:
    """Returns the problems in pydantic's error about `model`.

    Args:
        written: the spelling of keys in the file or on the command line, if it differs.
    """
    return [problem(detail, model, written) for detail in error.errors(include_url=False)]


def problem(detail: Any, model: type[BaseModel], written: Mapping[str, str]) -> Problem:
    """Return a pydantic error detail as a Problem, with the key names of the file."""
    key_path, table = walked(detail["loc"], model)
    dotted = ".".join(key_path)
    shown = written.get(dotted) or written.get(dotted.partition("[")[0]) or dotted
    kind, value = detail["type"], short(detail.get("input"))
    fields = table.model_fields if table else {}
    if kind == "missing":
        return Problem(shown, "", "is required", meaning(fields, key_path[-1]))
    if kind == "extra_forbidden":
        return Problem(shown, value, "no such key", nearest(key_path[-1], fields))
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        tags = detail["ctx"].get("expected_tags") or tags_of(fields, key_path[-1])
        tag = "" if kind == "union_tag_not_found" else f'"{detail["ctx"]["tag"]}"'
        return Problem(f"{shown}.type", tag, f"must be one of {tags}", "choose one of them")
    if kind == "value_error":
        rule = str(detail["msg"]).removeprefix("Value error, ")
    elif kind == "literal_error":
        rule = f"must be {detail['ctx']['expected']}"
    else:
        rule = TYPES.get(kind) or "must be " + str(detail["msg"]).removeprefix("Input should be ")
    return Problem(shown, value, rule, meaning(fields, key_path[-1] if key_path else ""))


def walked(loc: Sequence[int | str], model: type[BaseModel]) -> tuple[list[str], Any]:
    """Returns (keys of the file, the model that contains the last key).

    Pydantic's locations also contain the names of types where a key `type` selects the model; they
    are omitted.
    """
    key_path: list[str] = []
    table: Any = model
    at: Any = model
    tag_next = False
    for part in loc:
        if tag_next:
            at = next(m for m in models_in(at) if m.model_fields["type"].default == part)
            tag_next = False
            continue
        if isinstance(part, int):
            key_path[-1] += f"[{part}]"
            continue
        table = single(at)
        key_path.append(part)
        field = table.model_fields.get(part) if table else None
        at = field.annotation if field else None
        tag_next = part in CHOSEN_BY_TYPE and len(models_in(at)) > 1
    return key_path, table


def models_in(annotation: Any) -> list[type[Part]]:
    """Yields all models in an annotation, also those in unions, optional types and tuples."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, Part) else []
    return [model for inner in typing.get_args(annotation) for model in models_in(inner)]


def single(annotation: Any) -> Any:
    """Returns the only model in an annotation; None if there are several or none."""
    models = models_in(annotation)
    return models[0] if len(models) == 1 else None


def tags_of(fields: Mapping[str, Any], key: str) -> str:
    """Returns the valid values of `type` for the field `key`, quoted."""
    models = models_in(fields[key.partition("[")[0]].annotation)
    return ", ".join(f"'{model.model_fields['type'].default}'" for model in models)


def meaning(fields: Mapping[str, Any], key: str) -> str:
    """Return the meaning of the field `key`, or where it is documented."""
    key = key.partition("[")[0]
    field = fields.get(key)
    description = field.description if field else None
    return (
        f"{key}: {description}" if description else f"see `{key}` in the pipeline's documentation"
    )


def short(value: object) -> str:
    """Returns the value roughly as in TOML; "" for a whole table."""
    if isinstance(value, dict | BaseModel):
        return ""
    if isinstance(value, tuple):
        value = list(value)
    try:
        shown = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        shown = str(value)
    shown = re.sub(r"\s+", " ", shown)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
