"""Writes the files of a new cluster: a commented manifest and a program that trains at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from cluster_kit.errors import UsageError
from cluster_kit.manifest.names import NAME, near_name
from cluster_kit.roles import Style
from cluster_kit.util import own_files, templating
from cluster_kit.workspace import Workspace, write_new

PROGRAM_BY_STYLE: dict[Style, str] = {"coordinator": "coordinator.py", "all-tasks": "all_tasks.py"}
NOTHING: Mapping[Path, str | bytes] = MappingProxyType({})


@dataclass(frozen=True)
class Starter:
    """Paths of the two files of a new cluster."""

    manifest: Path
    program: Path


def create(
    name: str, style: Style, workspace: Workspace, beside: Mapping[Path, str | bytes] = NOTHING
) -> Starter:
    """Write compose/NAME.toml and programs/NAME/train.py, and return their paths.

    The program has a directory of its own, which is mounted as a whole; compose/NAME/ is generated
    and removed by `make clean`.

    Args:
        beside: other files that are written with them, all or none.
    Raises:
        UsageError: the name is invalid, or one of the files exists already.
        HostError: they cannot be written.
    """
    check_name(name)
    starter = Starter(workspace.manifests / f"{name}.toml", workspace.programs / name / "train.py")
    if os.path.lexists(starter.program.parent):
        raise UsageError(
            f"{starter.program.parent} exists already, and nothing is overwritten",
            "choose another name, or move it away first",
        )
    program = (own_files.TEMPLATES / "new" / PROGRAM_BY_STYLE[style]).read_bytes()
    text = manifest(name, style, workspace)
    write_new({starter.manifest: text, starter.program: program, **beside})
    return starter


def check_name(name: str) -> None:
    """Raise UsageError if this cannot be a cluster's name."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a cluster's name: it must be a DNS label of at most 40 "
            "characters: a-z, 0-9 and inner hyphens",
            f"for example `cluster-kit new {near_name(name)}`",
        )


def manifest(name: str, style: Style, workspace: Workspace) -> str:
    """The text of the new manifest; paths in it are relative to compose/."""
    all_tasks = style == "all-tasks"
    return templating.kit_template("new/manifest.toml.j2").render(
        name=name,
        clone=workspace.root.resolve() == own_files.CLONE,  # which has a Makefile
        schema=(workspace.manifests / "schema.json").exists(),
        chief=0 if all_tasks else 1,
        worker=2,
        ps=0 if all_tasks else 1,
        style=style,
        all_tasks=all_tasks,
        program=f"../programs/{name}/train.py",
        requirements=f"../programs/{name}/requirements.txt",
    )
