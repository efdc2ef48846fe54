"""How a run ended, and which task is to blame. Pure: what was observed in, verdict out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Container, Event
from cluster_kit.errors import DeadlinePassed, HostError, Interrupted, TrainingFailed
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import Observed, TaskView
from cluster_kit.observe.tracebacks import on_host
from cluster_kit.roles import ROLES

CODES = {
    "start-deadline": DeadlinePassed.exit_code,
    "job-deadline": DeadlinePassed.exit_code,
    "evaluator-grace": DeadlinePassed.exit_code,
    "gpu-missing": HostError.exit_code,
    "cannot-shape": HostError.exit_code,
}
"""The kit's exit code for the reasons that supervisors give; any other is a failed training."""
STOP_CODES = (0, 143)
SURVIVED_S = 30.0
"""A chief falls over a lost ps in 2 s, all-reduce workers over each other in 9 s."""
LONGEST = 200
"""Characters of a failed task's last words in a note."""
OUT_OF_MEMORY = " (out of memory: raise its `memory` limit)"


@dataclass(frozen=True)
class Verdict:
    """`exit_code` is the kit's own (see errors); `blame` names a task, "" where none is."""

    success: bool
    exit_code: int
    reason: str
    blame: str = ""
    message: str = ""


def judge(cluster: Cluster, seen: Observed, how: str) -> Verdict:
    """The verdict on a run.

    Args:
        how: "ended" (the leader ended for good), "interrupted" or "overdue" (the kit's own bound
            on the whole run passed).
    """
    leader = cluster.leader.name
    if how == "interrupted":
        return Verdict(False, Interrupted.exit_code, "interrupted", "", "interrupted by a signal")
    end = seen.ended_for_good(leader)
    if how == "overdue":
        message = f"the run went past its deadlines ({cluster.deadlines.job:g} s for the job)"
        return Verdict(False, DeadlinePassed.exit_code, "job-deadline", leader, message)
    code = seen.tasks[leader].exit_code
    if code == 0:
        return _judge_evaluator(cluster, seen)
    reason = str(end.fields.get("reason", "failed")) if end else "failed"
    message = str(end.fields.get("message", "")) if end else ""
    if reason in CODES:
        blame = _first_named(end, leader)
        if reason == "start-deadline" and _out_of_memory(seen, blame):
            message += f"; {blame} ran out of memory: raise its `memory` limit"
        return Verdict(False, CODES[reason], reason, blame, message)
    blame = _first_named(end, "")
    if not blame:
        blame, blamed_code = _first_failure(seen, leader, code)
        if blame != leader or not message:
            meaning = _meaning(seen, blame, blamed_code)
            message = f"{blame} ended with exit code {blamed_code}{meaning}"
            return Verdict(False, TrainingFailed.exit_code, reason, blame, message)
    if _out_of_memory(seen, blame):
        message += OUT_OF_MEMORY
    return Verdict(False, TrainingFailed.exit_code, reason, blame, message)


def _judge_evaluator(cluster: Cluster, seen: Observed) -> Verdict:
    """The training went well; a promised evaluation must have, too."""
    for task in cluster.sidecars:
        end, code = seen.ended_for_good(task.name), seen.tasks[task.name].exit_code
        if code in STOP_CODES:
            continue
        reason = str(end.fields.get("reason", "failed")) if end else "failed"
        message = str(end.fields.get("message", "")) if end else ""
        if code is None:
            message = message or f"{task.name} was still running after its grace"
            return Verdict(False, DeadlinePassed.exit_code, "evaluator-grace", task.name, message)
        if reason in CODES:
            return Verdict(False, CODES[reason], reason, task.name, message)
        message = message or f"{task.name} ended with exit code {code}"
        if _out_of_memory(seen, task.name):
            message += OUT_OF_MEMORY
        return Verdict(False, TrainingFailed.exit_code, reason, task.name, message)
    return Verdict(True, 0, "finished")


def _first_named(end: Entry | None, leader: str) -> str:
    """The first task that a supervisor's last word names."""
    named = (end.fields.get("tasks") if end else None) or []
    return str(named[0]) if named else leader


def _first_failure(seen: Observed, leader: str, code: int | None) -> tuple[str, int | None]:
    """The first task that failed in the leader's last attempt: later ones fell over it.

    The evaluator has no part in the training and so none in the leader's failure.
    """
    attempt = seen.last(leader, "start")
    since = attempt.time if attempt else 0.0
    failure = seen.last(leader, "failure")
    until = failure.time if failure and failure.time >= since else math.inf
    deaths = [event for event in seen.events if event.action == "die" and event.time >= since]
    training = {task.name for task in seen.tasks.values() if not ROLES[task.role].sidecar}
    failed = [
        event
        for event in deaths
        if event.task in training
        and (event.task == leader or event.time <= until)
        and event.exit_code not in STOP_CODES
        and not _was_survived(seen, leader, event)
    ]
    if not failed:
        return leader, code
    first = min(failed, key=lambda event: event.time)
    return first.task, first.exit_code


def _was_survived(seen: Observed, leader: str, death: Event) -> bool:
    """Whether the task came back and the training went on: then it did not end over this."""
    came_back = any(
        event.task == death.task and event.action == "start" and event.time > death.time
        for event in seen.events
    )
    ends = [e.time for e in seen.events if (e.task, e.action) == (leader, "die")]
    return came_back and bool(ends) and ends[-1] - death.time > SURVIVED_S


def _meaning(seen: Observed, task: str, code: int | None) -> str:
    if _out_of_memory(seen, task):
        return OUT_OF_MEMORY
    if code is not None and code > 128:
        return f" (killed by signal {code - 128})"
    return ""


def _out_of_memory(seen: Observed, task: str) -> bool:
    return any(event.action == "oom" and event.task == task for event in seen.events)


def outcome(
    cluster: Cluster,
    verdict: Verdict,
    seen: Observed,
    containers: list[Container],
    timings: dict[str, float],
    last_words: str,
) -> dict[str, Any]:
    """outcome.json: every fact of the run. Times in seconds."""
    found = {container.name: container for container in containers}
    return {
        "cluster": cluster.name,
        "success": verdict.success,
        "exit_code": verdict.exit_code,
        "reason": verdict.reason,
        "blame": verdict.blame or None,
        "message": verdict.message,
        "last_words": last_words,
        "notes": _notes(cluster, seen),
        "tasks": [_task(task.name, seen, found.get(task.name)) for task in cluster.tasks],
        "timings_s": {name: round(value, 3) for name, value in timings.items()},
        "metrics": metrics(seen, cluster),
    }


def _notes(cluster: Cluster, seen: Observed) -> list[str]:
    """What went otherwise than somebody may count on, though nothing failed."""
    notes = []
    went_well = seen.tasks[cluster.leader.name].exit_code == 0
    for task in cluster.tasks:
        end, failures = seen.ended_for_good(task.name), seen.left_failed(task.name)
        if end is not None and end.fields.get("reason") == "cut-off":
            notes.append(f"{task.name}: {end.fields.get('message', '')}")
        elif failures and went_well and not ROLES[task.role].sidecar:
            notes.append(f"{task.name}: {_left_out(failures, cluster)}")
    return notes


def _left_out(failures: Sequence[Entry], cluster: Cluster) -> str:
    """In one line."""
    count, last = len(failures), failures[-1].fields
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    first_line = str(last.get("message", "")).partition("\n")[0]
    words = on_host(first_line, cluster.mounts)
    if len(words) > LONGEST:
        words = f"{words[: LONGEST - 1]}…"
    told = f"failed {times} (exit code {last.get('exit_code')}), and the leader ended without it"
    return f"{told}; its last words: {words}" if words else told


def _task(name: str, seen: Observed, container: Container | None) -> dict[str, Any]:
    view = seen.tasks[name]
    return {
        "name": name,
        "role": view.role,
        "index": int(name.rpartition("-")[2]),
        "ip": container.ip if container else view.ip,
        "gpu": list(container.gpus) if container else list(view.gpus),
        "gpu_seen": seen.devices(name),
        "exit_code": _exit_code(view, seen.left_failed(name), container),
        "restarts": view.restarts,
        "oom": _out_of_memory(seen, name) or bool(container and container.oom),
        **_traffic(seen.ended_for_good(name)),
    }


def _exit_code(
    view: TaskView, failures: Sequence[Entry], container: Container | None
) -> int | None:
    """The engine knows none while it starts a failed task again; the task's last one says more."""
    code = container.exit_code if container else view.exit_code
    known = failures[-1].fields.get("exit_code") if failures and code is None else code
    return known if isinstance(known, int) else None


def _traffic(end: Entry | None) -> dict[str, Any]:
    """Bytes that the task's container received and sent, None where nobody counted."""
    fields = end.fields if end else {}
    return {name: fields.get(name) for name in ("rx_bytes", "tx_bytes")}


def metrics(seen: Observed, cluster: Cluster) -> dict[str, Any]:
    """Final figures: what the programs reported, and the last of each where they did not."""
    found = seen.metrics()
    for task in cluster.sidecars:
        scored = seen.last(task.name, "evaluation")
        if scored is not None and "accuracy" in scored.fields:
            found.setdefault("validation_accuracy", scored.fields["accuracy"])
    return {name: _as_json(value) for name, value in found.items()}


def _as_json(value: object) -> object:
    """A training that diverges reports NaN, which is no JSON."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
