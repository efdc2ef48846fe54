"""What is saved of a run before anything is removed: logs, events, exit codes, the compose file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from cluster_kit.engine import Container, Engine
from cluster_kit.observed import Observed
from cluster_kit.workspace import RunDirectory

_PARALLEL = 8
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
_NOISE = re.compile(
    r"^(WARNING: All log messages before absl"
    r"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    r"|WARNING:tensorflow|INFO:tensorflow"
    r"|To enable the following instructions)"
)


def save(
    engine: Engine, run: RunDirectory, compose: Path, seen: Observed, containers: list[Container]
) -> dict[str, str]:
    """Save everything and return the logs by task name. A resumed run adds to its files."""
    shutil.copyfile(compose, run.path / "compose.yaml")
    with (run.path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(event)) + "\n" for event in seen.events)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        texts = list(pool.map(lambda container: engine.logs(container.id), containers))
    logs = {container.name: text for container, text in zip(containers, texts, strict=True)}
    for name, text in logs.items():
        with (run.logs / f"{name}.log").open("a", encoding="utf-8") as file:
            file.write(text)
    return logs


def last_words(log: str, limit: int = 12) -> str:
    """What a task said at its end: its last traceback where it has one, without TensorFlow's noise.

    The last line of a traceback is the error itself and is always kept.
    """
    lines = [_STAMP.sub("", line).rstrip() for line in log.splitlines()]
    telling = [line for line in lines if line.strip() and not _NOISE.match(line)]
    starts = [i for i, line in enumerate(telling) if line.startswith("Traceback (most recent")]
    if starts and len(telling) - starts[-1] > 2:
        traceback = telling[starts[-1] :]
        end = _end_of_traceback(traceback)
        error = traceback[end:]
        head = traceback[:end]
        room = max(2, limit - min(len(error), 6))
        return "\n".join([*head[-room:], *error[:6]])
    return "\n".join(telling[-limit:])


def _end_of_traceback(lines: Iterable[str]) -> int:
    """Index of the first line after the frames: the error."""
    for index, line in enumerate(lines):
        if index > 0 and not line.startswith(" "):
            return index
    return index
