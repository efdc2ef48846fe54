"""The verb render: writes or checks a cluster's file, for this host or for every host."""

from __future__ import annotations

import difflib
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, print_json, say, short
from cluster_kit.cli.manifest_options import WithBareOptions, requested
from cluster_kit.errors import HostError, UsageError
from cluster_kit.image.kit_image import image_present
from cluster_kit.manifest.command_line import masked_words
from cluster_kit.platforms.platform import edited, keep_edited, kept_sentence, platform_of
from cluster_kit.platforms.rendered_file import comment
from cluster_kit.platforms.variables import without_secrets
from cluster_kit.run.prepare import Prepared, build_of, prepare, refuse_unlocked
from cluster_kit.run.request import Request
from cluster_kit.util.paths import command
from cluster_kit.workspace import RENDERED, Workspace, here, ignore_in_git


@dataclass(frozen=True)
class Rendered:
    """A cluster's file as it exists (`old`, "" if it does not) and as `render` would write it."""

    prepared: Prepared
    file: Path
    old: str
    text: str
    portable: bool


@app.command(cls=WithBareOptions)
@requested
def render(
    request: Request,
    *,
    portable: Annotated[
        bool,
        typer.Option(
            "--portable", help="Write portable/<name>/compose.yaml, the same for every host."
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Fail if the file is stale, and name the cause: manifest, options, kit or host.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the file instead of writing it.")
    ] = False,
    diff: Annotated[
        Literal["no", "file", "running"],
        typer.Option(
            "--diff",
            metavar="[running]",
            show_choices=False,
            show_default=False,
            help="Show the difference from the existing file; with =running from the cluster "
            "that is up.",
        ),
    ] = "no",
    json_: manifest_options.Json = False,
) -> None:
    """Write compose/<name>/compose.yaml, which runs with `docker compose up` alone.

    With another `engine` it writes that platform's file, whose first lines say how to start it.
    """
    workspace = here()
    rendered = _rendered(request, workspace, portable=portable)
    for hint in rendered.prepared.hints:
        say(f"warning: {hint}")
    if dry_run:
        typer.echo(rendered.text, nl=False)
    elif diff == "running":
        typer.echo(_from_running(rendered, workspace), nl=False)
    elif diff == "file":
        typer.echo(_diff(rendered.old, rendered.text, short(rendered.file)), nl=False)
    elif check:
        _refuse_stale(rendered)
    else:
        _write(rendered, workspace)
    if not dry_run and diff == "no":
        _tell(rendered, request, as_json=json_)


def _rendered(request: Request, workspace: Workspace, *, portable: bool) -> Rendered:
    if portable:
        prepared = prepare(current_host(), request, workspace, None, portable=True)
        file = workspace.portable(prepared.cluster.name)
        build = build_of(prepared.cluster, workspace.root, file.parent)
        text = platform_of(prepared.cluster.engine).render_portable(prepared.cluster, build)
    else:
        prepared = prepare(current_host(), request, workspace, current_host().engine_or_none())
        starter = platform_of(prepared.cluster.engine)
        file = starter.file(workspace, prepared.cluster.name)
        text = starter.render(prepared.cluster)
    refuse_unlocked(prepared)
    old = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    return Rendered(prepared, file, old, text, portable)


def _write(rendered: Rendered, workspace: Workspace) -> None:
    """Write the file and what belongs to it; raises HostError if that is not possible."""
    try:
        _write_all(rendered, workspace)
    except OSError as error:
        raise HostError(
            f"{short(rendered.file)} cannot be written: {error.strerror}{_file(error)}",
            "print the file, and redirect it to where you may write: `--dry-run`",
        ) from error


def _file(error: OSError) -> str:
    return f": {error.filename}" if error.filename else ""  # a full disk has none


def _write_all(rendered: Rendered, workspace: Workspace) -> None:
    cluster = rendered.prepared.cluster
    if kept := keep_edited(rendered.file, rendered.text):
        say(f"warning: {kept_sentence(short(rendered.file), short(kept))}")
    if rendered.portable:
        platform_of(cluster.engine).write_portable(workspace, cluster, rendered.text)
    else:
        file = platform_of(cluster.engine).write(workspace, cluster, rendered.text)
        ignore_in_git(file.parent, RENDERED)


OF_IMAGE = {"manifest": "manifest or a file of its image"}
"""The sources of a file, by their names in its header, if the manifest names files of an image."""


def _refuse_stale(rendered: Rendered) -> None:
    """Raise UsageError, with the reason, if the file differs from what `render` would write."""
    cluster = rendered.prepared.cluster
    starter = platform_of(cluster.engine)
    stale_file = "" if rendered.portable else starter.stale_beside(rendered.file, cluster)
    if rendered.old == rendered.text and not stale_file:
        return
    hint = f"run `{_same_without_check()}`"
    if not rendered.old:
        raise UsageError(f"{short(rendered.file)} is missing", hint)
    sources = starter.changed(rendered.old, rendered.text)
    other_options = (
        "manifest" in sources and comment(f"`{cluster.origin.command}`") not in rendered.old
    )
    if other_options:  # those of `up`, which writes the file, too
        sources = tuple(source for source in sources if source != "manifest")
    if cluster.requirements or cluster.dockerfile:
        sources = tuple(OF_IMAGE.get(source, source) for source in sources)
    why = " and ".join(f"the {source}" for source in sources)
    verb = "have" if len(sources) > 1 else "has"
    reasons = ["it was written with other options"] if other_options else []
    reasons += [f"{why} {verb} changed"] if sources else []
    if edited(rendered.old, rendered.text):
        reasons.append("the file itself was edited")
    elif not reasons:  # `up --debug` is no key of the manifest
        reasons.append("it was written with other options")
    why = " and ".join(reasons)
    raise UsageError(
        f"{short(rendered.file)} is stale: {why if rendered.old != rendered.text else stale_file}",
        f"{hint}; `--diff` shows what differs",
    )


def _tell(rendered: Rendered, request: Request, *, as_json: bool) -> None:
    cluster = rendered.prepared.cluster
    if as_json:
        tasks = {task.name: cluster.fixed_ip(task) for task in cluster.tasks}
        print_json({"file": str(rendered.file), "subnet": str(cluster.subnet), "tasks": tasks})
        return
    platform = platform_of(cluster.engine)
    say(f"{short(rendered.file)}: {len(cluster.tasks)} tasks on {platform.place(cluster)}")
    if not platform.needs_image(cluster):
        return
    if (
        not rendered.portable
        and cluster.image_is_built
        and not image_present(current_host(), cluster.image)
    ):
        build = command("image")
        if cluster.requirements or cluster.tensorflow or cluster.dockerfile:
            build = f"cluster-kit image build {request.manifest}"
        local = platform.local_name(rendered.prepared.manifest.manifest, cluster.image)
        next_step = platform.after_build(cluster, local, short(rendered.file))
        if local != cluster.image and image_present(current_host(), local):
            say(f"  its image is built, but not pushed from here: {next_step}")
        else:
            say(f"  its image is not built yet: `{build}`, then {next_step}")


def _same_without_check() -> str:
    """This command line without `--check`, which writes the checked file; secrets in it are
    masked."""
    words = masked_words([word for word in sys.argv[1:] if word != "--check"])
    return shlex.join(["cluster-kit", *words])


def _from_running(rendered: Rendered, workspace: Workspace) -> str:
    """The difference from the file of the run that is up; neither side has values of secrets.

    Raises:
        UsageError: no cluster of this name is up, or `up` did not start it.
    """
    from cluster_kit.run.find import reach  # these two import the modules that judge a run
    from cluster_kit.run.run_directory import run_of

    cluster = rendered.prepared.cluster
    name = cluster.name
    if rendered.portable:
        raise UsageError("--diff=running with --portable", "compare without --portable")
    containers = reach(current_host(), name, workspace).containers(name)
    if not containers:
        raise UsageError(f"no cluster {name} is up", f"`cluster-kit up {name}` starts it")
    file = run_of(containers).path / rendered.file.name
    try:
        old = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the file of the cluster {name} cannot be read: {error}",
            "compare with the file of the manifest: `--diff`",
        ) from error
    new = platform_of(cluster.engine).render(without_secrets(cluster))
    return _diff(old, new, short(file))


def _diff(old: str, new: str, name: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (new)"
    )
    return "".join(lines)
