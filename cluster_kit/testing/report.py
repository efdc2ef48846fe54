"""What the report of a test that failed says of its clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.api import Outcome
from cluster_kit.run.keeping.record import outcome_from
from cluster_kit.util.elapsed import duration
from cluster_kit.workspace import RunDirectory


def text(root: Path) -> str:
    """A paragraph for each run below `root/runs`, oldest first; "" if there is none."""
    runs = [path for path in root.glob("runs/*/*") if path.is_dir() and not path.is_symlink()]
    runs.sort(key=lambda path: path.stat().st_mtime)
    return "\n\n".join("\n".join(_told(RunDirectory(run))) for run in runs)


def _told(run: RunDirectory) -> Iterator[str]:
    outcome = _outcome(run)
    if outcome is None:
        yield f"{run.path.parent.name}: without a verdict"
    else:
        yield _headline(outcome)
        yield from (f"  {line}" for line in outcome.message.splitlines())
        yield from (f"  | {line}" for line in outcome.last_words.splitlines())
        if outcome.cure:
            yield f"  \u2192 {outcome.cure}"
        yield from (f"  note: {note}" for note in outcome.notes)
    yield f"  everything is in {run.path}"


def _headline(outcome: Outcome) -> str:
    how = "success" if outcome.success else outcome.reason
    blame = f", blame {outcome.blame}" if outcome.blame else ""
    return f"{outcome.cluster}: {how} in {duration(outcome.timings_s.get('total', 0.0))}{blame}"


def _outcome(run: RunDirectory) -> Outcome | None:
    try:
        return outcome_from(json.loads(run.outcome.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
