"""What a task's profiler has written (xplane.pb), as plain values."""

from __future__ import annotations

import importlib.util
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
"""The stats of events that are looked at; the others only take memory."""


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
    """What one task did; `began` in Unix nanoseconds, `duration` in nanoseconds."""

    task: str
    began: int
    duration: float
    threads: tuple[Thread, ...]


def read(file: Path, task: str, asked_at: float, seconds: float) -> Trace:
    """The trace in a file.

    Args:
        asked_at: Unix seconds, if the file does not say when it began.
        seconds: how long it should have been.
    Raises:
        TrainerError: this TensorFlow has no description of such files.
    """
    space = messages().XSpace()
    space.ParseFromString(file.read_bytes())
    began, duration = int(asked_at * 1e9), seconds * 1e9
    for plane in space.planes:
        if plane.name == ENVIRONMENT:
            told = {_key(plane, stat): stat.uint64_value for stat in plane.stats}
            began = told.get("profile_start_time") or began
            stop = told.get("profile_stop_time") or 0
            duration = float(stop - began) if stop > began else duration
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


def messages() -> ModuleType:
    """xplane_pb2 of the TensorFlow that is installed, without importing TensorFlow itself."""
    spec = importlib.util.find_spec("tensorflow")
    for place in PLACES:
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            file = Path(folder) / place / "profiler" / "protobuf" / "xplane_pb2.py"
            found = importlib.util.spec_from_file_location("_cluster_kit_xplane_pb2", file)
            if file.is_file() and found and found.loader:
                module = importlib.util.module_from_spec(found)
                found.loader.exec_module(module)
                return module
    raise TrainerError("this TensorFlow cannot describe profiles: xplane_pb2 is missing")


def _events(plane: Any, line: Any, began: int) -> Iterator[Event]:
    # Relative to the beginning, but absolute in files of older versions.
    base = line.timestamp_ns - (began if line.timestamp_ns > began // 2 else 0)
    for event in line.events:
        stats = {
            key: _value(plane, stat) for stat in event.stats if (key := _key(plane, stat)) in WANTED
        }
        name = plane.event_metadata[event.metadata_id].name
        yield Event(name, base + event.offset_ps / 1000, event.duration_ps / 1000, stats)


def _key(plane: Any, stat: Any) -> str:
    return str(plane.stat_metadata[stat.metadata_id].name)


def _value(plane: Any, stat: Any) -> Any:
    kind = stat.WhichOneof("value")
    if kind == "ref_value":
        return plane.stat_metadata[stat.ref_value].name
    return getattr(stat, kind) if kind else None


def _thread_name(plane: str, name: str) -> str:
    """Without the number that TensorFlow appends to a thread's name."""
    short = name.rpartition("/")[0] or name
    return f"{plane.strip('/')} {short}" if plane.startswith(GPU) else short
