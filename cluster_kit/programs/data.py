"""The data that a manifest names: a data set, a directory, or a program that fetches it."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.schema import RESERVED, DataTable, Manifest
from cluster_kit.programs import style
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS, BuiltIn
from cluster_kit.resolved import Fetch, Mount
from cluster_kit.util.nearest import did_you_mean
from cluster_kit.util.paths import is_directory, is_file, is_zip, seen_from
from cluster_kit.util.toml_text import to_toml

IMAGES = (".png", ".jpg", ".jpeg")


def folder_fault(parts: Sequence[Sequence[str]], data: Path) -> str:
    """The reason why a directory is not a set of images in class folders, with or without parts; ""
    if it is one, or if it cannot be read.

    Args:
        parts: for each part, the names that its folder may have, in any case; Train's part first.
    """
    try:
        folders = [path for path in data.iterdir() if path.name[0] != "." and is_directory(path)]
        names = {path.name.lower(): path.name for path in folders}
        train, *further = ([names[n.lower()] for n in part if n.lower() in names] for part in parts)
        if train:
            return ""
        for present in further:
            if present:
                return f"there is {present[0]}/, but no {parts[0][0]}/"
        with_images = [path.name for path in folders if _has_image(path)]
    except OSError:
        return ""
    if len(with_images) >= 2:
        return ""
    listed = f" ({with_images[0]}/)" if with_images else ""
    count = len(with_images)
    return (
        f"there {'is' if count == 1 else 'are'} {count} folder{'s' * (count != 1)} with .png or"
        f" .jpg files{listed}, and no {parts[0][0]}/"
    )


def _has_image(folder: Path) -> bool:
    return any(path.suffix.lower() in IMAGES and is_file(path) for path in folder.iterdir())


OPTION = "--pipeline-config"
PARTS = tuple(f"--{part}-config-path" for part in ("model", "train", "input", "eval", "eval-input"))
"""The options of a configuration in parts."""


def check_pipeline(program: BuiltIn, manifest: Manifest, data: Path) -> Iterator[Problem]:
    """Yields a problem if a pipeline configuration is missing in `data`, the user's directory.

    The program itself checks paths elsewhere in the image.
    """
    named = config_arguments(manifest.args)
    for option, config in named:
        if rule := _not_seen(config, data):
            hint: HintText = "give a path that is relative to the data directory"
            yield Problem("args", f"{option} {config}", rule, hint, ("program", "data"))
    if named or not (rule := _not_seen(program.pipeline, data)):
        return
    candidate = next((path.name for path in sorted(data.glob("*.config"))), "FILE")
    named_so = Setting("args", (OPTION, candidate), for_once=True)
    hint = ("write one (docs/detection.md), or name yours: ", named_so)
    rule = f"the {program.name} needs a pipeline configuration; {rule}"
    yield Problem("data", f'"{manifest.data}"', rule, hint, ("program", "args"))


def _not_seen(config: str, data: Path) -> str:
    """The reason why tasks will not find this file; "" if they will, or if that is not known."""
    inside = posixpath.normpath(posixpath.join("/data", config))
    if inside.startswith("/data/"):
        name = inside.removeprefix("/data/")
        return "" if is_file(data / name) else f"there is no {name} in {data}"
    if not inside.startswith("/opt/") and is_file(data / config):
        return f"the containers see {data}, and nothing beside it"
    return ""


def config_arguments(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Each option that names a configuration, as the user wrote it, with its last value.

    The option of the whole configuration may be abbreviated. As in the program, `_` and `-` are the
    same in a name, and `--pipeline_config_path` is the classic name of `--pipeline-config`.
    """
    options: dict[str, tuple[str, str]] = {}
    for argument, following in pairwise([*arguments, ""]):
        written, equals, value = argument.partition("=")
        name = written.replace("_", "-")
        if name == f"{OPTION}-path" or (len(name) > len("--p") and OPTION.startswith(name)):
            name = OPTION
        if name in (OPTION, *PARTS):
            shown = OPTION if OPTION.startswith(written) else written
            options[name] = (shown, value if equals else following)
    return [(option, value) for option, value in options.values() if value]


IN_CONTAINER = "/data"
_HINT = (
    "fix the path (in a manifest it is relative to the manifest's folder), or pass ",
    Setting("data", "DIR", for_once=True),
)


def find_data(manifest: Manifest, folder: Path) -> tuple[str, tuple[Mount, ...], list[Problem]]:
    """The data's path in a container, the directories to mount, and the problems.

    A relative path is relative to `folder`.
    """
    name, program = str(manifest.data), PROGRAMS.get(manifest.program)
    if name in DATA_SETS:
        return DATA_SETS[name].path, (), list(_check_sample(program, name))
    if not name:
        sets = f"name a data set of the image ({', '.join(DATA_SETS)}) or a directory"
        hint: HintText = f"{sets}, or leave the key out: digits"
        return name, (), [Problem("data", '""', "it is empty", hint)]
    path = seen_from(folder, name)
    if not is_directory(path):
        rule = f"neither a data set of the image ({', '.join(DATA_SETS)}) nor a directory at {path}"
        near = did_you_mean(path.name, DATA_SETS)
        hint = (f"{near}Or ", *_HINT) if near else _HINT
        return name, (), [Problem("data", f'"{name}"', rule, hint)]
    problems: list[Problem] = []
    if program is not None:
        problems += _check_folders(program, name, path)
        problems += check_pipeline(program, manifest, path) if program.pipeline else ()
    return IN_CONTAINER, (Mount(str(path), IN_CONTAINER),), problems


def _check_sample(program: BuiltIn | None, name: str) -> Iterator[Problem]:
    """Yields a problem if the program cannot read the built-in data set."""
    if program is None or program.sample in ("", name):
        return
    rule = f"the {program.name} cannot read this data set of the image"
    hint = ("write ", Setting("data", program.sample), ", or name a directory of your own")
    yield Problem("data", f'"{name}"', rule, hint, ("program",))


def _check_folders(program: BuiltIn, name: str, path: Path) -> Iterator[Problem]:
    """Yields a problem if the data directory lacks the folders that the program needs."""
    missing = folder_fault(program.folders, path) if program.folders else ""
    if missing:
        parts = ", ".join(f"{part[0]}/" for part in program.folders)
        rule = (
            f"the {program.name} needs a folder of images for each class, or {parts} with such "
            f"folders; {missing}"
        )
        yield Problem("data", f'"{name}"', rule, _HINT, ("program",))


MEND = "fix the path; in a manifest it is relative to the manifest's folder"


def find_fetch(table: DataTable, folder: Path, fetched: Path) -> tuple[Fetch, list[Problem]]:
    """The data step of a manifest in `folder`, and its problems.

    The directory of its data depends only on the program's text and its arguments.

    Args:
        fetched: the folder in which such directories are.
    """
    script = seen_from(folder, table.fetch)
    problems = []
    if not table.fetch or not is_file(script):
        rule = f"no file at {script}"
        problems.append(Problem("data.fetch", to_toml(table.fetch), rule, MEND))
    elif not is_zip(script) and (fault := style.fault(script)):
        rule = f"not valid Python: {fault.message}"
        problems.append(
            Problem(fault.location, fault.line, rule, "fix the line, or the one before")
        )
    for name in table.secrets:
        if RESERVED.fullmatch(name) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            rule = "not a name of a variable of yours"
            problems.append(Problem("data.secrets", to_toml(name), rule, "take it out"))
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", script.stem) or "data"
    directory = fetched / f"{stem}-{_hash(script, table.args)}"
    step = Fetch(str(script), tuple(table.args), tuple(sorted(set(table.secrets))), str(directory))
    return step, problems


def _hash(script: Path, arguments: list[str]) -> str:
    """A hash of 12 hex digits; that of an empty program if it cannot be read (a problem)."""
    try:
        content = script.read_bytes()
    except (OSError, ValueError):
        content = b""
    text = json.dumps([hashlib.sha256(content).hexdigest(), arguments])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
