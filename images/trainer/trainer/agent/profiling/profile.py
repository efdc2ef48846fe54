"""`python3 -m trainer profile SECONDS [TASK…]`: one trace of tasks, in the output directory.

Asks TensorFlow's profiler in each task's server, all at once, without `import tensorflow`. Every
gRPC server of TensorFlow answers `tensorflow.ProfilerService`: those of the C API,
`tf.distribute.Server`, and the one that a coordinator or an all-reduce worker starts for itself.
This way a request needs 36 MB and a third of a second. Field numbers are those of
profiler_service.proto and profiler_options.proto. The traces become one file in Chrome's format,
which Perfetto reads.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.agent import atomic
from trainer.agent.errors import ContractError, TrainerError
from trainer.agent.profiling import breakdown, traces
from trainer.agent.profiling.traces import (
    NOT_WORK,
    SEND,
    WAITING,
    Event,
    Trace,
    op_of,
    receiver,
    works_of,
)
from trainer.agent.progress_file import Entry, parsed
from trainer.agent.servers.wire import block, number
from trainer.agent.task import EVALUATOR, Task, addresses_by_task
from trainer.contract.events import Step

METHOD = "/tensorflow.ProfilerService/Profile"
SAVES_S = 15.0
"""Seconds that a task has after the traced time to save its trace."""
PROFILER_EVENTS = 1_000_000
HOST_EVENTS = 2
"""TensorFlow's trace level: ops and their callers, but no internals of TensorFlow."""


def profile_request(task: str, root: Path, session: str, seconds: float) -> bytes:
    """A serialized ProfileRequest: the task saves `root/session/TASK.xplane.pb`."""
    milliseconds = max(1, round(seconds * 1000))
    options = (
        number(2, HOST_EVENTS)
        + number(3, 1)  # GPUs
        + number(5, 1)  # the version of these options
        + number(9, milliseconds)
        + block(10, str(root))
    )
    return (
        number(1, milliseconds)
        + number(2, PROFILER_EVENTS)
        + block(4, options)
        + block(5, str(root))
        + block(6, session)
        + block(7, task)
    )


def ask_all(
    addresses: Mapping[str, str], root: Path, session: str, seconds: float
) -> dict[str, str]:
    """Request a trace of this length from all tasks; returns the reason why each failed, "" for
    success.

    Args:
        addresses: `host:port` of each task's TensorFlow server.
    """
    answers = dict.fromkeys(addresses, "no answer")
    until = time.monotonic() + seconds + SAVES_S

    def ask(task: str, address: str) -> None:
        answers[task] = _request(address, profile_request(task, root, session, seconds), until)

    threads = [threading.Thread(target=ask, args=pair, daemon=True) for pair in addresses.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + 1 - time.monotonic()))
    for task, answer in list(answers.items()):
        if not answer and not (root / session / f"{task}.xplane.pb").is_file():
            answers[task] = "it answered, but has written no trace"
    return answers


def _request(address: str, request: bytes, until: float) -> str:
    import grpc

    options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]
    try:
        with grpc.insecure_channel(address, options=options) as channel:
            states: list[Any] = []
            channel.subscribe(states.append)
            call = channel.unary_unary(METHOD)
            call(request, timeout=max(0.1, until - time.monotonic()))
    except grpc.RpcError as problem:
        connected = grpc.ChannelConnectivity.READY in states
        return why(problem.code().name, problem.details() or "", connected=connected)
    return ""


def why(code: str, details: str, *, connected: bool = False) -> str:
    """A gRPC error in words.

    Args:
        connected: the server had accepted the connection.
    """
    if code == "DEADLINE_EXCEEDED":
        return "it did not answer in time"
    if code == "UNAVAILABLE" and connected:
        return "it ended while it was traced"
    if code == "UNAVAILABLE":
        return "no TensorFlow server answers there"
    if "nother profil" in details:
        return "another profile of it is running"
    return f"{code}: {details[:200]}"


MOST_EVENTS = 1_000_000
"""Maximum events of all tasks: Perfetto reads this number within seconds."""
HEAD, TAIL = '{"displayTimeUnit":"ms","traceEvents":[\n', "\n]}\n"


def chrome_lines(trace: Trace, position: int, began: int, most: int) -> Iterator[str]:
    """The events of one task, each as JSON.

    Args:
        position: the task's position among all, by which its process is sorted.
        began: Unix nanoseconds at which the whole trace begins.
        most: maximum events; the longest ones are kept.
    """
    process = position + 1
    yield _meta("process_name", process, name=trace.task)
    yield _meta("process_sort_index", process, sort_index=position)
    ahead = trace.began - began
    shortest = _shortest(trace, most)
    for thread_id, thread in enumerate(trace.threads, 1):
        yield _meta("thread_name", process, thread_id, name=thread.name)
        for event in thread.events:
            if event.duration >= shortest and not event.name.startswith(NOT_WORK):
                yield _event_line(
                    ph="X", pid=process, tid=thread_id, name=event.name,
                    ts=(event.begin + ahead) / 1000, dur=event.duration / 1000, **_more(event),
                )  # fmt: skip
    waits = [w for w in works_of(trace) if w.kind == WAITING and w.end - w.begin >= shortest]
    for wait_id, wait in enumerate(sorted(waits, key=lambda w: w.begin)):
        ends = {"pid": process, "tid": 0, "cat": "waiting", "id": f"{process}.{wait_id}"}
        name = f"waits: {wait.name}"
        yield _event_line(ph="b", name=name, ts=(wait.begin + ahead) / 1000, **ends)
        yield _event_line(ph="e", name=name, ts=(wait.end + ahead) / 1000, **ends)


def _shortest(trace: Trace, most: int) -> float:
    """The minimum duration, in nanoseconds, that leaves few enough events."""
    if sum(len(thread.events) for thread in trace.threads) <= most:
        return 0.0
    durations = sorted((e.duration for t in trace.threads for e in t.events), reverse=True)
    return durations[most]


def _more(event: Event) -> dict[str, Any]:
    _, op = op_of(event.name)
    if op != SEND or "key" not in event.stats:
        return {}
    to = receiver(str(event.stats["key"]))
    return {"args": {"to": to}} if to else {}


def _meta(what: str, process: int, thread: int = 0, **args: object) -> str:
    return _event_line(ph="M", name=what, pid=process, tid=thread, args=args)


def _event_line(**values: object) -> str:
    kept = {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()}
    return json.dumps(kept, separators=(",", ":"))


MOST_S = 60.0
FOLDER = "profile"
"""The folder of traces below the output; TensorBoard's are in `plugins/profile/`."""
TRACE, FACTS = "trace.json.gz", "profile.json"
LATE_S = 1.5
"""Seconds after the traced time in which programs report their steps once more."""


def show(task: Task, arguments: Sequence[str]) -> int:
    """Profile, print the facts as a line of JSON, and return the exit code."""
    give_way()
    print(json.dumps(profile(task, *parse(task, arguments))), flush=True)
    return 0


def parse(task: Task, arguments: Sequence[str]) -> tuple[float, list[str]]:
    """(seconds, tasks) of a command line; raises ContractError if they are invalid."""
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
    # TensorFlow's profiler can crash the other tasks of an all-reduce: docs/profile.md.
    default = known if task.has_ps else [task.leader]
    return seconds, list(arguments[1:]) or default


def reachable(task: Task) -> dict[str, str]:
    """The address of each task that can have a TensorFlow server: not the evaluator's."""
    by_address = addresses_by_task(task.cluster)
    return {name: at for name, at in by_address.items() if not name.startswith(EVALUATOR)}


def give_way() -> None:
    """Lower this process's priority: training gets the CPU, and this process is killed first."""
    with contextlib.suppress(OSError):
        os.nice(10)
        Path("/proc/self/oom_score_adj").write_text("1000")


def profile(task: Task, seconds: float, tasks: Sequence[str]) -> dict[str, Any]:
    """Trace these tasks for this long; returns the content of profile.json.

    Raises:
        TrainerError: no task could be traced, or the files cannot be written.
    """
    addresses = {name: reachable(task)[name] for name in tasks}
    name = time.strftime("%Y%m%d-%H%M%S")
    root = event_files(task.output) / "plugins" / "profile"
    began = time.time()
    try:
        root.mkdir(parents=True, exist_ok=True)
        answers = ask_all(addresses, root, name, seconds)
        missing = {failed: answer for failed, answer in answers.items() if answer}
        if len(missing) == len(answers):
            raise TrainerError("no task could be traced: " + sentences(missing))
        time.sleep(max(0.0, began + seconds + LATE_S - time.time()))
        folder = task.output / FOLDER / name
        folder.mkdir(parents=True)
        traced = [failed for failed in answers if not answers[failed]]
        files = {failed: root / name / f"{failed}.xplane.pb" for failed in traced}
        facts = written(folder, files, began, seconds)
        points = breakdown.points_of(reports(task))
        facts.update(
            missing=missing,
            steps_per_s=breakdown.steps_before_and_during(points, began, seconds),
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
    """Write the trace, one task after the other so that only one is in memory; return the facts."""
    rows: dict[str, Any] = {}
    most = MOST_EVENTS // max(1, len(files))
    with gzip.open(folder / TRACE, "wt", compresslevel=6, encoding="utf-8") as trace_file:
        trace_file.write(HEAD)
        first = True
        for position, (task, file) in enumerate(files.items()):
            trace = traces.read_trace(file, task, began, seconds)
            rows[task] = breakdown.task_facts(trace)
            for line in chrome_lines(trace, position, int(began * 1e9), most):
                trace_file.write(line if first else f",\n{line}")
                first = False
        trace_file.write(TAIL)
    return {
        "format": 1,
        "began": round(began, 3),
        "seconds": seconds,
        "tasks": rows,
        "trace": TRACE,
        "trace_bytes": (folder / TRACE).stat().st_size,
    }


def event_files(output: Path) -> Path:
    """The files of this run that TensorBoard reads."""
    usual = output / "tensorboard"
    return usual if usual.is_dir() else output


def reports(task: Task) -> list[Entry]:
    """The leader's progress entries, else those of the first other task that reports steps."""
    folder = task.progress_file.parent
    for path in (folder / f"{task.leader}.jsonl", *sorted(folder.glob("*.jsonl"))):
        with contextlib.suppress(OSError):
            entries = [entry for line in path.read_bytes().splitlines() if (entry := parsed(line))]
            if any(isinstance(entry.event, Step) for entry in entries):
                return entries
    return []


def sentences(missing: Mapping[str, str]) -> str:
    """`worker-1: it did not answer in time; …`."""
    return "; ".join(f"{task}: {why}" for task, why in missing.items())
