"""Reads the trace that a task's profiler wrote (xplane.pb), and classifies its events."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from trainer.agent.errors import TrainerError

HOST = "/host:CPU"
ENVIRONMENT = "Task Environment"
GPU = "/device:GPU"
PLACES = ("tsl", "core")
WANTED = frozenset({"name", "kernel_type", "_p", "_c", "key", "is_func", "step_num"})
"""The stats of events that are read; the others would only use memory."""


@dataclass(frozen=True)
class Event:
    """Something that a thread did: nanoseconds since the task's trace began."""

    name: str
    begin: float
    duration: float
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> float:
        return self.begin + self.duration


@dataclass(frozen=True)
class Thread:
    """A thread, or a stream of a GPU; its events by their beginning."""

    name: str
    events: tuple[Event, ...]
    gpu: bool = False


@dataclass(frozen=True)
class Trace:
    """The trace of one task; `began` in Unix nanoseconds, `duration` in nanoseconds."""

    task: str
    began: int
    duration: float
    threads: tuple[Thread, ...]


def read_trace(file: Path, task: str, asked_at: float, seconds: float) -> Trace:
    """The trace in a file.

    Args:
        asked_at: Unix time of the request, used if the file does not have its begin.
        seconds: the requested length.
    Raises:
        TrainerError: this TensorFlow has no description of such files.
    """
    space = xplane_messages().XSpace()
    space.ParseFromString(file.read_bytes())
    began, duration = int(asked_at * 1e9), seconds * 1e9
    for plane in space.planes:
        if plane.name == ENVIRONMENT:
            stats = {_key(plane, stat): stat.uint64_value for stat in plane.stats}
            began = stats.get("profile_start_time") or began
            stop = stats.get("profile_stop_time") or 0
            duration = traced(began, stop, duration)
    threads = [
        Thread(
            _thread_name(plane.name, line.display_name or line.name),
            tuple(sorted(_events(plane, line, began), key=lambda e: (e.begin, -e.duration))),
            gpu=plane.name.startswith(GPU),
        )
        for plane in space.planes
        if plane.name == HOST or plane.name.startswith(GPU)
        for line in plane.lines
    ]
    return Trace(task, began, duration, tuple(threads))


def traced(began: int, stop: int, asked: float) -> float:
    """The nanoseconds that were traced. A profiler stops late if it has much to collect, and
    records nothing meanwhile."""
    return min(float(stop - began), asked) if stop > began else asked


def xplane_messages() -> ModuleType:
    """xplane_pb2 of the installed TensorFlow, without importing TensorFlow itself."""
    spec = importlib.util.find_spec("tensorflow")
    for place in PLACES:
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            file = Path(folder) / place / "profiler" / "protobuf" / "xplane_pb2.py"
            module_spec = importlib.util.spec_from_file_location("_cluster_kit_xplane_pb2", file)
            if file.is_file() and module_spec and module_spec.loader:
                module = importlib.util.module_from_spec(module_spec)
                module_spec.loader.exec_module(module)
                return module
    raise TrainerError("this TensorFlow cannot describe profiles: xplane_pb2 is missing")


def _events(plane: Any, line: Any, began: int) -> Iterator[Event]:
    # Relative to the beginning, but absolute in files of older versions.
    base = line.timestamp_ns - (began if line.timestamp_ns > began // 2 else 0)
    # Looked up once: a line can have a million events.
    names = {number: one.name for number, one in plane.event_metadata.items()}
    keys = {number: one.name for number, one in plane.stat_metadata.items() if one.name in WANTED}
    for event in line.events:
        stats = {
            keys[stat.metadata_id]: _value(plane, stat)
            for stat in event.stats
            if stat.metadata_id in keys
        }
        yield Event(
            names.get(event.metadata_id, ""),
            base + event.offset_ps / 1000,
            event.duration_ps / 1000,
            stats,
        )


def _key(plane: Any, stat: Any) -> str:
    return str(plane.stat_metadata[stat.metadata_id].name)


def _value(plane: Any, stat: Any) -> Any:
    kind = stat.WhichOneof("value")
    if kind == "ref_value":
        return plane.stat_metadata[stat.ref_value].name
    return getattr(stat, kind) if kind else None


def _thread_name(plane: str, name: str) -> str:
    """A thread's name without the number that TensorFlow appends."""
    short = name.rpartition("/")[0] or name
    return f"{plane.strip('/')} {short}" if plane.startswith(GPU) else short


COMPUTE, SENDING, INPUT, WAITING, DISPATCH, IDLE = (
    "compute", "sending", "input", "waiting", "dispatch", "idle",
)  # fmt: skip
ORDER = (COMPUTE, SENDING, INPUT, WAITING, DISPATCH)
"""If several kinds of work overlap, the first of them in this order counts."""
STARTED, DONE = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"
COLLECTIVE = "Collective"
RECEIVE, SEND, NEXT = "_Recv", "_Send", "IteratorGetNext"
BACKGROUND = "tf_data"
PREPARING = "tf_data_private_threadpool"
"""Runs a dataset's functions. What one of them waits for, such as Python that the chief runs for a
worker, delays no step before its iterator does."""
_OP = re.compile(r"^(?P<node>.*[^:]):(?P<kind>_?[A-Za-z][A-Za-z0-9_]*)$")
_NO_OPS = ("EagerService", "Iterator::")
NOT_WORK = ("ThreadpoolListener::", "MemoryAllocation", "MemoryDeallocation")
_TASK_OF_KEY = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+)/")


@dataclass(frozen=True)
class Work:
    """A period and its kind of work, in nanoseconds since the start of the trace; `name` is the
    op's.
    """

    kind: str
    begin: float
    end: float
    name: str = ""
    op: str = ""


def op_of(name: str) -> tuple[str, str]:
    """(node, type) of an op's event, such as `cnn/conv2d/Relu:_FusedConv2D`; ("", "") if none."""
    match = _OP.match(name)
    if not match or name.startswith(_NO_OPS) or "::" in name:
        return "", ""
    return match["node"], match["kind"]


def receiver(key: str) -> str:
    """The task that a tensor is sent to, by the key of its rendezvous: `ps-0`; "" if unknown."""
    tasks = _TASK_OF_KEY.findall(key)
    if len(tasks) < 2:
        return ""
    job, index = tasks[1]
    return f"{'chief' if job == 'master' else job}-{index}"


def works_of(trace: Trace) -> list[Work]:
    """All work and all waits of the task, in no order."""
    waits = list(_awaited(trace))
    for thread in trace.threads:
        background = thread.name.startswith(BACKGROUND)
        for event in thread.events:
            if event.name.startswith(NOT_WORK) or event.duration <= 0:
                continue
            if thread.gpu:
                waits.append(Work(COMPUTE, event.begin, event.end, event.name, "GPU"))
            elif not background:  # prefetched in parallel: does not delay the step
                waits.append(_work(event))
    return waits


def _work(event: Event) -> Work:
    node, op = op_of(event.name)
    if NEXT in event.name:
        return Work(INPUT, event.begin, event.end, node or event.name, NEXT)
    if not op or op.startswith("__"):
        return Work(DISPATCH, event.begin, event.end)
    if op.startswith(COLLECTIVE):  # a part of an asynchronous op, which _awaited returns completely
        return Work(DISPATCH, event.begin, event.end)
    kind = SENDING if op == SEND else WAITING if op == RECEIVE else COMPUTE
    return Work(kind, event.begin, event.end, node, op)


def _awaited(trace: Trace) -> Iterator[Work]:
    """Asynchronous ops, which have no thread: from the start of each to its end.

    The first of a node can have started before the trace, and its last can end after it.
    """
    started: dict[object, list[Event]] = defaultdict(list)
    newest: dict[str, Event] = {}
    events = [(event, thread.name) for thread in trace.threads for event in thread.events]
    for event, thread_name in sorted(events, key=lambda one: one[0].begin):
        node, op = str(event.stats.get("name", "")), str(event.stats.get("kernel_type", ""))
        if event.name == STARTED:
            newest[node] = event
            if thread_name != PREPARING:
                started[event.stats.get("_p")].append(event)
        elif event.name == DONE and started[event.stats.get("_c")]:
            first = started[event.stats.get("_c")].pop(0)
            node, op = str(first.stats.get("name", "")), str(first.stats.get("kernel_type", ""))
            yield from _wait(first.begin, event.begin, node, op)
        elif event.name == DONE and node not in newest:
            yield from _wait(0.0, event.begin, node, op)
            newest[node] = event
    for event in (event for waiting in started.values() for event in waiting):
        node, op = str(event.stats.get("name", "")), str(event.stats.get("kernel_type", ""))
        if newest[node] is event:
            yield from _wait(event.begin, trace.duration, node, op)


def _wait(begin: float, end: float, node: str, op: str) -> Iterator[Work]:
    """Yields the time of an asynchronous op, if a step waits for it."""
    if op == RECEIVE or op.startswith(COLLECTIVE):
        yield Work(WAITING, begin, end, node, op)
    elif op.startswith(NEXT):
        yield Work(INPUT, begin, end, node, op)
