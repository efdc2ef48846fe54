"""Writes the files of a new cluster: a commented manifest and a program that trains at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from cluster_kit.errors import UsageError
from cluster_kit.manifest.field_types import NAME, near_name
from cluster_kit.roles import Style
from cluster_kit.util import paths, templating
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
    program = (paths.TEMPLATES / "new" / PROGRAM_BY_STYLE[style]).read_bytes()
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
        clone=workspace.root.resolve() == paths.CLONE,  # which has a Makefile
        schema=(workspace.manifests / "schema.json").exists(),
        chief=0 if all_tasks else 1,
        worker=2,
        ps=0 if all_tasks else 1,
        style=style,
        all_tasks=all_tasks,
        program=f"../programs/{name}/train.py",
        requirements=f"../programs/{name}/requirements.txt",
    )


@dataclass(frozen=True)
class Addition:
    """New files with their content and, by their paths, what each is; `next` are lines to tell.

    A file that exists already, as it would be written, is not among them.
    """

    files: Mapping[Path, str | bytes]
    about: Mapping[Path, str]
    next: tuple[str, ...] = ()


FILE = "cluster-kit.mk"


def make_part(name: str, workspace: Workspace) -> Addition:
    """cluster-kit.mk, which an existing Makefile takes in by one line; it is never changed itself.

    Raises:
        UsageError: this is the kit's own clone, or another cluster-kit.mk is there.
    """
    if workspace.root == paths.CLONE:
        raise UsageError(
            "--make in a clone of the kit: its Makefile has `make cluster` already",
            f"leave it out: `make cluster CLUSTER={name}`",
        )
    path = workspace.root / FILE
    text = templating.kit_template("new/cluster-kit.mk.j2").render(name=name)
    first = text.partition("\n")[0]
    run = f"`make cluster CLUSTER={name}` runs it"
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace").startswith(first):
        return Addition({}, {}, (f"{FILE} exists already: {run}",))
    makefile = "your Makefile" if (workspace.root / "Makefile").exists() else "a Makefile"
    line = f"write `include {FILE}` into {makefile}; then {run}"
    return Addition({path: text}, {path: "targets for make: cluster, cluster-logs …"}, (line,))
