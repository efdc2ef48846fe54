"""The one table of metrics: what each is called, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster_kit.observe.task_view import State

PREFIX = "clusterkit_"
OF_RUN = ("cluster", "run")
OF_TASK = (*OF_RUN, "role", "task", "index")
"""Not `job`: that label is Prometheus's own, and would be renamed when it is scraped."""
_LABELS = {"run": OF_RUN, "task": OF_TASK, "engine": ()}
"""By the first word of a metric's name."""
SILENT = "silent"
"""The state of a task of which nothing was heard for long, and no engine says why."""
STATES = (*(str(state) for state in State), SILENT)

Kind = Literal["counter", "gauge"]


@dataclass(frozen=True)
class Family:
    """A metric; `labels` are further ones than those of its run or task. Units are in the name."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def all_labels(self) -> tuple[str, ...]:
        return (*_LABELS[self.name.removeprefix(PREFIX).partition("_")[0]], *self.labels)


_ROWS: tuple[tuple[str, Kind, str, tuple[str, ...]], ...] = (
    ("engine_up", "gauge", "1 if the engine answers `cluster-kit serve`, else 0.", ()),
    ("run_info", "gauge", "What ran: always 1.", ("image", "style", "kit")),
    ("run_up", "gauge", "1 while the run has no verdict and a task of it is up, else 0.", ()),
    ("run_start_time_seconds", "gauge", "When its containers were started, Unix time.", ()),
    ("run_duration_seconds", "gauge", "How long the run took, or has taken so far.", ()),
    ("run_phase_seconds", "gauge", "How long a part of the run took; known at its end.",
     ("phase",)),
    ("run_success", "gauge", "1 if the run ended well, 0 if not; absent before its end.", ()),
    ("run_exit_code", "gauge", "The exit code of `up`; absent before its end.", ()),
    ("run_verdict_info", "gauge", "How the run ended: always 1, absent before its end.",
     ("verdict", "reason", "blame")),
    ("run_retries_total", "counter", "How often the leader started its program again.", ()),
    ("run_checkpoint_time_seconds", "gauge", "When the newest checkpoint was complete, Unix time.",
     ()),
    ("run_checkpoint_step", "gauge", "The global step of the newest checkpoint: of its name, or "
     "last reported before it was complete.", ()),
    ("run_target_steps", "gauge", "The global step at which the training ends, if it is known.",
     ()),
    ("run_metric", "gauge", "A final figure that a program reported, by its name.", ("metric",)),
    ("task_info", "gauge", "Where the task is: always 1.", ("ip", "gpus")),
    ("task_up", "gauge", "1 if the task's container runs, else 0.", ()),
    ("task_state", "gauge", "1 for the state that the task is in, 0 for each other one.",
     ("state",)),
    ("task_exit_code", "gauge", "The exit code of the task's last end; absent while it runs.", ()),
    ("task_restarts_total", "counter", "How often the task's container was started again.", ()),
    ("task_cpu_seconds_total", "counter", "CPU time of all processes of the task.", ()),
    ("task_cpu_limit_cores", "gauge", "The task's CPU limit; absent without one.", ()),
    ("task_memory_bytes", "gauge", "Memory in use; absent while the task does not run.", ()),
    ("task_memory_peak_bytes", "gauge", "The most memory that was seen in use.", ()),
    ("task_memory_limit_bytes", "gauge", "The task's memory limit; absent without one.", ()),
    ("task_network_receive_bytes_total", "counter", "Bytes that the task's network received.", ()),
    ("task_network_transmit_bytes_total", "counter", "Bytes that the task's network sent.", ()),
    ("task_gpus", "gauge", "How many GPUs the task was given.", ()),
    ("task_gpu_busy_ratio", "gauge", "The share of time in which its GPUs compute, 0 to 1.", ()),
    ("task_gpu_memory_bytes", "gauge", "Memory in use on its GPUs, by whoever uses them.", ()),
    ("task_steps_total", "counter", "Steps that the task reported; repeated ones count again.", ()),
    ("task_step", "gauge", "The global step that the task last reported.", ()),
    ("task_steps_per_second", "gauge", "The speed that the task last reported; absent while it "
     "does not run.", ()),
    ("task_epoch", "gauge", "The epoch that the task finished last, from 1.", ()),
    ("task_loss", "gauge", "The loss that the task last reported; NaN if it diverged.", ()),
    ("task_accuracy_ratio", "gauge", "The accuracy that the task last reported, 0 to 1.", ()),
    ("task_map_50_ratio", "gauge", "The mAP@0.5 that the task last reported, 0 to 1.", ()),
    ("task_staleness_updates", "gauge", "By how many updates gradients were late, on average.",
     ()),
    ("task_evaluated_step", "gauge", "The global step of the checkpoint that was scored last.",
     ()),
    ("task_straggler", "gauge", "1 while the task is much slower than others like it, else 0.",
     ()),
    ("task_last_told_time_seconds", "gauge", "When the task wrote a line last, Unix time.", ()),
)  # fmt: skip

FAMILIES = {PREFIX + row[0]: Family(PREFIX + row[0], *row[1:]) for row in _ROWS}
"""By name, in the order in which they are written."""
