"""Reads a Pipeline from a file: TOML, or the classic text form (`pipeline.config`).

A classic configuration may also be divided into one file each for the model, the training and the
input. Each contains the text between the braces of `model { … }`, `train_config { … }` or
`train_input_reader { … }`.
"""

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
from trainer.programs.detection.config.classic_config import Translated, translate
from trainer.programs.detection.config.errors import PipelineError, Problem
from trainer.programs.detection.config.pipeline import DIRECTORY, Pipeline

CLASSIC = (".config", ".pbtxt", ".prototxt")
FORMS = "a pipeline is TOML (.toml) or the classic text form (.config)"


@dataclass(frozen=True)
class Loaded:
    """A pipeline, and a line for each field of a classic pipeline that has no effect here."""

    pipeline: Pipeline
    left_aside: tuple[str, ...] = ()


def read(path: Path, placeholders: Mapping[str, Path], overrides: Sequence[str] = ()) -> Pipeline:
    """Returns the pipeline in the file `path`; see `load`."""
    return load(path, placeholders, overrides).pipeline


def load(
    path: Path,
    placeholders: Mapping[str, Path],
    overrides: Sequence[str] = (),
    default_steps: int | None = None,
) -> Loaded:
    """Returns the pipeline in the file `path`; all its paths are absolute.

    Args:
        placeholders: the directories for placeholders such as `{{ data }}` in its paths.
        overrides: assignments such as `train_config.num_steps=50`, which replace the file's values;
            a value that is not TOML is a text.
        default_steps: `train_config.num_steps` if neither the file nor the overrides set it.
    Raises:
        PipelineError: all problems of the configuration.
    """
    text = content(path)
    classic = path.suffix in CLASSIC
    translation = translated(path, text) if classic else Translated(toml(path, text))
    directory = path.absolute().parent
    known = {**placeholders, DIRECTORY: directory}
    return checked(str(path), translation, known, overrides, default_steps)


def checked(
    name: str,
    given: Translated,
    context: Mapping[str, Path],
    overrides: Sequence[str],
    default_steps: int | None,
) -> Loaded:
    """Returns the pipeline that these tables describe; see `load`.

    Args:
        name: the name of the file or files, for messages.
        context: `placeholders`, and the configuration's own directory.
    """
    raw, problems = dict(given.tables), list(given.problems)
    for override in overrides:
        try:
            raw = laid_over(raw, assignment(override))
        except ValueError as problem:
            hint = "write section.key=value"
            problems.append(Problem(f"--set {override}", "", str(problem), hint))
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
    """Returns the file's text; PipelineError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        rule = f"cannot be read: {problem.strerror}"
        raise PipelineError(str(path), [Problem(path.name, "", rule, FORMS)]) from problem
    except UnicodeDecodeError as problem:
        hint = "save the file as UTF-8"
        rule = f"no text: {problem}"
        raise PipelineError(str(path), [Problem(path.name, "", rule, hint)]) from problem


def toml(path: Path, text: str) -> dict[str, Any]:
    """Returns the tables of a TOML text; PipelineError if the text is invalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        rule, hint = f"not valid TOML: {problem}", f"fix the line it names; {FORMS}"
        raise PipelineError(str(path), [Problem(path.name, "", rule, hint)]) from problem


def translated(path: Path, text: str) -> Translated:
    """Returns a classic configuration as tables; PipelineError if it is not in text format."""
    try:
        return translate(text_format.parse(text))
    except text_format.TextFormatError as problem:
        hint = f"fix that line; {FORMS}"
        raise PipelineError(str(path), [Problem(path.name, "", str(problem), hint)]) from problem


def assignment(text: str) -> dict[str, Any]:
    """Returns `a.b=1` as {"a": {"b": 1}}; a value that is not TOML is taken as a text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ValueError("must be section.key=value")
    try:
        return tomllib.loads(f"{key} = {value}")
    except ValueError:
        return tomllib.loads(f"{key} = {json.dumps(value)}")


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` merged with `above`; a table of another `type` replaces that of `below`."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        same = both and value.get("type", inner.get("type")) == inner.get("type")
        merged[key] = laid_over(inner, value) if same else value
    return merged


def with_tuples(value: Any) -> Any:
    """Return the value with lists as tuples, since frozen sections contain no lists."""
    if isinstance(value, dict):
        return {key: with_tuples(inner) for key, inner in value.items()}
    return tuple(map(with_tuples, value)) if isinstance(value, list | tuple) else value


def to_toml(pipeline: Pipeline) -> str:
    """Returns the whole pipeline, defaults and absolute paths included, as TOML that `read` can
    read."""
    return "\n".join(table_lines(pipeline, "")).lstrip("\n") + "\n"


def table_lines(table: BaseModel, name: str) -> list[str]:
    """Yields the lines of a TOML table and of its subtables."""
    fields = {key: value for key, value in table if value is not None}
    plain = {key: value for key, value in fields.items() if not isinstance(value, BaseModel)}
    lines = ["", f"[{name}]"] if name and plain else []
    lines += [f"{key} = {written(value)}" for key, value in plain.items()]
    for key, value in fields.items():
        if isinstance(value, BaseModel):
            lines += table_lines(value, f"{name}.{key}" if name else key)
    return lines


def written(value: Any) -> str:
    """Returns a value as TOML."""
    if isinstance(value, BaseModel):
        inside = ", ".join(f"{key} = {written(inner)}" for key, inner in value)
        return f"{{ {inside} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


SECTIONS = {
    "model-config-path": "model",
    "train-config-path": "train_config",
    "input-config-path": "train_input_reader",
    "eval-config-path": "eval_config",
    "eval-input-config-path": "eval_input_reader",
}
"""The section of the pipeline that each option's file contains."""
REQUIRED = tuple(SECTIONS)[:3]
OF_PATHS = ("fine_tune_checkpoint", "input_path", "label_map_path")


def load_parts(
    files: Mapping[str, Path],
    placeholders: Mapping[str, Path],
    overrides: Sequence[str] = (),
    default_steps: int | None = None,
) -> Loaded:
    """Returns the pipeline in these files, by option; without eval-input-config-path nothing is
    scored.

    The arguments are those of `load`. Relative paths in a file start at that file's directory.

    Raises:
        PipelineError: all problems of the configuration.
    """
    name = ", ".join(map(str, files.values()))
    absent = [option for option in REQUIRED if option not in files]
    if absent:
        hint = "give all three, or one file by --pipeline_config_path"
        raise PipelineError(name, [
            Problem(f"--{spelt(option)}", "", "is required together with the other parts", hint)
            for option in absent
        ])  # fmt: skip
    parts = [section(path, SECTIONS[option]) for option, path in files.items()]
    translation = Translated(
        {"eval_input_reader": None} | merged(part.tables for part in parts),
        merged(part.written for part in parts),
        tuple(line for part in parts for line in part.left_aside),
        tuple(problem for part in parts for problem in part.problems),
    )
    context = {**placeholders, DIRECTORY: next(iter(files.values())).absolute().parent}
    return checked(name, translation, context, overrides, default_steps)


def section(path: Path, name: str) -> Translated:
    """Returns the file as one section of a pipeline; PipelineError if it is not in text format."""
    try:
        inside = text_format.parse(content(path))
    except text_format.TextFormatError as problem:
        hint = f"fix that line; it must contain what {name} {{ … }} has between its braces"
        raise PipelineError(str(path), [Problem(path.name, "", str(problem), hint)]) from problem
    part = translate(text_format.Message((text_format.Field(name, inside, 1),)))
    table = part.tables.get(name)
    if isinstance(table, dict):
        for key in OF_PATHS:
            if key in table:
                table[key] = seen_from(path.absolute().parent, table[key])
    return part


def seen_from(folder: Path, value: Any) -> Any:
    """Return a relative path (or several) joined to `folder`; placeholders stay."""
    if isinstance(value, tuple):
        return tuple(seen_from(folder, one) for one in value)
    relative = isinstance(value, str) and value and not value.lstrip().startswith("{{")
    return str(folder / value) if relative else value


def merged(tables: Any) -> dict[str, Any]:
    """Returns these tables merged into one."""
    return {key: value for table in tables for key, value in table.items()}


def spelt(option: str) -> str:
    """Returns the option as the classic programs spell it."""
    return option.replace("-", "_")
