"""Saved runs: a successful one, a failed one, and one that never started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cluster_kit.contract.events import name_of
from cluster_kit.observe.progress import fields_of
from cluster_kit.platforms.engine import Event
from cluster_kit.run.outcome import Outcome, TaskOutcome
from tests.entries import as_entry

NEVER_STARTED = {
    "success": False,
    "error": {"message": "worker = 0: a job", "cure": "set `worker = 1`", "exit_code": 2},
}
EVENTS = (
    Event(100.0, "start", "ps-0", None),
    Event(100.5, "start", "chief-0", None),
    Event(103.0, "die", "ps-0", 137),
    Event(104.0, "start", "ps-0", None),
    Event(107.0, "die", "chief-0", 0),
)
ENTRIES = (
    as_entry("chief-0", 101.0, "epoch", {"step": 10, "loss": 2.0}),
    as_entry("chief-0", 102.0, "step", {"step": 15}),
    as_entry("chief-0", 103.0, "epoch", {"step": 20, "loss": float("nan")}),
    as_entry("chief-0", 104.0, "epoch", {"step": 30, "loss": 1.0}),
    as_entry("evaluator-0", 104.0, "evaluation", {"step": 30, "loss": 9.0}),
)


def task(name: str, code: int | None = 0, **more: Any) -> TaskOutcome:
    role, _, index = name.rpartition("-")
    facts = {"gpu": [], "gpu_seen": None, "restarts": 0, "oom": False, "rx_bytes": None}
    facts |= {"tx_bytes": None, "ip": "10.0.0.2", **more}
    return TaskOutcome(name=name, role=role, index=int(index), exit_code=code, **facts)


def outcome(**other: Any) -> Outcome:
    """Returns the outcome of a successful run, with these changes."""
    facts: dict[str, Any] = {
        "cluster": "demo", "success": True, "exit_code": 0, "reason": "finished", "blame": None,
        "message": "", "last_words": "", "notes": [], "timings_s": {"up": 1.25, "total": 8.04},
        "tasks": [task("chief-0", rx_bytes=3_648_223, tx_bytes=900), task("ps-0", gpu=["0", "1"])],
        "metrics": {"test_accuracy": 0.936803, "updates": 80}, "cure": "", "run": "/runs/demo/1",
    }  # fmt: skip
    return Outcome(**{**facts, **other})


def failed(**other: Any) -> Outcome:
    """Returns the outcome of a run whose chief raised an exception."""
    facts = {
        "success": False, "exit_code": 5, "reason": "failed", "blame": "chief-0", "metrics": {},
        "message": "ValueError: no", "last_words": "File train.py, line 7", "cure": "fix it",
        "tasks": [task("chief-0", 1), task("ps-0", 137, oom=True, restarts=2)],
    }  # fmt: skip
    return outcome(**{**facts, **other})


def saved(folder: Path, what: Outcome) -> Path:
    """Write a run's directory with this outcome, its events and progress."""
    run = folder / "runs" / what.cluster / "20250301-100000"
    (run / "output" / "progress").mkdir(parents=True)
    (run / "outcome.json").write_text(json.dumps({**what.as_json(), "run": str(run)}))
    lines = (json.dumps(event.__dict__) for event in EVENTS)
    (run / "events.jsonl").write_text("\n".join(lines) + "\n")
    for entry in ENTRIES:
        fields = {"time": entry.time, "event": name_of(entry.event), **fields_of(entry.event)}
        with (run / "output" / "progress" / f"{entry.task}.jsonl").open("a") as file:
            file.write(json.dumps(fields) + "\n")
    (run.parent / "latest").symlink_to(run.name)
    return run
