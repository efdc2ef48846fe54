"""What went otherwise than somebody may count on, though nothing failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_kit.cluster import Cluster
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.tracebacks import on_host

CUT_OFF = "cut-off"
"""The reason of a worker that was stopped since its grace after the leader's end was over."""
LONGEST = 200
"""Characters of a failed task's last words in a note."""


def notes_of(cluster: Cluster, seen: RunState) -> list[str]:
    """One line for each task that was cut off, or that the leader ended without."""
    notes = []
    went_well = seen.tasks[seen.leader].exit_code == 0
    for task in cluster.tasks:
        end, failures = seen.ended_for_good(task.name), seen.left_failed(task.name)
        if end is not None and end.fields.get("reason") == CUT_OFF:
            notes.append(f"{task.name}: {end.fields.get('message', '')}")
        elif failures and went_well and task.name not in seen.sidecars:
            notes.append(f"{task.name}: {_left_out(failures, cluster)}")
    return notes


def _left_out(failures: Sequence[Entry], cluster: Cluster) -> str:
    count, last = len(failures), failures[-1].fields
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    first_line = str(last.get("message", "")).partition("\n")[0]
    words = on_host(first_line, cluster.mounts)
    if len(words) > LONGEST:
        words = f"{words[: LONGEST - 1]}…"
    note = f"failed {times} (exit code {last.get('exit_code')}), and the leader ended without it"
    return f"{note}; its last words: {words}" if words else note
