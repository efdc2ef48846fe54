"""Notes on a run: tasks that were cut off or left out, although the run did not fail. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_kit.observe import lost_nodes, on_request, profiles, silences, stragglers
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.tracebacks import on_host
from cluster_kit.resolved import Cluster
from cluster_kit.run.judging.verdict import out_of_memory

CUT_OFF = "cut-off"
"""The reason of a worker that was stopped when its grace after the leader's end was over."""
NO_PART = "had no part in the training: it made no step before the others were done"
CAME_BACK = "ran out of memory (raise its `memory` limit), and was started again"
LEFT_OUT = "invalid, about tasks that the run does not have, or more than anybody needs"
MOST = 200
"""Notes of a run."""
LONGEST = 200
"""The most characters of a failed task's message in a note."""


def notes_of(cluster: Cluster, seen: RunState) -> list[str]:
    """What `all_notes` says, the first MOST; whatever tasks have written, it changes no verdict."""
    try:
        notes = all_notes(cluster, seen)
    except Exception as error:  # noqa: BLE001 a bug here must not cost the run its outcome
        return [f"what there is to note of this run cannot be told: {repr(error)[:LONGEST]}"]
    more = len(notes) - MOST
    return [*notes[:MOST], f"{more:,} more notes are left out"] if more > 0 else notes


def all_notes(cluster: Cluster, seen: RunState) -> list[str]:
    """One line for each silence, for each node that went down, for each restart and stop on
    request, for each cut between two tasks, for what training waited for, for each time in which a
    task was a straggler, and for each task that was cut off, failed while the leader ended without
    it, ran out of memory and came back, or never made a step.
    """
    notes = [_silence(entry, seen) for entry in silences.all_of(seen)]
    notes += lost_nodes.notes(seen)
    notes += map(silences.cut_words, silences.cuts(seen))
    notes += silences.waits(seen)
    notes += on_request.notes(seen)
    notes += profiles.notes(cluster.profile, seen)
    if seen.left_out:
        lines = "line" if seen.left_out == 1 else "lines"
        notes.append(f"{seen.left_out:,} {lines} of progress files left out: {LEFT_OUT}")
    lags = [lag for lag in stragglers.periods(seen.entries) if lag.task in seen.tasks]
    notes += map(stragglers.note, lags)
    succeeded = seen.tasks[seen.leader].exit_code == 0
    figures = seen.metrics()
    for task in cluster.tasks:
        if succeeded and figures.get(f"steps_of_{task.name}") == 0:
            notes.append(f"{task.name} {NO_PART}")
        end, failures = seen.end_entry(task.name), seen.final_failures(task.name)
        if end is not None and end.fields.get("reason") == CUT_OFF:
            notes.append(f"{task.name}: {end.fields.get('message', '')}")
        elif failures and succeeded and task.name not in seen.evaluators:
            notes.append(f"{task.name}: {_left_out(failures, cluster)}")
        elif succeeded and out_of_memory(seen, task.name):
            notes.append(f"{task.name} {CAME_BACK}")
    return notes


def _silence(entry: Entry, seen: RunState) -> str:
    """A silence, and what came after it."""
    task = str(entry.fields["of"])
    later = [e for e in seen.events if e.task == task and e.time > entry.time]
    if any(event.action == "start" for event in later):
        return f"{silences.words(entry)}; it was started again"
    return silences.words(entry)


def _left_out(failures: Sequence[Entry], cluster: Cluster) -> str:
    count, last = len(failures), failures[-1].fields
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    first_line = str(last.get("message", "")).partition("\n")[0]
    message = on_host(first_line, cluster.all_mounts)
    if len(message) > LONGEST:
        message = f"{message[: LONGEST - 1]}…"
    note = f"failed {times} (exit code {last.get('exit_code')}), and the leader ended without it"
    return f"{note}; its last words: {message}" if message else note
