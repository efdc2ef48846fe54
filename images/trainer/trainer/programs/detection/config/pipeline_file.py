"""From a file to a Pipeline: TOML, or the classic text form (`pipeline.config`)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from trainer.programs.detection import text_format
from trainer.programs.detection.config import errors
from trainer.programs.detection.config.classic.translate import Translated, translate
from trainer.programs.detection.config.errors import PipelineError, Problem
from trainer.programs.detection.config.paths import DIRECTORY
from trainer.programs.detection.config.pipeline import Pipeline

CLASSIC = (".config", ".pbtxt", ".prototxt")
FORMS = "a pipeline is TOML (.toml) or the classic text form (.config)"


@dataclass(frozen=True)
class Loaded:
    """A pipeline, and what of a classic one has no effect here, a line for each."""

    pipeline: Pipeline
    left_aside: tuple[str, ...] = ()


def read(path: Path, places: Mapping[str, Path], overrides: Sequence[str] = ()) -> Pipeline:
    """The pipeline in `path`; see `load`."""
    return load(path, places, overrides).pipeline


def load(
    path: Path,
    places: Mapping[str, Path],
    overrides: Sequence[str] = (),
    default_steps: int | None = None,
) -> Loaded:
    """The pipeline in `path`, every path in it absolute.

    Args:
        places: what `{{ data }}` and the like in its paths stand for.
        overrides: `train_config.num_steps=50`, laid over the file; the value is TOML, or a text.
        default_steps: `train_config.num_steps` if neither file nor overrides have it.
    Raises:
        PipelineError: everything that is wrong.
    """
    text = content(path)
    classic = path.suffix in CLASSIC
    given = translated(path, text) if classic else Translated(toml(path, text))
    return checked(str(path), given, {**places, DIRECTORY: path.absolute().parent}, overrides,
                   default_steps)  # fmt: skip


def checked(
    name: str,
    given: Translated,
    context: Mapping[str, Path],
    overrides: Sequence[str],
    default_steps: int | None,
) -> Loaded:
    """The pipeline of these tables; see `load`.

    Args:
        name: of the file or files, for messages.
        context: the places, and the configuration's own directory.
    """
    raw, problems = dict(given.tables), list(given.problems)
    for override in overrides:
        try:
            raw = laid_over(raw, assignment(override))
        except ValueError as problem:
            cure = "write section.key=value"
            problems.append(Problem(f"--set {override}", "", str(problem), cure))
    if default_steps is not None and isinstance(raw.get("train_config"), dict):
        raw = laid_over({"train_config": {"num_steps": default_steps}}, raw)
    try:
        pipeline = Pipeline.model_validate(with_tuples(raw), context=context)
    except ValidationError as error:
        keys = (override.partition("=")[0].strip() for override in overrides)
        written = {**given.written, **{key: f"--set {key}" for key in keys}}
        problems += errors.found_by(error, Pipeline, written)
    if problems:
        raise PipelineError(name, problems)
    return Loaded(pipeline, given.left_aside)


def content(path: Path) -> str:
    """The file's text; PipelineError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        rule = f"cannot be read: {problem.strerror}"
        raise PipelineError(str(path), [Problem(path.name, "", rule, FORMS)]) from problem
    except UnicodeDecodeError as problem:
        cure = "save the file as UTF-8"
        rule = f"no text: {problem}"
        raise PipelineError(str(path), [Problem(path.name, "", rule, cure)]) from problem


def toml(path: Path, text: str) -> dict[str, Any]:
    """The tables of a TOML text; PipelineError if it is not valid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        rule, cure = f"not valid TOML: {problem}", f"mend the line it names; {FORMS}"
        raise PipelineError(str(path), [Problem(path.name, "", rule, cure)]) from problem


def translated(path: Path, text: str) -> Translated:
    """A classic configuration as tables; PipelineError if it is not in text format."""
    try:
        return translate(text_format.parse(text))
    except text_format.TextFormatError as problem:
        cure = f"mend that line; {FORMS}"
        raise PipelineError(str(path), [Problem(path.name, "", str(problem), cure)]) from problem


def assignment(text: str) -> dict[str, Any]:
    """`a.b=1` as {"a": {"b": 1}}; a value that is not TOML is taken as a text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ValueError("must be section.key=value")
    try:
        return tomllib.loads(f"{key} = {value}")
    except ValueError:
        return tomllib.loads(f"{key} = {json.dumps(value)}")


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Table by table; a table of another `type` replaces the one below it."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        same = both and value.get("type", inner.get("type")) == inner.get("type")
        merged[key] = laid_over(inner, value) if same else value
    return merged


def with_tuples(value: Any) -> Any:
    """Lists as tuples: what is frozen holds no list."""
    if isinstance(value, dict):
        return {key: with_tuples(inner) for key, inner in value.items()}
    return tuple(map(with_tuples, value)) if isinstance(value, list | tuple) else value


def to_toml(pipeline: Pipeline) -> str:
    """The whole pipeline, defaults and absolute paths written out; `read` gives the same value."""
    return "\n".join(table_lines(pipeline, "")).lstrip("\n") + "\n"


def table_lines(table: BaseModel, name: str) -> list[str]:
    """The lines of one TOML table and of those inside it."""
    fields = {key: value for key, value in table if value is not None}
    plain = {key: value for key, value in fields.items() if not isinstance(value, BaseModel)}
    lines = ["", f"[{name}]"] if name and plain else []
    lines += [f"{key} = {written(value)}" for key, value in plain.items()]
    for key, value in fields.items():
        if isinstance(value, BaseModel):
            lines += table_lines(value, f"{name}.{key}" if name else key)
    return lines


def written(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, BaseModel):
        inside = ", ".join(f"{key} = {written(inner)}" for key, inner in value)
        return f"{{ {inside} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
