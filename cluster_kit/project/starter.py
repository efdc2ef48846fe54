"""Writes the files of a new project: a commented manifest, a program, workflows for CI."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from cluster_kit.errors import UsageError
from cluster_kit.manifest.field_types import NAME, near_name
from cluster_kit.roles import Style
from cluster_kit.util import paths, templating
from cluster_kit.version import __version__
from cluster_kit.workspace import Workspace, write_new

PROGRAM_BY_STYLE: dict[Style, str] = {"coordinator": "coordinator.py", "all-tasks": "all_tasks.py"}
NOTHING: Mapping[Path, str | bytes] = MappingProxyType({})


@dataclass(frozen=True)
class Starter:
    """Paths of the two files of a new cluster."""

    manifest: Path
    program: Path


def create(
    name: str, style: Style, workspace: Workspace, companions: Mapping[Path, str | bytes] = NOTHING
) -> Starter:
    """Write compose/NAME.toml and programs/NAME/train.py, and return their paths.

    The program has its own directory, since the whole directory is mounted; compose/NAME/ would not
    do, since `make clean` removes it.

    Args:
        companions: other files to write with them; either all files are written or none.
    Raises:
        UsageError: the name is invalid, or one of the files exists already.
        HostError: they cannot be written.
    """
    check_name(name)
    starter = Starter(manifest_of(name, workspace), workspace.programs / name / "train.py")
    if os.path.lexists(starter.program.parent):
        raise UsageError(
            f"{starter.program.parent} exists already, and nothing is overwritten",
            "choose another name, or move it away first",
        )
    program = (paths.TEMPLATES / "new" / PROGRAM_BY_STYLE[style]).read_bytes()
    text = manifest(name, style, workspace)
    write_new({starter.manifest: text, starter.program: program, **companions})
    return starter


def manifest_of(name: str, workspace: Workspace) -> Path:
    """The path of the manifest that `create` writes."""
    return workspace.manifests / f"{name}.toml"


def check_name(name: str) -> None:
    """Raise UsageError if this is not a valid name of a cluster."""
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
    """New files with their content and, by their paths, a description of each; `next` are lines to
    print.

    Files that already exist with the same content are left out.
    """

    files: Mapping[Path, str | bytes]
    about: Mapping[Path, str]
    next: tuple[str, ...] = ()


FILE = "cluster-kit.mk"


def make_part(name: str, workspace: Workspace) -> Addition:
    """cluster-kit.mk, which an existing Makefile includes with one line; the Makefile is not
    changed.

    Raises:
        UsageError: this is the kit's own clone, or another cluster-kit.mk exists.
    """
    if workspace.root == paths.CLONE:
        raise UsageError(
            "--make in a clone of the kit: its Makefile has `make cluster` already",
            f"without --make, use `make cluster CLUSTER={name}`",
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


PACKAGE = "cluster-kit"
_HINT = (
    "say what pip installs it from there: `--kit PATH/TO.whl` copies a wheel into your repository "
    "(in a clone of the kit `make wheel` builds one); or `--kit 'cluster-kit @ git+https://…'`"
)


@dataclass(frozen=True)
class Source:
    """A requirement for pip, or a wheel that must be in the repository."""

    requirement: str = ""
    wheel: Path | None = None


def source(kit: str) -> Source:
    """The source that `--kit` names; by default what this kit was installed from, as pip recorded
    it.

    Raises:
        UsageError: the wheel was not found, or CI cannot install from this kit's source.
    """
    if not kit:
        return installed_from(_noted())
    if kit.endswith(".whl") and "://" not in kit:
        wheel = Path(kit).expanduser()
        if not wheel.is_file():
            raise UsageError(f"--kit {kit}: no such file", _HINT)
        return Source(wheel=wheel.resolve())
    if not kit.isprintable() or Path(kit).is_dir():
        raise UsageError(f"--kit {kit!r} is neither a wheel nor a requirement for pip", _HINT)
    return Source(kit)


def installed_from(noted: Mapping[str, Any] | None) -> Source:
    """The source in direct_url.json (PEP 610), which a package from an index does not have.

    Raises:
        UsageError: it was installed from a directory, or from a wheel that no longer exists.
    """
    if noted is None:
        return Source(f"{PACKAGE}=={__version__}")
    url = str(noted.get("url", ""))
    parts = urlsplit(url)
    if parts.scheme == "file":
        wheel = Path(unquote(parts.path))
        if wheel.suffix == ".whl" and wheel.is_file():
            return Source(wheel=wheel)
        raise UsageError(
            f"this kit was installed from {wheel}, which CI's machines do not have", _HINT
        )
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if version := noted.get("vcs_info"):
        return Source(f"{PACKAGE} @ {version['vcs']}+{bare}@{version['commit_id']}")
    return Source(f"{PACKAGE} @ {bare}")


def _noted() -> Mapping[str, Any] | None:
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        raise UsageError(
            "this kit was not installed, so CI cannot install it in the same way", _HINT
        ) from None
    noted: Mapping[str, Any] | None = json.loads(text) if text else None
    return noted


LONGEST_STEM = 28
"""Maximum characters of a cluster's name before the CI job's number; action.yml has the same
limit."""
ACTION = Path(".github", "actions", "cluster-kit")
GITLAB = Path(".gitlab")
_TOGETHER = "them with what the manifest names (program, data, requirements)"


def ci_files(system: str, name: str, workspace: Workspace, kit: Source) -> Addition:
    """The files with which this CI runs the cluster `name`; they go into the repository's root.

    Raises:
        UsageError: one of the files exists with other content, or CI would misread the folder.
    """
    return SYSTEMS[system](name, workspace.root.resolve(), kit)


def repository(folder: Path) -> Path:
    """The root of the git repository that the folder is in; the folder itself without one."""
    above = (path for path in (folder, *folder.parents) if (path / ".git").exists())
    return next(above, folder)


def _github(name: str, folder: Path, kit: Source) -> Addition:
    """A workflow and the kit's action in the same repository, so that no other repository is
    needed."""
    root = repository(folder)
    workflow = root / ".github" / "workflows" / f"cluster-{name}.yml"
    text = _rendered("github", name, folder, root, kit, ACTION)
    files: dict[Path, str | bytes] = {workflow: text}
    about = {workflow: "the workflow: runs the cluster on each push"}
    action = root / ACTION / "action.yml"
    content = (paths.FILES / "action.yml").read_bytes()
    _add(action, content, "what the workflow does, step by step", files, about)
    _add_wheel(root / ACTION, kit, files, about)
    return Addition(files, about, (f"commit {_TOGETHER}, and push: the workflow runs",))


def _gitlab(name: str, folder: Path, kit: Source) -> Addition:
    """A job in its own file, and a .gitlab-ci.yml that includes it if there is none."""
    root = repository(folder)
    job, main = root / GITLAB / f"cluster-{name}.yml", root / ".gitlab-ci.yml"
    local = job.relative_to(root).as_posix()
    files: dict[Path, str | bytes] = {job: _rendered("gitlab", name, folder, root, kit, GITLAB)}
    about = {job: "the job: runs the cluster in each pipeline"}
    lines = [f"commit {_TOGETHER}, and push: the pipeline has the job"]
    if main.exists():
        lines.insert(0, f"write `- local: {local}` below `include:` in .gitlab-ci.yml")
    else:
        files[main] = f"include:\n  - local: {local}\n"
        about[main] = "the pipeline, which includes the job"
    _add_wheel(root / GITLAB, kit, files, about)
    return Addition(files, about, tuple(lines))


SYSTEMS: dict[str, Callable[[str, Path, Source], Addition]] = {"github": _github, "gitlab": _gitlab}


DEVCONTAINER = ".devcontainer"


def dev_container(engine: str, workspace: Workspace, kit: Source) -> Addition:
    """A dev container (https://containers.dev) in which the kit is installed.

    With the host's engine the project has the same path inside as outside, since tasks mount its
    folders.

    Args:
        engine: one of ENGINES.
    Raises:
        UsageError: one of the files exists with other content.
    """
    folder = workspace.root.resolve() / DEVCONTAINER
    name = near_name(workspace.root.resolve().name)
    requirement = f"{DEVCONTAINER}/{kit.wheel.name}" if kit.wheel else kit.requirement
    described = {
        "name": name,
        "build": {"dockerfile": "Dockerfile"},
        "hostRequirements": {"gpu": "optional"},
        **ENGINES[engine](name),
        "remoteUser": "dev",
        "onCreateCommand": f"python3 -m venv /opt/venv && pip install {shlex.quote(requirement)}",
    }
    image = templating.kit_template("new/devcontainer.Dockerfile.j2").render(
        own_engine=engine == "inside"
    )
    files: dict[Path, str | bytes] = {}
    about: dict[Path, str] = {}
    text = f"{json.dumps(described, indent=2)}\n"
    whose = "the host's engine" if engine == "host" else "an engine of its own"
    _add(folder / "devcontainer.json", text.encode(), f"a dev container with {whose}", files, about)
    _add(folder / "Dockerfile", image.encode(), "its image", files, about)
    _add_wheel(folder, kit, files, about)
    return Addition(files, about, ("open the folder in the dev container, e.g. with VS Code",))


def _of_the_host(_name: str) -> dict[str, object]:
    here = "${localWorkspaceFolder}"
    socket = "/var/run/docker.sock"
    return {
        "workspaceMount": f"source={here},target={here},type=bind",
        "workspaceFolder": here,
        "mounts": [f"source={socket},target={socket},type=bind"],
        # The socket's group has another number on each host.
        "postStartCommand": f"sudo groupadd --force --non-unique --gid $(stat -c %g {socket}) "
        "engine && sudo usermod --append --groups engine dev",
    }


def _inside(name: str) -> dict[str, object]:
    return {
        "runArgs": ["--privileged"],
        # Its images and containers cannot be in the container's own overlay file system.
        "mounts": [f"source={name}-engine,target=/var/lib/docker,type=volume"],
        "postStartCommand": "sudo /opt/venv/bin/cluster-kit engine && sudo usermod --append "
        "--groups docker dev",
    }


ENGINES: dict[str, Callable[[str], dict[str, object]]] = {"host": _of_the_host, "inside": _inside}
"""The engine that a dev container uses, and the keys that it needs in devcontainer.json."""


def _rendered(system: str, name: str, folder: Path, root: Path, kit: Source, wheels: Path) -> str:
    """The template's text; values are JSON, which is YAML.

    Raises:
        UsageError: CI would replace a part of the folder's path by the value of a variable.
    """
    requirement = (wheels / kit.wheel.name).as_posix() if kit.wheel else kit.requirement
    below = folder.relative_to(root).as_posix()
    if "$" in below:
        raise UsageError(
            f"the folder {below!r} has a `$` in its path, with which variables of CI begin",
            "rename it, or write the job yourself: `cluster-kit up NAME --json` is its command",
        )
    return templating.kit_template(f"ci/{system}.yml.j2").render(
        name=name,
        manifest=json.dumps(name),
        unique=json.dumps(f"{name[:LONGEST_STEM].rstrip('-')}-$CI_JOB_ID"),
        kit=json.dumps(requirement),
        folder=json.dumps(below),
        below=below != ".",
        runs=json.dumps("runs/" if below == "." else f"{below}/runs/"),
    )


def _add_wheel(
    folder: Path, kit: Source, files: dict[Path, str | bytes], about: dict[Path, str]
) -> None:
    if kit.wheel:
        _add(folder / kit.wheel.name, kit.wheel.read_bytes(), "the kit itself", files, about)


def _add(
    path: Path,
    content: bytes,
    description: str,
    files: dict[Path, str | bytes],
    about: dict[Path, str],
) -> None:
    """Add a file that clusters share, unless it already exists with the same content.

    Raises:
        UsageError: it exists with other content.
    """
    if path.is_file() and path.read_bytes() == content:
        return
    if path.exists():
        raise UsageError(
            f"{path} exists already, and is not what this command writes",
            "move it away first: the clusters that use it then use the new one",
        )
    files[path], about[path] = content, description
