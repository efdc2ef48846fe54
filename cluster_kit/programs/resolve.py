"""Finds the program, data and requirements of a manifest, on this host or in the image."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.programs import style
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS, BuiltIn
from cluster_kit.resolved import RESERVED, SECRETS, TRAINER, Dockerfile, Fetch, Mount
from cluster_kit.util import paths
from cluster_kit.util.masking import without_url_passwords
from cluster_kit.util.nearest import did_you_mean, did_you_mean_path, near_or
from cluster_kit.util.paths import exists, is_directory, is_file, is_zip, seen_from
from cluster_kit.util.toml_text import to_toml

if TYPE_CHECKING:  # building the manifest's models takes long; many commands read none
    from cluster_kit.manifest.schema import DataTable, Manifest, PlainMount, SidecarTable

IMAGES = (".png", ".jpg", ".jpeg")


def folder_fault(parts: Sequence[Sequence[str]], data: Path) -> str:
    """The reason why a directory is not a set of images in class folders, with or without parts; ""
    if it is such a set, or if it cannot be read.

    Args:
        parts: for each part, the names that its folder may have (case is ignored); training first.
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
"""The options with which a configuration is given in several files."""


def check_pipeline(program: BuiltIn, manifest: Manifest, data: Path) -> Iterator[Problem]:
    """Yields a problem if a pipeline configuration is missing in `data`, the user's directory.

    Paths elsewhere in the image are checked by the program itself.
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
    """The reason why tasks will not find this file; "" if they will, or if it is not known."""
    inside = posixpath.normpath(posixpath.join("/data", config))
    if inside.startswith("/data/"):
        name = inside.removeprefix("/data/")
        return "" if is_file(data / name) else f"there is no {name} in {data}"
    if not inside.startswith("/opt/") and is_file(data / config):
        return f"the containers can access only {data} and the files in it"
    return ""


def config_arguments(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Each option that names a configuration file, as the user wrote it, with its last value.

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
        near = did_you_mean(path.name, DATA_SETS) or did_you_mean_path(name, folder, is_directory)
        hint = (f"{near}Or ", *_HINT) if near else _HINT
        if is_file(path):
            parent = str(Path(name).parent)
            hint = (f"this is a file: write its directory, `{parent}`, whose files are in /data",)
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


FIX_THE_PATH = "fix the path; in a manifest it is relative to the manifest's folder"


def _fix(
    name: str, folder: Path, fits: Callable[[Path], bool] = is_file, fix: str = FIX_THE_PATH
) -> str:
    """The hint for a path that was not found: the most similar path that exists, and `fix`."""
    return near_or(did_you_mean_path(name, folder, fits), fix)


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
        problems.append(
            Problem("data.fetch", to_toml(table.fetch), rule, _fix(table.fetch, folder))
        )
    elif not is_zip(script) and (fault := style.fault(script)):
        rule = f"not valid Python: {fault.message}"
        problems.append(
            Problem(
                "data.fetch",
                fault.line,
                rule,
                "fix the line, or the one before",
                line=fault.location,
            )
        )
    for name in table.secrets:
        if RESERVED.fullmatch(name) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            rule = "not a name of a variable of yours"
            problems.append(Problem("data.secrets", to_toml(name), rule, "remove it"))
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", script.stem) or "data"
    directory = fetched / f"{stem}-{_hash(script, table.args)}"
    step = Fetch(str(script), tuple(table.args), tuple(sorted(set(table.secrets))), str(directory))
    return step, problems


def _hash(script: Path, arguments: list[str]) -> str:
    """A hash of 12 hex digits; an unreadable program has that of an empty one (and is a
    problem)."""
    try:
        content = script.read_bytes()
    except (OSError, ValueError):
        content = b""
    text = json.dumps([hashlib.sha256(content).hexdigest(), arguments])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


EXTRA = "-with-"
"""The text between the trainer image's name and the digest of the added requirements."""
FILES = re.compile(
    r"(-r|-c|-e|--requirement|--constraint|--editable)\b|--find-links[= ](?!https?:)"
)
OTHER_FILES = (".toml", ".yaml", ".yml", ".cfg", ".py")
OWN = re.compile(r"(-e|--editable)\b|\.{1,2}(/[^.]*$|\[|$)")
"""A package's directory, which is mostly the project's own."""
VCS = re.compile(r"([^:]*@\s*)?(git|hg|svn|bzr)\+")
PATHS = re.compile(
    r"\.{0,2}/|\.{1,2}(\[|$)|~|file:|[^:]*@\s*file:|(?!.*://).*\.(whl|zip|tar\.gz)\b"
)


def lines_of(text: str) -> dict[int, str]:
    """The lines of a requirements file by their numbers, without comments and blank lines.

    Continued lines are joined, and have the number of the first.
    """
    lines: dict[int, str] = {}
    first, begun = 1, ""
    for number, part in enumerate([*text.splitlines(), ""], 1):
        begun += part
        if begun.endswith("\\"):
            begun = begun[:-1] + " "
            continue
        if line := " ".join(re.sub(r"(^|\s)#.*", "", begun).split()):
            lines[first] = line
        first, begun = number + 1, ""
    return lines


def requirement_fault(line: str) -> str:
    """The rule that a line breaks if it names another local file, since the build has only this
    one, or a repository; "" for any other line."""
    if VCS.match(line):
        return "the image has no git, nor any other program that fetches a repository"
    if FILES.match(line):
        return "the build sees this one file and none that it names"
    return "the build sees no path of this host" if PATHS.match(line) else ""


@dataclass(frozen=True)
class Requirements:
    """The lines of a requirements file, the place of each (`needs.txt:3`), and their problems."""

    text: str = ""
    places: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_requirements(name: str, folder: Path) -> Requirements:
    """The requirements in a file; none if `name` is "", or if it cannot be read.

    A relative path is relative to `folder`.
    """
    if not name:
        return Requirements()
    path, value = seen_from(folder, name), f'"{name}"'
    if path.suffix in OTHER_FILES and path.is_file():
        rule = f"a {path.suffix} file is not a file of pip requirements"
        problem = Problem("requirements", value, rule, "list the packages in a file, one a line")
        return Requirements(problems=(problem,))
    try:
        lines = lines_of(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule = f"cannot be read at {path}: {error.strerror}"
        problem = Problem("requirements", value, rule, _fix(name, folder))
        return Requirements(problems=(problem,))
    except ValueError:
        problem = Problem("requirements", value, "not UTF-8", "save the file as UTF-8")
        return Requirements(problems=(problem,))
    hint = "write packages as `name` or `name==version`, one a line"
    places = tuple(f"{path.name}:{number}" for number in lines)
    archive = "name an archive in its place: `NAME @ https://HOST/…/REF.tar.gz`"
    beside = "remove the line: a program beside the package's directory can import it"
    problems = [
        Problem(
            "requirements",
            f"`{without_url_passwords(line)}`",
            rule,
            archive if VCS.match(line) else beside if OWN.match(line) else hint,
            line=place,
        )
        for place, line in zip(places, lines.values(), strict=True)
        if (rule := requirement_fault(line))
    ]
    if all(line.startswith("-") for line in lines.values()):
        problems.append(Problem("requirements", value, "it names no package", hint))
    return Requirements("".join(f"{line}\n" for line in lines.values()), places, tuple(problems))


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
    hint = _fix(name, folder, exists)
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
            hint = _fix(table.source, folder, exists, f"make it, or {FIX_THE_PATH}")
            problems.append(Problem(f"{key_path}.source", to_toml(table.source), rule, hint))
    return tuple(mounts), problems


VARIABLE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:]", re.MULTILINE)


def find_secrets(manifest: Manifest, folder: Path) -> tuple[dict[str, Mount], list[Problem]]:
    """The secrets from files, by name, and a problem for each file that cannot be read."""
    mounts: dict[str, Mount] = {}
    problems: list[Problem] = []
    for name, secret in manifest.secret.items():
        if secret.file:
            path = seen_from(folder, secret.file)
            mounts[name] = Mount(str(path), f"{SECRETS}/{name}")
            problems += _unreadable(f"secret.{name}", secret.file, folder)
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
        faults = _unreadable(key, limits.env_file, folder) or list(_reserved(key, path))
        problems += faults
    return files, problems


def _unreadable(key_path: str, name: str, folder: Path) -> list[Problem]:
    path, value = seen_from(folder, name), to_toml(name)
    if not name or not is_file(path):
        return [Problem(key_path, value, f"no file at {path}", _fix(name, folder))]
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
    """The program's and the data's paths in the containers, their mounts, and the problems.

    `program` is a path in the container or a built-in name, `data` a path in the container,
    `requirements` the lines of that file without comments, "" if the manifest names none;
    `requirement_places` has the place of each, `needs.txt:3`.
    """

    program: str
    data: str
    mounts: tuple[Mount, ...]
    problems: tuple[Problem, ...] = ()
    requirements: str = ""
    requirement_places: tuple[str, ...] = ()
    own_mounts: tuple[Mount, ...] = ()
    """The mounts of the tables `[[mount]]`, in order."""
    secret_files: Mapping[str, Mount] = field(default_factory=dict)
    """The mounts of secrets from files, by name."""
    env_files: Mapping[str, str] = field(default_factory=dict)
    """Absolute paths, by the path in the manifest."""
    fetch: Fetch | None = None
    dockerfile: Dockerfile | None = None
    sidecar_mounts: Mapping[str, tuple[Mount, ...]] = field(default_factory=dict)
    """The mounts of sidecars, by name."""


def resolve(manifest: Manifest, folder: Path, fetched: Path | None = None) -> Inputs:
    """The manifest's program, data and requirements; relative paths are relative to `folder`.

    Args:
        fetched: the folder with what data steps have fetched.
    """
    program, program_mounts, program_problems = _program(manifest, folder)
    step: Fetch | None = None
    data_mounts: tuple[Mount, ...]
    if not isinstance(manifest.data, str):
        step, data_problems = find_fetch(manifest.data, folder, fetched or folder / "fetched")
        data, data_mounts = IN_CONTAINER, (Mount(step.directory, IN_CONTAINER),)
    else:
        data, data_mounts, data_problems = find_data(manifest, folder)
    extra = read_requirements(manifest.requirements, folder)
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
    not_there = [
        problem for _, problems_of_mounts in beside.values() for problem in problems_of_mounts
    ]
    problems = (*program_problems, *extra.problems, *data_problems)
    return Inputs(
        program,
        data,
        program_mounts + data_mounts + _trainer_mounts(manifest),
        (*problems, *absent, *unread, *unusable, *not_built, *not_there),
        extra.text,
        extra.places,
        mounts,
        secrets,
        env_files,
        step,
        dockerfile,
        {name: problems_of_mounts for name, (problems_of_mounts, _) in beside.items()},
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


PROGRAM = "/program"
"""The directory of the user's own program in the tasks."""


def in_package(module: str) -> str:
    """The hint for a program that Python runs only as a module of its package, as `pkg.train`."""
    package = module.partition(".")[0]
    return (
        f"the program is inside its package `{package}`: write a file next to the directory "
        f"`{package}` with the line `import runpy; runpy.run_module({module!r}, "
        "run_name='__main__')`, and run that file"
    )


def module_of(program: Path) -> str:
    """The name of a file as a module of the outermost package around it; its own folder counts as a
    package."""
    inner, *around = program.parents
    packages = takewhile(lambda folder: is_file(folder / "__init__.py"), around)
    names = [program.stem, inner.name, *(folder.name for folder in packages)]
    return ".".join(reversed(names))


def _named_as_module(name: str, folder: Path) -> str:
    """The module that is named in place of a file, as in `pkg.train` or `python -m pkg.train`, if
    there is one; "" otherwise."""
    match = re.fullmatch(r"(?:python[0-9.]*\s+)?(?:-m\s+)?(\w+(?:\.\w+)+)", name.strip())
    module = match[1] if match else ""
    path = seen_from(folder, module.replace(".", "/"))
    if module and (is_file(path.with_name(f"{path.name}.py")) or is_file(path / "__main__.py")):
        return module
    return ""


def _program(manifest: Manifest, folder: Path) -> tuple[str, tuple[Mount, ...], list[Problem]]:
    name = manifest.program
    if name in PROGRAMS:
        return name, (), []
    path = seen_from(folder, name)
    if is_file(path):
        problems = _syntax_problems(path) if _python_is_known(manifest) else []
        return f"{PROGRAM}/{path.name}", (Mount(str(path.parent), PROGRAM),), problems
    rule = f"neither a built-in program ({', '.join(PROGRAMS)}) nor a file at {path}"
    if name and is_directory(path):
        rule += ", which is a directory"
        return name, (), [Problem("program", f'"{name}"', rule, _file_in(name, path))]
    if module := _named_as_module(name, folder):
        return name, (), [Problem("program", f'"{name}"', rule, in_package(module))]
    beside = path.with_name(f"{path.name}.py")
    near = did_you_mean(path.name, [beside.name] if is_file(beside) else PROGRAMS)
    hint = near_or(near or did_you_mean_path(name, folder), FIX_THE_PATH)
    return name, (), [Problem("program", f'"{name}"', rule, hint)]


def _file_in(name: str, folder: Path) -> str:
    """The hint if the program is a directory: the Python files in it."""
    try:
        files = sorted(path.name for path in folder.glob("*.py"))
    except OSError:
        files = []
    if not files:
        return "name a Python file; this directory contains none"
    first = next((file for file in ("train.py", "main.py", "__main__.py") if file in files), "")
    proposed = Path(name, first or files[0])
    choices = f"; there are: {', '.join(files[:8])}" if len(files) > 1 else ""
    return f"name the file that begins the training, such as {proposed}{choices}"


def _python_is_known(manifest: Manifest) -> bool:
    """Whether the image's Python is known to be no newer than the Python that runs this."""
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
    return [Problem("program", line, rule, hint, ("image",), fault.location)]
