"""What is saved of a run before anything is removed: logs and events, task by task."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import takewhile

from cluster_kit.engine import Container, Engine
from cluster_kit.observed import Observed
from cluster_kit.workspace import RunDirectory

_PARALLEL = 8
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
_NOISE = re.compile(
    r"^(WARNING: All log messages before absl"
    r"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    r"|(E\d{4} |\d{4}-\d\d-\d\d [\d:.]+: E ).*(Unable to register cu|failed call to cuInit)"
    r"|WARNING:tensorflow|INFO:tensorflow|WARNING:absl|INFO:absl"
    r"|To enable the following instructions)"
)
_IGNORED = "Exception ignored in"
"""Python says this of what goes wrong while it shuts down, after the error that matters."""
_RECENT = 40
"""Lines after which a traceback is history: the program went on, and ended of something else."""


def save(
    engine: Engine, run: RunDirectory, seen: Observed, containers: list[Container]
) -> dict[str, str]:
    """Save everything and return the logs by task name. A resumed run adds to its files."""
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
    starts = [
        i
        for i, line in enumerate(telling)
        if line.startswith("Traceback (most recent")
        and not (i > 0 and telling[i - 1].startswith(_IGNORED))
    ]
    traceback = telling[starts[-1] :] if starts else []
    end = _end_of_traceback(traceback)
    if traceback[end:] and len(traceback) - end <= _RECENT:
        error = list(takewhile(lambda line: not line.startswith(_IGNORED), traceback[end:]))
        head = traceback[:end]
        room = max(2, limit - min(len(error), 6))
        return "\n".join([*head[-room:], *error[:6]])
    return "\n".join(telling[-limit:])


def _end_of_traceback(lines: Sequence[str]) -> int:
    """Index of the first line after the frames: the error."""
    ends = (i for i, line in enumerate(lines) if i > 0 and not line.startswith(" "))
    return next(ends, len(lines))
