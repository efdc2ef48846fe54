"""What Tab proposes in a shell: manifests, clusters, tasks and runs.

A shell asks at each Tab, in the middle of a line: an answer comes soon, prints nothing else, and is
empty if anything fails.
"""

from __future__ import annotations

import contextlib
import io
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cluster_kit.cli.app import current_host
from cluster_kit.workspace import Workspace, here

if TYPE_CHECKING:
    from cluster_kit.host import Connect
    from cluster_kit.platforms.engine import ContainerSummary

WITHIN_S = 2.0
"""An engine that has not answered by then is not waited for."""
Propose = Callable[[Any, str], list[str]]
"""From click's context and the beginning of a word to whole words; typer knows both by name."""


def _quietly(words: Callable[[Any], Iterable[str]]) -> Propose:
    """A function that returns those of the words that begin as given, [] if it fails."""

    def propose(ctx: Any, incomplete: str) -> list[str]:
        nowhere = io.StringIO()
        try:
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                return sorted({word for word in words(ctx) if word.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - it would be printed into the line that is being typed
            return []

    return propose


@_quietly
def manifests(_ctx: Any) -> Iterable[str]:
    """Names of manifests: this directory's, and the kit's own."""
    from cluster_kit.manifest.load import names  # each Tab imports only what it needs
    from cluster_kit.util.paths import MANIFESTS

    return names(here().manifests, MANIFESTS)


@_quietly
def clusters(_ctx: Any) -> Iterable[str]:
    """Names of clusters that are up."""
    containers, _ = _up(current_host().connect, here())
    return (one.cluster for one in containers)


@_quietly
def tasks(ctx: Any) -> Iterable[str]:
    """Names of the tasks of the cluster that the line names, else of this directory's, else all."""
    containers, own = _up(current_host().connect, here())
    named = ctx.params.get("name")
    meant = {named} if named else set(own) or {one.cluster for one in containers}
    return (one.name for one in containers if one.cluster in meant)


@_quietly
def runs(_ctx: Any) -> Iterable[str]:
    """Names of runs, `quickstart/20261122-101500`, and of the clusters whose they are."""
    from cluster_kit.run.history import runs_of

    found = runs_of(here())
    return [*(run.name for run in found), *(run.cluster for run in found)]


def _up(connect: Connect, workspace: Workspace) -> tuple[Sequence[ContainerSummary], Sequence[str]]:
    """The engine's containers, and the clusters whose runs lie in this workspace.

    Raises:
        TimeoutError: the engine does not answer soon.
        KitError: it does not answer at all.
    """
    from cluster_kit.run.find import of_workspace

    answers: queue.SimpleQueue[tuple[Sequence[ContainerSummary], Sequence[str]] | Exception]
    answers = queue.SimpleQueue()

    def ask() -> None:
        try:
            engine = connect()
            with contextlib.closing(engine):
                found = engine.glance()
                names = {one.cluster for one in found}
                answers.put((found, of_workspace(engine, workspace, names)))
        except Exception as error:  # noqa: BLE001 - raised below
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=WITHIN_S)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, Exception):
        raise answer
    return answer
