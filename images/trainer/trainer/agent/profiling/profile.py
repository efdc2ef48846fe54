"""`python3 -m trainer profile SECONDS [TASK…]`: one trace of tasks, in the output directory."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.agent import atomic
from trainer.agent.errors import ContractError, TrainerError
from trainer.agent.profiling import breakdown, chrome, planes, rates
from trainer.agent.profiling.request import ask_all
from trainer.agent.progress_file import parsed
from trainer.agent.task import EVALUATOR, Task, addresses_by_task

MOST_S = 60.0
FOLDER = "profile"
"""Below the output; beside it TensorBoard's `plugins/profile/`."""
TRACE, FACTS = "trace.json.gz", "profile.json"
LATE_S = 1.5
"""After the time that is traced programs report their steps once more."""


def show(task: Task, arguments: Sequence[str]) -> int:
    """Profile, and print the facts as a line of JSON; the exit code."""
    give_way()
    print(json.dumps(profile(task, *parse(task, arguments))), flush=True)
    return 0


def parse(task: Task, arguments: Sequence[str]) -> tuple[float, list[str]]:
    """(seconds, tasks) of a command line; ContractError if they cannot be."""
    known = sorted(reachable(task))
    try:
        seconds = float(arguments[0])
    except (IndexError, ValueError):
        seconds = 0.0
    if not 0 < seconds <= MOST_S:
        raise ContractError(f"profile {' '.join(arguments[:1])}: seconds above 0, at most 60")
    unknown = [name for name in arguments[1:] if name not in known]
    if unknown:
        raise ContractError(f"{unknown[0]} has no TensorFlow server; these have: {known}")
    return seconds, list(arguments[1:]) or known


def reachable(task: Task) -> dict[str, str]:
    """The address of each task that can have a TensorFlow server: not the evaluator's."""
    found = addresses_by_task(task.cluster)
    return {name: at for name, at in found.items() if not name.startswith(EVALUATOR)}


def give_way() -> None:
    """The training first: it gets the CPU, and if memory is short it is us who are killed."""
    with contextlib.suppress(OSError):
        os.nice(10)
        Path("/proc/self/oom_score_adj").write_text("1000")


def profile(task: Task, seconds: float, tasks: Sequence[str]) -> dict[str, Any]:
    """Trace these tasks for so long; what profile.json says.

    Raises:
        TrainerError: none of them could be traced, or nothing can be written.
    """
    addresses = {name: reachable(task)[name] for name in tasks}
    name = time.strftime("%Y%m%d-%H%M%S")
    root = event_files(task.output) / "plugins" / "profile"
    began = time.time()
    try:
        root.mkdir(parents=True, exist_ok=True)
        answers = ask_all(addresses, root, name, seconds)
        missing = {one: answer for one, answer in answers.items() if answer}
        if len(missing) == len(answers):
            raise TrainerError("no task could be traced: " + sentences(missing))
        time.sleep(max(0.0, began + seconds + LATE_S - time.time()))
        folder = task.output / FOLDER / name
        folder.mkdir(parents=True)
        traced = [one for one in answers if not answers[one]]
        files = {one: root / name / f"{one}.xplane.pb" for one in traced}
        facts = written(folder, files, began, seconds)
        points = rates.points_of(reports(task))
        facts.update(
            missing=missing,
            steps_per_s=rates.overhead(points, began, seconds),
            folder=str(folder.relative_to(task.output)),
            tensorboard=str((root / name).relative_to(task.output)),
        )
        atomic.replace(folder / FACTS, json.dumps(facts, indent=1) + "\n")
    except OSError as problem:
        raise TrainerError(f"{problem.filename} cannot be written: {problem.strerror}") from problem
    return facts


def written(
    folder: Path, files: Mapping[str, Path], began: float, seconds: float
) -> dict[str, Any]:
    """Write the trace, one task after the other so that only one is in memory; the facts."""
    rows: dict[str, Any] = {}
    most = chrome.MOST_EVENTS // max(1, len(files))
    with gzip.open(folder / TRACE, "wt", compresslevel=6, encoding="utf-8") as trace_file:
        trace_file.write(chrome.HEAD)
        first = True
        for place, (task, file) in enumerate(files.items()):
            trace = planes.read(file, task, began, seconds)
            rows[task] = breakdown.facts_of(trace)
            for line in chrome.lines_of(trace, place, int(began * 1e9), most):
                trace_file.write(line if first else f",\n{line}")
                first = False
        trace_file.write(chrome.TAIL)
    return {
        "format": 1,
        "began": round(began, 3),
        "seconds": seconds,
        "tasks": rows,
        "trace": TRACE,
        "trace_bytes": (folder / TRACE).stat().st_size,
    }


def event_files(output: Path) -> Path:
    """Where TensorBoard looks for this run's files."""
    usual = output / "tensorboard"
    return usual if usual.is_dir() else output


def reports(task: Task) -> list[dict[str, Any]]:
    """The leader's progress events, else those of the first other task that reports steps."""
    folder = task.progress_file.parent
    for path in (folder / f"{task.leader}.jsonl", *sorted(folder.glob("*.jsonl"))):
        with contextlib.suppress(OSError):
            events = [event for line in path.read_bytes().splitlines() if (event := parsed(line))]
            if any(event.get("event") == "step" for event in events):
                return events
    return []


def sentences(missing: Mapping[str, str]) -> str:
    """`worker-1: it did not answer in time; …`."""
    return "; ".join(f"{task}: {why}" for task, why in missing.items())
