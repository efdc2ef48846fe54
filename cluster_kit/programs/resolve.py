"""Finds the program, data and requirements of a manifest, on this host or in the image."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster_kit.errors import Problem
from cluster_kit.manifest.schema import RESERVED, DataTable, Manifest, PlainMount, SidecarTable
from cluster_kit.programs import style
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.data import IN_CONTAINER, find_data, find_fetch
from cluster_kit.resolved import SECRETS, TRAINER, Dockerfile, Fetch, Mount
from cluster_kit.util import paths
from cluster_kit.util.nearest import did_you_mean_or
from cluster_kit.util.paths import exists, is_directory, is_file, is_zip, seen_from
from cluster_kit.util.toml_text import to_toml

EXTRA = "-with-"
"""Stands between the name of the trainer image and the digest of the added requirements."""
FILES = re.compile(
    r"(-r|-c|-e|--requirement|--constraint|--editable)\b|--find-links[= ](?!https?:)"
)
PATHS = re.compile(r"\.{0,2}/|~|file:|[^:]*@\s*file:|(?!.*://).*\.(whl|zip|tar\.gz)\b")


def lines_of(text: str) -> list[str]:
    """The lines of a requirements file without comments and blank lines; continued ones joined."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines if line]


def requirement_faults(lines: list[str]) -> Iterator[str]:
    """Yields the reason for each line that a build cannot install, since it has only this file."""
    for line in lines:
        if FILES.match(line):
            yield f'"{line}": the build sees this one file and none that it names'
        elif PATHS.match(line):
            yield f'"{line}": the build sees no path of this host'
    if not any(not line.startswith("-") for line in lines):
        yield "it names no package"


def read_requirements(name: str, folder: Path) -> tuple[str, list[Problem]]:
    """The lines of a file and their problems; "" if `name` is "" or cannot be read.

    A relative path is relative to `folder`.
    """
    if not name:
        return "", []
    path, value = seen_from(folder, name), f'"{name}"'
    hint = "fix the path; in a manifest it is relative to the manifest's folder"
    try:
        lines = lines_of(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = f"cannot be read at {path}: {error.strerror}"
        return "", [Problem("requirements", value, rule, hint)]
    except ValueError:
        return "", [Problem("requirements", value, "not UTF-8", "save the file as UTF-8")]
    hint = "write packages as `name` or `name==version`, one a line"
    problems = [Problem("requirements", value, rule, hint) for rule in requirement_faults(lines)]
    return "".join(f"{line}\n" for line in lines), problems


def digest(requirements: str) -> str:
    """The last 12 hex digits of the tag of the image with these requirements."""
    return hashlib.sha256(requirements.encode()).hexdigest()[:12]


USUAL = "Dockerfile"


def find_dockerfile(name: str, folder: Path) -> tuple[Dockerfile | None, list[Problem]]:
    """The Dockerfile at a path, or in the directory at that path; None if `name` is "", or if it
    does not exist.

    The build context is the Dockerfile's directory. A relative path is relative to `folder`.
    """
    if not name:
        return None, []
    path = seen_from(folder, name)
    file = path / USUAL if is_directory(path) else path
    if is_file(file):
        return Dockerfile(name, str(file), str(file.parent)), []
    rule = f"neither a Dockerfile nor a directory that has one: {path} was not found"
    hint = "fix the path; in a manifest it is relative to the manifest's folder"
    if is_directory(path):
        rule, hint = f"there is no {USUAL} in {path}", _others(name, path)
    return None, [Problem("build", to_toml(name), rule, hint)]


def _others(name: str, folder: Path) -> str:
    """The hint for a directory without a Dockerfile: Dockerfiles with other names, if any."""
    try:
        dockerfiles = sorted(
            path.name for path in folder.iterdir() if "dockerfile" in path.name.lower()
        )
    except OSError:
        dockerfiles = []
    dockerfiles = [file for file in dockerfiles if not file.endswith(".dockerignore")]
    if dockerfiles:
        choices = (to_toml(str(Path(name, file))) for file in dockerfiles[:4])
        return f"name the file: {', '.join(choices)}"
    return "write one there, which begins with the image to build on: `FROM …`"


def find_mounts(
    tables: Iterable[tuple[str, PlainMount]], folder: Path
) -> tuple[tuple[Mount, ...], list[Problem]]:
    """The mounts with absolute sources, in order, and a problem for each source that does not
    exist.

    A relative path is relative to `folder`.

    Args:
        tables: each with its key in the manifest (`mount.0`).
    """
    mounts: list[Mount] = []
    problems: list[Problem] = []
    for key_path, table in tables:
        path = seen_from(folder, table.source)
        mounts.append(Mount(str(path), table.target, table.read_only))
        if not table.source or not exists(path):
            rule = f"neither a file nor a directory at {path}"
            hint = "make it, or fix the path; in a manifest it is relative to the manifest's folder"
            problems.append(Problem(f"{key_path}.source", to_toml(table.source), rule, hint))
    return tuple(mounts), problems


MEND = "fix the path; in a manifest it is relative to the manifest's folder"
VARIABLE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:]", re.MULTILINE)


def find_secrets(manifest: Manifest, folder: Path) -> tuple[dict[str, Mount], list[Problem]]:
    """The secrets from files, by name, and a problem for each file that cannot be read."""
    mounts: dict[str, Mount] = {}
    problems: list[Problem] = []
    for name, secret in manifest.secret.items():
        if secret.file:
            path = seen_from(folder, secret.file)
            mounts[name] = Mount(str(path), f"{SECRETS}/{name}")
            problems += _unreadable(f"secret.{name}", secret.file, path)
    return mounts, problems


def find_env_files(manifest: Manifest, folder: Path) -> tuple[dict[str, str], list[Problem]]:
    """The absolute path of each `env_file` by the path in the manifest, and the files' problems."""
    files: dict[str, str] = {}
    problems: list[Problem] = []
    for key_path, limits in manifest.limits_by_table():
        if limits.env_file is None:
            continue
        path = seen_from(folder, limits.env_file)
        files[limits.env_file] = str(path)
        key = f"{key_path}.env_file"
        faults = _unreadable(key, limits.env_file, path) or list(_reserved(key, path))
        problems += faults
    return files, problems


def _unreadable(key_path: str, name: str, path: Path) -> list[Problem]:
    value = to_toml(name)
    if not name or not is_file(path):
        return [Problem(key_path, value, f"no file at {path}", MEND)]
    if not os.access(path, os.R_OK):
        rule = f"you may not read {path}, and so may no container, which runs as you"
        return [Problem(key_path, value, rule, f"`chmod u+r {path}`, or name another file")]
    return []


def _reserved(key_path: str, path: Path) -> Iterator[Problem]:
    """Yields variables that no task's environment may have; the problems never contain values."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        yield Problem(key_path, to_toml(path.name), "not UTF-8", "save the file as UTF-8")
        return
    for name in filter(RESERVED.fullmatch, VARIABLE.findall(text)):
        rule = f"{name} is the kit's own: it decides what the task is"
        yield Problem(key_path, to_toml(path.name), rule, f"take {name} out of {path}")


@dataclass(frozen=True)
class Inputs:
    """Where containers find the program and the data, the mounts for it, and the problems.

    `program` is a path in the container or a built-in name, `data` a path in the container,
    `requirements` the lines of that file without comments, "" if the manifest names none.
    """

    program: str
    data: str
    mounts: tuple[Mount, ...]
    problems: tuple[Problem, ...] = ()
    requirements: str = ""
    own_mounts: tuple[Mount, ...] = ()
    """Of the tables `[[mount]]`, in their order."""
    secret_files: Mapping[str, Mount] = field(default_factory=dict)
    """Of the secrets that come from files, by name."""
    env_files: Mapping[str, str] = field(default_factory=dict)
    """Absolute paths, by the path as it is written."""
    fetch: Fetch | None = None
    dockerfile: Dockerfile | None = None
    sidecar_mounts: Mapping[str, tuple[Mount, ...]] = field(default_factory=dict)
    """By the sidecar's name."""


def resolve(manifest: Manifest, folder: Path, fetched: Path | None = None) -> Inputs:
    """The manifest's program, data and requirements; relative paths are relative to `folder`.

    Args:
        fetched: the folder with what data steps have fetched.
    """
    program, program_mounts, program_problems = _program(manifest, folder)
    step: Fetch | None = None
    data_mounts: tuple[Mount, ...]
    if isinstance(manifest.data, DataTable):
        step, data_problems = find_fetch(manifest.data, folder, fetched or folder / "fetched")
        data, data_mounts = IN_CONTAINER, (Mount(step.directory, IN_CONTAINER),)
    else:
        data, data_mounts, data_problems = find_data(manifest, folder)
    extra, faults = read_requirements(manifest.requirements, folder)
    mounts, absent = find_mounts(
        ((f"mount.{number}", table) for number, table in enumerate(manifest.mount)), folder
    )
    secrets, unread = find_secrets(manifest, folder)
    env_files, unusable = find_env_files(manifest, folder)
    dockerfile, not_built = find_dockerfile(manifest.build, folder)
    beside = {
        name: find_mounts(_mounts_beside(name, sidecar), folder)
        for name, sidecar in manifest.sidecar.items()
    }
    not_there = [problem for _, found in beside.values() for problem in found]
    problems = (*program_problems, *faults, *data_problems)
    return Inputs(
        program,
        data,
        program_mounts + data_mounts + _trainer_mounts(manifest),
        (*problems, *absent, *unread, *unusable, *not_built, *not_there),
        extra,
        mounts,
        secrets,
        env_files,
        step,
        dockerfile,
        {name: found for name, (found, _) in beside.items()},
    )


def _mounts_beside(name: str, sidecar: SidecarTable) -> list[tuple[str, PlainMount]]:
    """A sidecar's mounts, each with its key in the manifest."""
    return [(f"sidecar.{name}.mount.{n}", table) for n, table in enumerate(sidecar.mount)]


def _trainer_mounts(manifest: Manifest) -> tuple[Mount, ...]:
    """The mounts that bring the trainer into an image that is not the kit's own."""
    if manifest.runs_in_kits_image:
        return ()
    return (Mount(str(paths.IMAGE / "trainer"), TRAINER),)


def without_trainer(inputs: Inputs) -> Inputs:
    """The inputs of a portable file: without the trainer, since its image must have it."""
    return replace(inputs, mounts=tuple(m for m in inputs.mounts if m.target != TRAINER))


def program_file(manifest: Manifest, folder: Path) -> Path | None:
    """The user's own program on this host; None if it is built in or was not found."""
    path = seen_from(folder, manifest.program)
    return path if manifest.program not in PROGRAMS and is_file(path) else None


def _program(manifest: Manifest, folder: Path) -> tuple[str, tuple[Mount, ...], list[Problem]]:
    name = manifest.program
    if name in PROGRAMS:
        return name, (), []
    path = seen_from(folder, name)
    if is_file(path):
        problems = _syntax_problems(path) if _python_is_known(manifest) else []
        return f"/program/{path.name}", (Mount(str(path.parent), "/program"),), problems
    rule = f"neither a built-in program ({', '.join(PROGRAMS)}) nor a file at {path}"
    if name and is_directory(path):
        rule += ", which is a directory"
        return name, (), [Problem("program", f'"{name}"', rule, _file_in(name, path))]
    fix = "fix the path; in a manifest it is relative to the manifest's folder"
    beside = path.with_name(f"{path.name}.py")
    known = [beside.name] if is_file(beside) else PROGRAMS
    hint = did_you_mean_or(path.name, known, fix)
    return name, (), [Problem("program", f'"{name}"', rule, hint)]


def _file_in(name: str, folder: Path) -> str:
    """The hint for a directory instead of a program: the Python files in it."""
    try:
        files = sorted(path.name for path in folder.glob("*.py"))
    except OSError:
        files = []
    if not files:
        return "name a Python file; there is none in it"
    first = next((file for file in ("train.py", "main.py", "__main__.py") if file in files), "")
    proposed = Path(name, first or files[0])
    choices = f"; there are: {', '.join(files[:8])}" if len(files) > 1 else ""
    return f"name the file that begins the training, such as {proposed}{choices}"


def _python_is_known(manifest: Manifest) -> bool:
    """Whether the image's Python is certainly not newer than the Python that runs this."""
    return manifest.runs_in_kits_image and not os.environ.get("CLUSTER_KIT_BASE")


def _syntax_problems(program: Path) -> list[Problem]:
    """Yields the syntax error of a program; none for a zip, which Python can run as well."""
    if program.suffix == ".ipynb":
        hint = f"make a program of it: `jupyter nbconvert --to script {program.name}`"
        return [
            Problem("program", f'"{program.name}"', "a notebook, which Python cannot run", hint)
        ]
    fault = None if is_zip(program) else style.fault(program)
    if fault is None:
        return []
    rule = f"not valid Python: {fault.message}"
    line = f"`{fault.line}`" if fault.line else ""
    hint = style.hint(fault.message, style.content(program))
    hint = hint or "fix the line, or the one before it"
    return [Problem(fault.location, line, rule, hint, ("program", "image"))]
