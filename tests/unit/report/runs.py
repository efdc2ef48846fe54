"""The files of a small run, written second by second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.usage import Sample
from cluster_kit.platforms.engine import Event
from cluster_kit.report.page import Evidence
from cluster_kit.resolved import Cluster
from tests.entries import as_entry
from tests.make import cluster

CLUSTER = cluster(worker=2, ps=1, evaluator=1)


def told(time: float, task: str, event: str, **fields: Any) -> Entry:
    return as_entry(task, time, event, fields)


def used(time: float, task: str, cpu_s: float = 0.0, **more: Any) -> Sample:
    return Sample(task, time, cpu_s, **{"memory": 1e6, "rx_bytes": 0, "tx_bytes": 0, **more})


def started(of: Cluster = CLUSTER, at: float = 0.0) -> list[Event]:
    return [Event(at, "start", task.name, None) for task in of.tasks]


def trained() -> Evidence:
    """Returns ten seconds of a run: ready at 2, training from 3 to 8, one checkpoint that is
    scored."""
    entries = [
        told(0.5, "chief-0", "start", attempt=1),
        *(told(1.0, name, "ready") for name in ("worker-0", "worker-1", "ps-0")),
        told(2.0, "chief-0", "ready"),
        *(told(3.0 + at, "chief-0", "step", step=at * 10, steps_per_s=10.0, loss=1.0 / (at + 1))
          for at in range(6)),
        told(5.0, "chief-0", "epoch", epoch=1, step=20, loss=0.4, accuracy=0.9),
        told(8.0, "chief-0", "phase", name="finishing"),
        told(7.0, "evaluator-0", "evaluation", checkpoint="ckpt-1", written=5.5, accuracy=0.95),
        told(9.0, "chief-0", "metrics", test_accuracy=0.96),
        told(9.5, "chief-0", "end", exit_code=0, reason="finished"),
    ]  # fmt: skip
    ends = [Event(10.0, "die", task.name, 0) for task in CLUSTER.tasks]
    samples = [
        used(at, name, cpu_s=at * 0.5, sent_to={"ps-0": at * 100.0} if name == "worker-0" else None)
        for at in range(1, 10)
        for name in ("chief-0", "worker-0")
    ]
    return Evidence(
        name="20261122-101500",
        cluster=CLUSTER,
        outcome={
            "success": True, "exit_code": 0, "reason": "finished", "blame": None, "message": "",
            "last_words": "", "cure": "", "notes": [], "metrics": {"test_accuracy": 0.96},
            "timings_s": {"total": 10.0}, "tasks": [{"name": "ps-0", "exit_code": 0}],
        },
        events=[*started(), *ends],
        entries=sorted(entries, key=lambda entry: entry.time),
        samples=samples,
        checkpoints=[(5.5, "ckpt-1")],
        logs=["chief-0"],
        manifest="format = 1\n",
        kit="1.2.3",
    )  # fmt: skip


def changed(**values: Any) -> Evidence:
    return replace(trained(), **values)


TAKEN = {
    "format": 1, "began": 1004.5, "seconds": 2.0, "missing": {"ps-0": "it did not answer in time"},
    "trace": "trace.json.gz", "trace_bytes": 303_000, "folder": "profile/now",
    "steps_per_s": {"before": 20.0, "during": 18.0},
    "tasks": {"worker-0": {
        "seconds": 2.0, "runs": 40, "shares": {"compute": 1.0}, "waits_for": "variables",
        "longest_ops": [{"name": f"op{n}", "op": "Sub", "count": 1, "ms": 9.0} for n in range(9)],
        "longest_waits": [],
    }},
}  # fmt: skip
