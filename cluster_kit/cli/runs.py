"""Verbs for past runs: list them, compare two, remove old ones."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.cells import cell_len, set_cell_size
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import Group, app, current_host, out, print_json, say, short
from cluster_kit.errors import HostError, UsageError
from cluster_kit.platforms.engine import Container
from cluster_kit.run.history import (
    STOPPED,
    Change,
    Run,
    difference,
    read_run,
    run_named,
    runs_of,
    size_of,
    to_prune,
    verdicts_of,
)
from cluster_kit.util.nearest import proposal
from cluster_kit.util.terminal import counted, duration, harmless, rounded
from cluster_kit.util.untrusted import let_in
from cluster_kit.workspace import here

runs = typer.Typer(cls=Group, help="Past runs: list, compare, prune.", invoke_without_command=True)
app.add_typer(runs, name="runs")

Cluster = Annotated[str, typer.Argument(help="Only the runs of this cluster.")]
JSON = "cluster-kit.runs.json"
LEAST = 12
"""Minimum number of columns for a verdict: `failed, bla…`."""


@runs.callback()
def every_run(context: typer.Context, json_: manifest_options.Json = False) -> None:
    """Past runs: list them, compare two, prune old ones. Without a verb, list all runs.

    Raises:
        UsageError: `--json` stands before a verb, which takes it itself or has none.
    """
    if context.invoked_subcommand is None:
        list_runs(context, json_=json_)
    elif context.invoked_subcommand == "list":  # `runs --json CLUSTER`
        context.meta[JSON] = json_
    elif json_:
        verb = f"`cluster-kit runs {context.invoked_subcommand}`"
        hint = f"write it after {verb}" if context.invoked_subcommand == "diff" else "leave it out"
        raise UsageError(f"--json comes before the verb of {verb}", hint)


@runs.command("list")
def list_runs(
    context: typer.Context, cluster: Cluster = "", json_: manifest_options.Json = False
) -> None:
    """List past runs, the newest first: when, how they ended, how long they took."""
    past_runs = _found(cluster)
    if json_ or context.meta.get(JSON):
        print_json([_facts(run) for run in past_runs])
        return
    if not past_runs:
        say(f"no run in {here().root / 'runs'} yet: start one with `cluster-kit up quickstart`")
        return
    up = {} if all(run.outcome for run in past_runs) else _up(past_runs)
    for line in _lines(past_runs, up, out.width if out.is_terminal else None):
        out.print(line, soft_wrap=True)


def _lines(past_runs: list[Run], up: Mapping[str, str], width: int | None) -> Iterator[Text]:
    """A heading and a line for each run: its name and time, and as much of the verdict as fits, or
    the whole verdict if the width is unlimited, as in a pipe. The program and its arguments follow
    if runs of the cluster differ in them.

    The state of a run without a verdict is never cut, since it ends with the command to continue.
    """
    rows = [("run", "time", "", "verdict", "bold")]
    verdicts = verdicts_of(past_runs)
    for run in past_runs:
        seconds = run.timings.get("total")
        took = duration(seconds) if isinstance(seconds, int | float) else "-"
        style = "green" if run.outcome.get("success") else "red"
        if not run.outcome or run.outcome.get("reason") in STOPPED:
            style = ""
        verdict = harmless(verdicts[run.name] or up.get(run.name, "no verdict"))
        rows.append((run.name, took, harmless(run.figure), verdict, style))
    names, times, figures = (max(cell_len(row[at]) for row in rows) for at in range(3))
    states = set(up.values())
    for name, took, shown, verdict, style in rows:
        columns = (
            f"{set_cell_size(name, names)}  {took:>{times}}  {set_cell_size(shown, figures)}  "
        )
        end = Text(verdict, style)
        if width is not None and verdict not in states:
            end.truncate(max(LEAST, width - cell_len(columns)), overflow="ellipsis")
        yield Text.assemble((columns, "bold" if style == "bold" else ""), end)


@runs.command("diff")
def diff(
    first: Annotated[
        str,
        typer.Argument(
            help="A run's directory, CLUSTER/RUN, or a cluster's name for its newest run.",
            autocompletion=manifest_options.runs,
        ),
    ],
    second: Annotated[
        str,
        typer.Argument(
            help="A run's directory, CLUSTER/RUN, or a cluster's name for its newest run.",
            autocompletion=manifest_options.runs,
        ),
    ],
    json_: manifest_options.Json = False,
) -> None:
    """Show how a run differs from another: program, manifest, cluster, metrics, timings."""
    before, after = (read_run(run_named(name, here())) for name in (first, second))
    differences = difference(before, after)
    if json_:
        changes = [{**change.__dict__, "ratio": change.ratio} for change in differences.changes]
        texts = {"manifest": list(differences.manifest), "program": list(differences.program)}
        print_json({"changes": changes, **texts})
        return
    if not differences.changes and not differences.manifest and not differences.program:
        same = before.directory.path == after.directory.path
        say(f"they do not differ{f': both are {before.name}' if same else ''}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "", "first", "second", "ratio"):
        table.add_column(heading, overflow="fold")
    for change in differences.changes:
        table.add_row(*(Text(harmless(word)) for word in _words(change)))
    out.print(table)
    for line in (*differences.manifest, *differences.program):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out.print(Text(harmless(line), style), soft_wrap=True)


@runs.command("prune")
def prune(
    cluster: Cluster = "",
    keep: Annotated[
        int, typer.Option("--keep", min=1, help="Number of runs to keep per cluster.")
    ] = 10,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
) -> None:
    """Remove old runs with all their files; the newest runs of each cluster stay."""
    removable = to_prune(_found(cluster), keep, _used())
    freed, not_removed = 0, dict[str, str]()
    for run in removable:
        size = size_of(run)
        say(f"{'would remove' if dry else 'removing'} {short(run.directory.path)}")
        try:
            if not dry:
                _remove(run.directory.path)
            freed += size
        except OSError as error:
            not_removed[str(run.directory.path)] = error.strerror or str(error)
    word = "would be" if dry else "are"
    count = len(removable) - len(not_removed)
    runs_removed = counted(count, "run")
    say(f"{runs_removed}, {decimal(freed)} {word} free" if removable else "nothing to remove")
    if not_removed:
        named = "; ".join(f"{path} ({reason})" for path, reason in not_removed.items())
        raise HostError(
            f"not all of these runs can be removed: {named}",
            "only root, or the user that the tasks ran as, can remove their files: "
            f"`sudo rm -rf {shlex.join(not_removed)}`",
        )


def _remove(folder: Path) -> None:
    """Remove a directory and its contents, even if a program has removed the owner's permissions on
    directories in it; raises OSError.

    Another user's run keeps all its files, if some of them cannot be removed.
    """
    for inner in [folder, *folder.glob("*/"), *folder.glob("output/*/")]:
        writable = inner.is_symlink() or os.access(inner, os.W_OK | os.X_OK)
        if not writable and inner.stat().st_uid != os.geteuid():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(inner))
    try:
        _remove_open(folder)
    except OSError:
        let_in(folder)
        _remove_open(folder)


def _remove_open(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except RecursionError:  # a program can nest thousands of directories
        done = current_host().processes.run(["rm", "-rf", "--", str(folder)])
        if not done.ok:
            raise OSError(errno.EIO, done.tail(1), str(folder)) from None


def _found(cluster: str) -> list[Run]:
    """The runs of a cluster, or all runs; raises UsageError if the named cluster has none."""
    past_runs = runs_of(here(), cluster)
    if cluster and not past_runs:
        known = sorted({run.cluster for run in runs_of(here())})
        raise UsageError(f"no run of {cluster} in runs/", proposal(cluster, known))
    return past_runs


def _used() -> set[Path] | None:
    """Directories of runs whose containers still exist; None if no engine answers."""

    if (engine := current_host().engine_or_none()) is None:
        return None
    containers = [container for name in engine.clusters() for container in engine.containers(name)]
    return {Path(container.output).parent.resolve() for container in containers if container.output}


def _up(past_runs: list[Run]) -> dict[str, str]:
    """The state of runs whose containers still exist, by the run's name; {} without an engine."""
    from cluster_kit.run.cluster_lock import is_claimed

    if (engine := current_host().engine_or_none()) is None:
        return {}
    clusters = {
        Path(container.output).parent.resolve(): container.cluster
        for container in engine.glance()
        if container.output
    }
    states = {}
    for run in past_runs:
        if cluster := clusters.get(run.directory.path.resolve()):
            is_watched = is_claimed(current_host(), engine, cluster)
            states[run.name] = "up" if is_watched else _unwatched(engine.containers(cluster))
    return states


def _unwatched(containers: Sequence[Container]) -> str:
    """The state of a run whose containers exist, and the command that continues or concludes it."""
    from cluster_kit.run.lifecycle import has_ended, is_stopped

    cluster = next((one.cluster for one in containers), "")
    if is_stopped(containers):
        return f"stopped: `cluster-kit start {cluster}` continues it"
    word = "ended, not judged" if has_ended(containers) else "up, unwatched"
    return f"{word}: `cluster-kit attach {cluster}`"


def _words(change: Change) -> tuple[str, ...]:
    def shown(value: Any) -> str:
        return "-" if value is None else rounded(value) if isinstance(value, float) else str(value)

    ratio = "" if change.ratio is None or change.what == "cluster" else f"{change.ratio:.2f}"
    name = change.name if change.what == "program" else change.name.replace("_", " ")
    return (
        change.what,
        "" if name == change.what else name,
        shown(change.before),
        shown(change.after),
        ratio,
    )


def _facts(run: Run) -> dict[str, Any]:
    return {
        "run": str(run.directory.path),
        "cluster": run.cluster,
        "args": run.args,
        "began": run.began.isoformat() if run.began else None,
        "newest": run.newest,
        "verdict": run.verdict or None,
        "success": run.outcome.get("success"),
        "seconds": run.timings.get("total"),
        "metrics": dict(run.metrics),
    }
