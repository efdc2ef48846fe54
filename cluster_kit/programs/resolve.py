"""The program and the data that a manifest names: on this host, or known to be in the image."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cluster_kit.cluster import Mount
from cluster_kit.manifest.names import OWN_IMAGE
from cluster_kit.manifest.schema import Manifest
from cluster_kit.manifest.typed import to_type
from cluster_kit.problem import Problem, Setting
from cluster_kit.programs import requirements, syntax
from cluster_kit.util import nearest
from cluster_kit.util.paths import is_directory, is_file

BUILT_IN_PROGRAMS = ("classifier", "linear-regression", "detection")
DATA_SETS = ("digits", "digit-scenes")
DATA_SETS_IN_IMAGE = "/opt/datasets"
SAMPLES = {"classifier": "digits", "detection": "digit-scenes"}
"""The data set of the image that a built-in program can read; the others of the image it cannot."""

PIPELINE = "pipeline.toml"
"""What the detection reads in its data directory where no argument names another."""


@dataclass(frozen=True)
class Inputs:
    """`program` and `data` as paths inside a container (or a built-in name), and their mounts.

    `requirements` are the lines of that file that say something, "" where there is none.
    """

    program: str
    data: str
    mounts: tuple[Mount, ...]
    problems: tuple[Problem, ...] = ()
    requirements: str = ""


def resolve(manifest: Manifest, folder: Path) -> Inputs:
    """Find program and data; relative paths are seen from `folder`, the manifest's own."""
    program, program_mounts, program_problems = _program(manifest, folder)
    data, data_mounts, data_problems = _data(manifest, folder)
    extra, faults = _requirements(manifest.requirements, folder)
    return Inputs(
        program,
        data,
        program_mounts + data_mounts,
        (*program_problems, *faults, *data_problems),
        extra,
    )


def program_file(manifest: Manifest, folder: Path) -> Path | None:
    """The user's own program on this host, None where it is a built-in one or not there."""
    path = _seen_from(folder, manifest.program)
    own = manifest.program not in BUILT_IN_PROGRAMS
    return path if own and is_file(path) else None


def _program(manifest: Manifest, folder: Path) -> tuple[str, tuple[Mount, ...], list[Problem]]:
    name = manifest.program
    if name in BUILT_IN_PROGRAMS:
        return name, (), []
    path = _seen_from(folder, name)
    if is_file(path):
        problems = _no_python(path) if _python_is_known(manifest) else []
        return f"/program/{path.name}", (Mount(str(path.parent), "/program"),), problems
    rule = f"neither a built-in program ({', '.join(BUILT_IN_PROGRAMS)}) nor a file at {path}"
    cure = "mend the path; one in a manifest is seen from its folder"
    cure = _meant(name, BUILT_IN_PROGRAMS) + cure
    return name, (), [Problem("program", f'"{name}"', rule, cure)]


def _python_is_known(manifest: Manifest) -> bool:
    """Whether the image's Python is none that is newer than this one."""
    return manifest.image == OWN_IMAGE and not os.environ.get("CLUSTER_KIT_BASE")


def _no_python(program: Path) -> list[Problem]:
    """Other files than `.py` may be something that Python can run all the same: a zip."""
    fault = syntax.fault(program) if program.suffix == ".py" else None
    if fault is None:
        return []
    rule = f"this is no Python: {fault.said}"
    shown = f"`{fault.line}`" if fault.line else ""
    cure = "mend the line, or the one before it"
    return [Problem(fault.place, shown, rule, cure, ("program", "image"))]


def _data(manifest: Manifest, folder: Path) -> tuple[str, tuple[Mount, ...], list[Problem]]:
    name = manifest.data
    if name in DATA_SETS:
        return f"{DATA_SETS_IN_IMAGE}/{name}", (), _unreadable(manifest.program, name)
    path = _seen_from(folder, name)
    cure = f"mend the path, which is seen from the manifest, or pass {to_type('data', 'DIR')}"
    if not name or not is_directory(path):
        known = ", ".join(DATA_SETS)
        rule = f"neither a data set of the image ({known}) nor a directory at {path}"
        cure = _meant(name, DATA_SETS) + cure
        return name, (), [Problem("data", f'"{name}"', rule, cure)]
    missing = [part for part in ("Train", "Validate", "Test") if not is_directory(path / part)]
    problems = []
    if manifest.program == "classifier" and missing:
        absent = ", ".join(f"{part}/" for part in missing)
        rule = f"the classifier needs folders Train/, Validate/, Test/; there is no {absent}"
        problems = [Problem("data", f'"{name}"', rule, cure, ("program",))]
    if manifest.program == "detection":
        problems = _no_pipeline(manifest, path)
    return "/data", (Mount(str(path), "/data"),), problems


def _no_pipeline(manifest: Manifest, data: Path) -> list[Problem]:
    """A pipeline configuration that the detection will not find in the user's own data.

    What is elsewhere in the image is left to the program.
    """
    given = _pipeline_config(manifest.args)
    inside = posixpath.normpath(posixpath.join("/data", given or PIPELINE))
    if inside.startswith("/data/"):
        if is_file(data / inside.removeprefix("/data/")):
            return []
        rule = f"there is no {inside.removeprefix('/data/')} in {data}"
    elif given and not inside.startswith("/opt/") and is_file(data / given):
        rule = f"the containers see {data}, and nothing beside it"
    else:
        return []
    if given:
        cure = "give a path that is seen from the data directory"
        return [Problem("args", f"--pipeline-config {given}", rule, cure, ("program", "data"))]
    named = next((path.name for path in sorted(data.glob("*.config"))), "FILE")
    cure = "write one (docs/detection.md), or name yours:"
    cure += f" {to_type('args', f'--pipeline-config {named}')}"
    rule = f"the detection needs a pipeline configuration; {rule}"
    return [Problem("data", f'"{manifest.data}"', rule, cure, ("program", "args"))]


def _pipeline_config(arguments: Sequence[str]) -> str:
    """The last `--pipeline-config` among a program's arguments, "" where there is none."""
    found = ""
    for argument, following in pairwise([*arguments, ""]):
        name, sign, value = argument.partition("=")
        if len(name) > len("--p") and "--pipeline-config".startswith(name):
            found = value if sign else following
    return found


def _requirements(name: str, folder: Path) -> tuple[str, list[Problem]]:
    if not name:
        return "", []
    path, value = _seen_from(folder, name), f'"{name}"'
    cure = "mend the path; one in a manifest is seen from its folder"
    try:
        lines = requirements.lines_of(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = f"no file that can be read at {path}: {error.strerror}"
        return "", [Problem("requirements", value, rule, cure)]
    except ValueError:
        return "", [Problem("requirements", value, "not UTF-8", "save the file as UTF-8")]
    cure = "write packages as `name` or `name==version`, one a line"
    found = [Problem("requirements", value, rule, cure) for rule in requirements.faults(lines)]
    return "".join(f"{line}\n" for line in lines), found


def _unreadable(program: str, name: str) -> list[Problem]:
    """Images in class folders are no scenes with boxes, and the other way round."""
    sample = SAMPLES.get(program, name)
    if name == sample:
        return []
    rule = f"the {program} cannot read this data set of the image"
    cure = ("write ", Setting("data", sample), ", or name a directory of your own")
    return [Problem("data", f'"{name}"', rule, cure, ("program",))]


def _meant(name: str, known: Sequence[str]) -> str:
    hint = nearest.hint(name, known)
    return f"{hint}Or " if hint else ""


def _seen_from(folder: Path, name: str) -> Path:
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, RuntimeError):  # no such user, or links that go round in a circle
        return folder / name
