"""Reads the files of a cluster's newest run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.kit import Kit


def latest(kit: Kit) -> Path:
    return kit.root / "runs" / kit.name / "latest"


def output(kit: Kit) -> Path:
    return latest(kit) / "output"


def log(kit: Kit, task: str) -> str:
    return (latest(kit) / "logs" / f"{task}.log").read_text()


def events(kit: Kit, task: str, event: str) -> list[dict[str, Any]]:
    lines = (output(kit) / "progress" / f"{task}.jsonl").read_text().splitlines()
    return [found for found in map(json.loads, lines) if found["event"] == event]


def saved_step(kit: Kit) -> int:
    """Returns the step of the newest automatic checkpoint; 0 if there is none."""
    names = [path.name for path in (output(kit) / "checkpoints").glob("*.index")]
    found = (re.fullmatch(r"(?:model\.)?ckpt-(\d+)\.index", name) for name in names)
    return max((int(match[1]) for match in found if match), default=0)


def codes(kit: Kit) -> dict[str, int | None]:
    return {task["name"]: task["exit_code"] for task in kit.outcome()["tasks"]}


def restarts(kit: Kit) -> dict[str, int]:
    return {task["name"]: task["restarts"] for task in kit.outcome()["tasks"]}
