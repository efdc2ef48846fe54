"""The verb tensorboard: the curves of runs, from the trainer image."""

from __future__ import annotations

import os
import threading
from typing import Annotated

import typer

from cluster_kit.cli import completion
from cluster_kit.cli.app import app, current_host, say, short
from cluster_kit.run.companions import EventFiles, name_of, serving
from cluster_kit.run.history import run_named
from cluster_kit.workspace import here


@app.command()
def tensorboard(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="A cluster's name for its newest run, or a run's directory; several are shown "
            "together. The newest run of all without one.",
            autocompletion=completion.runs,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1 (0: choose a free one)."),
    ] = 0,
) -> None:
    """Show runs in TensorBoard until Ctrl-C, also while they train; nothing has to be installed."""
    found = [run_named(run, here()) for run in runs or [""]]
    folders = {name_of(one): EventFiles.of(one.output) for one in found}
    user = f"{os.getuid()}:{os.getgid()}"
    with serving(current_host(), folders, port, user, say) as url:
        for one in found:
            say(f"showing {short(one.path)}")
        say(f"TensorBoard: {url}  (Ctrl-C ends it)")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            say("TensorBoard ended")
