"""The data that a manifest names: a data set of the image, or a directory of this host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cluster_kit.manifest.command_line import option_text
from cluster_kit.manifest.schema import Manifest
from cluster_kit.parts import Mount
from cluster_kit.problem import Problem, Setting
from cluster_kit.programs import class_folders
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS, BuiltIn
from cluster_kit.programs.pipeline import check_pipeline
from cluster_kit.util.nearest import hint_or
from cluster_kit.util.paths import is_directory, seen_from

IN_CONTAINER = "/data"


def find_data(manifest: Manifest, folder: Path) -> tuple[str, tuple[Mount, ...], list[Problem]]:
    """The data's path in a container, the directories to mount, and the problems.

    A relative path is relative to `folder`.
    """
    name, program = str(manifest.data), PROGRAMS.get(manifest.program)
    if name in DATA_SETS:
        return DATA_SETS[name].path, (), list(_check_sample(program, name))
    if not name:
        cure = f"name a data set of the image ({', '.join(DATA_SETS)}) or a directory, or leave "
        return name, (), [Problem("data", '""', "it is empty", f"{cure}the key out: digits")]
    path = seen_from(folder, name)
    if not is_directory(path):
        rule = f"neither a data set of the image ({', '.join(DATA_SETS)}) nor a directory at {path}"
        return (
            name,
            (),
            [Problem("data", f'"{name}"', rule, hint_or(path.name, DATA_SETS, _cure()))],
        )
    problems: list[Problem] = []
    if program is not None:
        problems += _check_folders(program, name, path)
        problems += check_pipeline(program, manifest, path) if program.pipeline else ()
    return IN_CONTAINER, (Mount(str(path), IN_CONTAINER),), problems


def _check_sample(program: BuiltIn | None, name: str) -> Iterator[Problem]:
    """Yields a built-in data set that the program cannot read."""
    if program is None or program.sample in ("", name):
        return
    rule = f"the {program.name} cannot read this data set of the image"
    cure = ("write ", Setting("data", program.sample), ", or name a directory of your own")
    yield Problem("data", f'"{name}"', rule, cure, ("program",))


def _check_folders(program: BuiltIn, name: str, path: Path) -> Iterator[Problem]:
    """Yields a data directory without the folders that the program needs."""
    fault = class_folders.fault(program.folders, path) if program.folders else ""
    if fault:
        parts = ", ".join(f"{part[0]}/" for part in program.folders)
        rule = (
            f"the {program.name} needs a folder of images for each class, or {parts} with such "
            f"folders; {fault}"
        )
        yield Problem("data", f'"{name}"', rule, _cure(), ("program",))


def _cure() -> str:
    mend = "mend the path (in a manifest it is relative to the manifest's folder)"
    return f"{mend}, or pass {option_text('data', 'DIR')}"
