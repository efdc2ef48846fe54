"""Runs the comparison: one cluster after another, launched as any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cluster_kit.compare.measure import Result, result
from cluster_kit.compare.variants import Run
from cluster_kit.errors import Interrupted, KitError
from cluster_kit.observe.progress import ProgressReader
from cluster_kit.run.launch import launch
from cluster_kit.run.request import Request
from cluster_kit.show.view import View
from cluster_kit.util import signals
from cluster_kit.workspace import RunDirectory, Workspace, write_atomically

BASE = Path(__file__).with_name("base.toml")
NewView = Callable[[], View]


def run_all(
    runs: Sequence[Run], workspace: Workspace, new_view: NewView, accuracy: float
) -> Iterator[Result]:
    """Yields the result of each run, in turn; a failed run yields a Result, too.

    Raises:
        Interrupted: by Ctrl-C; the running cluster was removed.
    """
    for run in runs:
        yield Result(run) if run.skipped else _run_one(run, workspace, new_view(), accuracy)


def _run_one(run: Run, workspace: Workspace, view: View, accuracy: float) -> Result:
    request = Request(str(BASE), run.overrides)
    signals.interrupt_once()  # the end of the run before has ignored them
    try:
        outcome = launch(request, workspace, view, keep=False, resume=False)
    except KitError as error:
        return Result(run, failed=error.message)
    finally:
        view.close()
    if outcome.exit_code == Interrupted.exit_code:
        raise Interrupted("the comparison was interrupted", "what was measured so far is shown")
    entries = ProgressReader(RunDirectory(Path(outcome.run)).output).poll()
    return result(run, outcome, entries, accuracy)


def write_json(facts: dict[str, Any], file: Path) -> None:
    """Write facts to a file as JSON; raises OSError."""
    write_atomically(file, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
