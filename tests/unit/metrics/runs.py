"""Directories of runs as `up` writes them, and their metrics as Prometheus reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from cluster_kit.host import Moment
from cluster_kit.metrics.prometheus import text
from cluster_kit.observe.task_view import State
from cluster_kit.resolved import Cluster
from cluster_kit.run.run_directory import Record, write_record
from cluster_kit.run.run_report import RunMetrics
from cluster_kit.workspace import RunDirectory, new_run
from tests.make import cluster

SINCE = 1000.0
CLUSTER = cluster(worker=2, ps=1, evaluator=1)
OUTCOME = {
    "id": "id", "success": True, "exit_code": 0, "reason": "finished", "blame": None,
    "timings_s": {"total": 12.5, "up": 2.0}, "metrics": {"test_accuracy": 0.97, "nan": None},
    "tasks": [{"name": "ps-0", "exit_code": 0, "restarts": 1}],
}  # fmt: skip


def begun(root: Path, of: Cluster = CLUSTER, sizes: Mapping[str, int] | None = None,
          since: float = SINCE) -> RunDirectory:  # fmt: skip
    """Write a run whose containers were started at `since`, and which has reported nothing yet."""
    run = new_run(root / "runs" / of.name, datetime(2026, 11, 22, 10))
    write_record(run, Record("id", of, Moment(0.0, 0.0, ""), since, {}, sizes or {}))
    return run


def tells(run: RunDirectory, task: str, *lines: Mapping[str, Any] | str, suffix: str = ".jsonl"
          ) -> None:  # fmt: skip
    """Append lines to a task's file; a text is written unchanged."""
    with (run.progress / f"{task}{suffix}").open("a", encoding="utf-8") as file:
        file.writelines(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines)


def says(run: RunDirectory, at: float, task: str, event: str, **fields: Any) -> None:
    tells(run, task, {"time": SINCE + at, "event": event, **fields})


def uses(run: RunDirectory, at: float, task: str, cpu_s: float, rx: int = 0, **more: Any) -> None:
    line = {"time": SINCE + at, "event": "usage", "cpu_s": cpu_s, "memory": 5000, "rx_bytes": rx,
            "tx_bytes": 2 * rx, **more}  # fmt: skip
    tells(run, task, line, suffix=".usage")


def happens(run: RunDirectory, at: float, task: str, action: str, code: int | None = None) -> None:
    line = {"time": SINCE + at, "action": action, "task": task, "exit_code": code}
    with (run.path / "events.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def ends(run: RunDirectory, **different: Any) -> None:
    run.outcome.write_text(json.dumps({**OUTCOME, **different}))


class Read:
    """Metrics by name and labels: `read("task_up", task="ps-0")`."""

    def __init__(self, exposition: str) -> None:
        self.samples = [
            sample
            for family in text_string_to_metric_families(exposition)
            for sample in family.samples
        ]

    def all(self, name: str, **labels: str) -> list[float]:
        return [
            sample.value
            for sample in self.samples
            if sample.name == f"clusterkit_{name}" and labels.items() <= sample.labels.items()
        ]

    def __call__(self, name: str, **labels: str) -> float | None:
        """Returns the only such value; None if there is none."""
        found = self.all(name, **labels)
        assert len(found) < 2, found
        return found[0] if found else None

    def states(self, task: str) -> list[str]:
        return [
            sample.labels["state"]
            for sample in self.samples
            if sample.name == "clusterkit_task_state"
            and sample.labels["task"] == task
            and sample.value == 1
        ]


def read(metrics: RunMetrics | RunDirectory, at: float = 10.0,
         engine: Mapping[str, State] | None = None) -> Read:  # fmt: skip
    """Returns the metrics of a run at this number of seconds after its start."""
    metrics = RunMetrics(metrics) if isinstance(metrics, RunDirectory) else metrics
    return Read(text(metrics.values(engine, now=SINCE + at)))


def trains(run: RunDirectory) -> None:
    """Write ten seconds of a run: all tasks are up, the chief has made 60 steps, one checkpoint is
    scored."""
    for task in CLUSTER.tasks:
        happens(run, 0, task.name, "start")
        uses(run, 1, task.name, 0.5, rx=100)
        uses(run, 10, task.name, 4.5, rx=900)
    says(run, 0.5, "chief-0", "start", attempt=1)
    says(run, 1, "ps-0", "ready")
    says(run, 2, "chief-0", "training", strategy="ps", images_per_step=32, steps=360)
    says(run, 3, "chief-0", "step", step=1, steps_per_s=1, loss=2.0)
    says(run, 9, "chief-0", "step", step=60, steps_per_s=10.5, loss=0.5)
    says(run, 9.5, "chief-0", "epoch", epoch=1, step=60, loss=0.4, accuracy=0.9, staleness=0.5)
    says(run, 9.6, "evaluator-0", "evaluation", checkpoint="ckpt-1", step=60, loss=0.3, map_50=0.7)
