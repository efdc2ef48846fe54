"""The verb bug-report: one archive to send to whoever is to help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli import completion
from cluster_kit.cli.app import app, current_host, say, short
from cluster_kit.errors import HostError, UsageError
from cluster_kit.run.bug_report import archive
from cluster_kit.run.history import run_named
from cluster_kit.workspace import here


@app.command("bug-report")
def bug_report(
    run: Annotated[
        str,
        typer.Argument(
            help="A run's directory, or a cluster's name for its newest run.",
            autocompletion=completion.runs,
        ),
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file: FILE.tar.gz or FILE.tgz.")
    ] = None,
) -> None:
    """Write one archive for a bug report: versions, doctor, manifest, logs, events, debug log."""
    found = run_named(run, here())
    default = Path(f"bug-report-{found.path.parent.name}-{found.path.name}.tar.gz")
    path = output or default
    try:
        made = archive(current_host(), found, path)
    except FileExistsError:
        raise UsageError(f"{path} exists already", "name another: --output FILE.tar.gz") from None
    except OSError as error:
        raise HostError(
            f"{path} cannot be written: {error.strerror}",
            "name a file that you may write: --output FILE.tar.gz",
        ) from error
    say(f"written: {short(path.absolute())}, {len(made.names)} files")
    if made.left_out:
        say(
            f"left out: {len(made.left_out)} files that tasks wrote themselves, below output/: the "
            "values of this run's secrets are known only while its containers are there (`--keep`)"
        )
    say("check it before you send it: its logs contain what your program printed")
