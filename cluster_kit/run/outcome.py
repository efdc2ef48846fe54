"""outcome.json as a value: every fact of a run that has ended."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Container
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from cluster_kit.run.notes import notes_of
from cluster_kit.run.verdict import Verdict, out_of_memory
from cluster_kit.workspace import RunDirectory, write_atomically


@dataclass(frozen=True)
class TaskOutcome:
    """What became of one task.

    `gpu` are the ids that the engine reserved, `gpu_seen` what TensorFlow showed (None where it was
    not asked); `rx_bytes` and `tx_bytes` what its container received and sent, None where it did
    not count.
    """

    name: str
    role: str
    index: int
    ip: str
    gpu: list[str]
    gpu_seen: list[str] | None
    exit_code: int | None
    restarts: int
    oom: bool
    rx_bytes: Any
    tx_bytes: Any


@dataclass(frozen=True)
class Outcome:
    """The verdict on a run, and what else there is to know. Times in seconds.

    `blame` names a task, None where none is; `last_words` is what that task said at its end beside
    the message; `cure` is "" where none is known; `run` is the path of the run's directory.
    """

    cluster: str
    success: bool
    exit_code: int
    reason: str
    blame: str | None
    message: str
    last_words: str
    notes: list[str]
    tasks: list[TaskOutcome]
    timings_s: dict[str, float]
    metrics: dict[str, Any]
    cure: str
    run: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, run: RunDirectory) -> None:
        """Raises OSError where the run's directory cannot be written."""
        write_atomically(run.outcome, json.dumps(self.as_json(), indent=2) + "\n")


def outcome_of(
    cluster: Cluster,
    verdict: Verdict,
    seen: RunState,
    containers: Sequence[Container],
    run: RunDirectory,
    *,
    last_words: str = "",
    cure: str = "",
) -> Outcome:
    """The outcome of a run, so far without timings.

    Args:
        containers: as they were before they were stopped.
    """
    by_name = {container.name: container for container in containers}
    return Outcome(
        cluster=cluster.name,
        success=verdict.success,
        exit_code=verdict.exit_code,
        reason=verdict.reason,
        blame=verdict.blame or None,
        message=verdict.message,
        last_words=last_words,
        notes=notes_of(cluster, seen),
        tasks=[_task(task.name, seen, by_name.get(task.name)) for task in cluster.tasks],
        timings_s={},
        metrics=metrics(seen),
        cure=cure,
        run=str(run.path),
    )


def _task(name: str, seen: RunState, container: Container | None) -> TaskOutcome:
    view, end = seen.tasks[name], seen.ended_for_good(name)
    counted: Mapping[str, Any] = end.fields if end else {}
    return TaskOutcome(
        name=name,
        role=view.role,
        index=int(name.rpartition("-")[2]),
        ip=container.ip if container else view.ip,
        gpu=list(container.gpus if container else view.gpus),
        gpu_seen=seen.devices(name),
        exit_code=_exit_code(view, seen.left_failed(name), container),
        restarts=view.restarts,
        oom=out_of_memory(seen, name) or bool(container and container.oom),
        rx_bytes=counted.get("rx_bytes"),
        tx_bytes=counted.get("tx_bytes"),
    )


def _exit_code(
    view: TaskView, failures: Sequence[Entry], container: Container | None
) -> int | None:
    """The engine knows none of a failed task that it has just started again; the task's last one
    says more."""
    code = container.exit_code if container else view.exit_code
    known = failures[-1].fields.get("exit_code") if failures and code is None else code
    return known if isinstance(known, int) else None


def metrics(seen: RunState) -> dict[str, Any]:
    """Final figures: what the programs reported, and the last of each where they did not."""
    newest = seen.metrics()
    for name in seen.sidecars:
        scored = seen.last(name, "evaluation")
        if scored is not None and "accuracy" in scored.fields:
            newest.setdefault("validation_accuracy", scored.fields["accuracy"])
    return {name: _as_json(value) for name, value in newest.items()}


def _as_json(value: object) -> object:
    """A training that diverges reports NaN, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
