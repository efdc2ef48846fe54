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


def check_pipeline(program: BuiltIn, manifest: Manifest, data: Path) -> Iterator[Problem]:
    """Yields the problem that a pipeline configuration is not in `data`, the user's directory.

    Paths elsewhere in the image are left to the program to check.
    """
    config = config_argument(manifest.args)
    inside = posixpath.normpath(posixpath.join("/data", config or program.pipeline))
    if inside.startswith("/data/"):
        if is_file(data / inside.removeprefix("/data/")):
            return
        rule = f"there is no {inside.removeprefix('/data/')} in {data}"
    elif config and not inside.startswith("/opt/") and is_file(data / config):
        rule = f"the containers see {data}, and nothing beside it"
    else:
        return
    if config:
        cure = "give a path that is relative to the data directory"
        yield Problem("args", f"{OPTION} {config}", rule, cure, ("program", "data"))
        return
    candidate = next((path.name for path in sorted(data.glob("*.config"))), "FILE")
    option = option_text("args", f"{OPTION} {candidate}")
    cure = f"write one (docs/detection.md), or name yours: {option}"
    rule = f"the {program.name} needs a pipeline configuration; {rule}"
    yield Problem("data", f'"{manifest.data}"', rule, cure, ("program", "args"))


def config_argument(arguments: Sequence[str]) -> str:
    """The value of the last `--pipeline-config`, abbreviated or not; "" if it is not given."""
    config = ""
    for argument, following in pairwise([*arguments, ""]):
        name, equals, value = argument.partition("=")
        if len(name) > len("--p") and OPTION.startswith(name):
            config = value if equals else following
    return config
