"""The pipeline configuration of a program that reads one, and whether the tasks will find it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from cluster_kit.manifest.schema import Manifest
from cluster_kit.manifest.typed import to_type
from cluster_kit.problem import Problem
from cluster_kit.programs.catalog import BuiltIn
from cluster_kit.util.paths import is_file

OPTION = "--pipeline-config"


def check_pipeline(program: BuiltIn, manifest: Manifest, data: Path) -> Iterator[Problem]:
    """Yields a pipeline configuration that is not in `data`, the user's own directory.

    What is elsewhere in the image is left to the program.
    """
    given = given_config(manifest.args)
    inside = posixpath.normpath(posixpath.join("/data", given or program.pipeline))
    if inside.startswith("/data/"):
        if is_file(data / inside.removeprefix("/data/")):
            return
        rule = f"there is no {inside.removeprefix('/data/')} in {data}"
    elif given and not inside.startswith("/opt/") and is_file(data / given):
        rule = f"the containers see {data}, and nothing beside it"
    else:
        return
    if given:
        cure = "give a path that is seen from the data directory"
        yield Problem("args", f"{OPTION} {given}", rule, cure, ("program", "data"))
        return
    named = next((path.name for path in sorted(data.glob("*.config"))), "FILE")
    cure = f"write one (docs/detection.md), or name yours: {to_type('args', f'{OPTION} {named}')}"
    rule = f"the {program.name} needs a pipeline configuration; {rule}"
    yield Problem("data", f'"{manifest.data}"', rule, cure, ("program", "args"))


def given_config(arguments: Sequence[str]) -> str:
    """The last `--pipeline-config` (abbreviated or not) among arguments, "" if there is none."""
    given = ""
    for argument, following in pairwise([*arguments, ""]):
        name, sign, value = argument.partition("=")
        if len(name) > len("--p") and OPTION.startswith(name):
            given = value if sign else following
    return given
