"""Checks that the tasks will find the pipeline configuration of a program that reads one."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from cluster_kit.manifest.command_line import option_text
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem
from cluster_kit.programs.catalog import BuiltIn
from cluster_kit.util.paths import is_file

OPTION = "--pipeline-config"
PARTS = tuple(f"--{part}-config-path" for part in ("model", "train", "input", "eval", "eval-input"))
"""The options of a configuration in parts."""


def check_pipeline(program: BuiltIn, manifest: Manifest, data: Path) -> Iterator[Problem]:
    """Yields the problem that a pipeline configuration is not in `data`, the user's directory.

    Paths elsewhere in the image are left to the program to check.
    """
    named = config_arguments(manifest.args)
    for option, config in named:
        if rule := _not_seen(config, data):
            cure = "give a path that is relative to the data directory"
            yield Problem("args", f"{option} {config}", rule, cure, ("program", "data"))
    if named or not (rule := _not_seen(program.pipeline, data)):
        return
    candidate = next((path.name for path in sorted(data.glob("*.config"))), "FILE")
    option = option_text("args", f"{OPTION} {candidate}")
    cure = f"write one (docs/detection.md), or name yours: {option}"
    rule = f"the {program.name} needs a pipeline configuration; {rule}"
    yield Problem("data", f'"{manifest.data}"', rule, cure, ("program", "args"))


def _not_seen(config: str, data: Path) -> str:
    """Why tasks will not find this file; "" if they will, or only the image can tell."""
    inside = posixpath.normpath(posixpath.join("/data", config))
    if inside.startswith("/data/"):
        name = inside.removeprefix("/data/")
        return "" if is_file(data / name) else f"there is no {name} in {data}"
    if not inside.startswith("/opt/") and is_file(data / config):
        return f"the containers see {data}, and nothing beside it"
    return ""


def config_arguments(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Each option that names a configuration, as it is written, with its last value.

    The whole one may be abbreviated. As in the program, `_` and `-` are the same in a name, and
    `--pipeline_config_path` is the classic name of `--pipeline-config`.
    """
    found: dict[str, tuple[str, str]] = {}
    for argument, following in pairwise([*arguments, ""]):
        written, equals, value = argument.partition("=")
        name = written.replace("_", "-")
        if name == f"{OPTION}-path" or (len(name) > len("--p") and OPTION.startswith(name)):
            name = OPTION
        if name in (OPTION, *PARTS):
            shown = OPTION if OPTION.startswith(written) else written
            found[name] = (shown, value if equals else following)
    return [(option, value) for option, value in found.values() if value]
