"""The outcome of one task: an entry of outcome.json's `tasks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from cluster_kit.observe.usage import Use
from cluster_kit.platforms.engine import Container
from cluster_kit.run.judging.verdict import out_of_memory


@dataclass(frozen=True)
class TaskUsage:
    """What one task used while it ran: busy CPUs, bytes, bytes per second (received and sent), and
    the share of time in which its GPUs computed (0 to 1); None: unknown."""

    cpus_mean: float | None
    cpus_peak: float | None
    memory_mean: int
    memory_peak: int
    network_peak_bps: int | None
    gpu_busy_mean: float | None
    gpu_memory_peak: int | None


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of one task.

    `gpu` are the ids that the engine reserved, `gpu_seen` those that TensorFlow found (None if it
    was not asked); `rx_bytes` and `tx_bytes` are the bytes that its container received and sent,
    None if it did not count them; `usage` is None if it wrote none.
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
    usage: TaskUsage | None = None


def task_outcome(name: str, seen: RunState, container: Container | None) -> TaskOutcome:
    view, end = seen.tasks[name], seen.end_entry(name)
    counted: Mapping[str, Any] = end.fields if end else {}
    return TaskOutcome(
        name=name,
        role=view.role,
        index=int(name.rpartition("-")[2]),
        ip=container.ip if container else view.ip,
        gpu=list(container.gpus if container else view.gpus),
        gpu_seen=seen.devices(name),
        exit_code=_exit_code(view, seen.final_failures(name), container),
        restarts=view.restarts,
        oom=out_of_memory(seen, name) or bool(container and container.oom),
        rx_bytes=counted.get("rx_bytes"),
        tx_bytes=counted.get("tx_bytes"),
        usage=_usage(seen.uses.get(name)),
    )


def _usage(use: Use | None) -> TaskUsage | None:
    if use is None:
        return None
    return TaskUsage(
        cpus_mean=_rounded(use.cpus_mean, 3),
        cpus_peak=_rounded(use.cpus_peak, 3),
        memory_mean=round(use.memory_mean),
        memory_peak=round(use.memory_peak),
        network_peak_bps=None if use.bps_peak is None else round(use.bps_peak),
        gpu_busy_mean=_rounded(use.gpu_busy_mean, 3),
        gpu_memory_peak=None if use.gpu_memory_peak is None else round(use.gpu_memory_peak),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _exit_code(
    view: TaskView, failures: Sequence[Entry], container: Container | None
) -> int | None:
    """The exit code that the engine has, else the one of the task's last failure.

    The engine has none for a failed task that it has just restarted.
    """
    code = container.exit_code if container else view.exit_code
    code = failures[-1].fields.get("exit_code") if failures and code is None else code
    return code if isinstance(code, int) else None
