"""The verb serve: clusters and runs as live pages."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli.app import app, current_host, say
from cluster_kit.errors import KitError
from cluster_kit.manifest.load import find
from cluster_kit.platforms.platform import load
from cluster_kit.resolved import LOOPBACK
from cluster_kit.run.find import cluster_name
from cluster_kit.run.request import Request
from cluster_kit.workspace import Workspace, here


@app.command()
def serve(
    name: Annotated[
        str | None,
        typer.Argument(help="A cluster's name or its manifest's path. Default: all clusters."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port (0: choose a free one).")
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address to listen on; with another one than 127.0.0.1, "
            "other machines that have the token can connect.",
        ),
    ] = LOOPBACK,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="File with the token, created if it does not exist: so the token stays "
            "the same, which Prometheus needs for /metrics.",
        ),
    ] = None,
    allow_control: Annotated[
        bool, typer.Option("--allow-control", help="Show buttons that stop, kill and freeze tasks.")
    ] = False,
) -> None:
    """Show clusters and runs as live pages in a browser, until Ctrl-C."""
    engine = current_host().engine_or_none()
    up = engine.clusters() if engine else []
    cluster = cluster_name(name, here(), up) if name is not None else ""
    with live(
        cluster, port=port, host=host, token_file=token_file, allow_control=allow_control
    ) as url:
        say(f"live page: {url}  (Ctrl-C ends it)")
        _wait()
    say("the live page has ended")


def _wait() -> None:
    """Return after Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()


@contextlib.contextmanager
def live(
    cluster: str,
    *,
    port: int = 0,
    host: str = "",
    token_file: Path | None = None,
    allow_control: bool = False,
) -> Iterator[str]:
    """Serve the pages during the block; its value is the URL of a cluster's page, or of the page of
    all."""
    # Imported here, so that other commands start faster.
    from cluster_kit.serve.site import Site
    from cluster_kit.serve.start import serving, token_in

    site = Site(here(), current_host(), allow_control)
    token = token_in(token_file) if token_file else ""
    with serving(site, cluster, address=host or LOOPBACK, port=port, token=token) as url:
        yield url


def cluster_of(request: Request, workspace: Workspace) -> str:
    """The name of the cluster that `up` will run; "" if the request is invalid anyway."""
    if override := request.overrides.get("name"):
        return str(override)
    try:
        return load(find(request.manifest, workspace.manifests)).manifest.name
    except KitError:
        return ""
