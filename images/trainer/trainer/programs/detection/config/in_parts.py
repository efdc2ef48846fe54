"""A classic configuration in parts: a file each for the model, the training and the input.

They hold what stands between the braces of `model { … }`, `train_config { … }` and
`train_input_reader { … }` in a `pipeline.config`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.programs.detection import text_format
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.classic.translate import Translated, translate
from trainer.programs.detection.config.errors import PipelineError, Problem
from trainer.programs.detection.config.paths import DIRECTORY
from trainer.programs.detection.config.pipeline_file import Loaded

SECTIONS = {
    "model-config-path": "model",
    "train-config-path": "train_config",
    "input-config-path": "train_input_reader",
    "eval-config-path": "eval_config",
    "eval-input-config-path": "eval_input_reader",
}
"""Option to the section that its file is."""
REQUIRED = tuple(SECTIONS)[:3]
OF_PATHS = ("fine_tune_checkpoint", "input_path", "label_map_path")


def load(
    files: Mapping[str, Path],
    places: Mapping[str, Path],
    overrides: Sequence[str] = (),
    default_steps: int | None = None,
) -> Loaded:
    """The pipeline of these files, by option; without eval-input-config-path nothing is scored.

    Args: as of pipeline_file.load. Paths in a file are seen from that file.
    Raises:
        PipelineError: everything that is wrong.
    """
    name = ", ".join(map(str, files.values()))
    absent = [option for option in REQUIRED if option not in files]
    if absent:
        cure = "give all three, or one file by --pipeline_config_path"
        raise PipelineError(name, [
            Problem(f"--{spelt(option)}", "", "is required beside the other parts", cure)
            for option in absent
        ])  # fmt: skip
    parts = [section(path, SECTIONS[option]) for option, path in files.items()]
    given = Translated(
        {"eval_input_reader": None} | merged(part.tables for part in parts),
        merged(part.written for part in parts),
        tuple(line for part in parts for line in part.left_aside),
        tuple(problem for part in parts for problem in part.problems),
    )
    context = {**places, DIRECTORY: next(iter(files.values())).absolute().parent}
    return pipeline_file.checked(name, given, context, overrides, default_steps)


def section(path: Path, name: str) -> Translated:
    """The file as one section of a pipeline; PipelineError if it is not in text format."""
    try:
        inside = text_format.parse(pipeline_file.content(path))
    except text_format.TextFormatError as problem:
        cure = f"mend that line; it is to hold what {name} {{ … }} has between its braces"
        raise PipelineError(str(path), [Problem(path.name, "", str(problem), cure)]) from problem
    part = translate(text_format.Message((text_format.Field(name, inside, 1),)))
    table = part.tables.get(name)
    if isinstance(table, dict):
        for key in OF_PATHS:
            if key in table:
                table[key] = seen_from(path.absolute().parent, table[key])
    return part


def seen_from(folder: Path, value: Any) -> Any:
    """A relative path, or each of several, as one from `folder`; placeholders stay."""
    if isinstance(value, tuple):
        return tuple(seen_from(folder, one) for one in value)
    relative = isinstance(value, str) and value and not value.lstrip().startswith("{{")
    return str(folder / value) if relative else value


def merged(tables: Any) -> dict[str, Any]:
    """All of these in one."""
    return {key: value for table in tables for key, value in table.items()}


def spelt(option: str) -> str:
    """As the classic programs spell it."""
    return option.replace("-", "_")
