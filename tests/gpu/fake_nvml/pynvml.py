"""Replaces nvidia-ml-py if it comes first in PYTHONPATH, with the functions that the kit uses.

The environment variable FAKE_NVML has the GPUs as JSON, `[{"uuid": …, "name": …, "memory": …}]`,
memory in bytes; without it there is no driver. `"slices": {"0": {…}, "3": {…}}` puts a GPU into MIG
mode, `"lost": true` makes it fail to answer. Names and behaviour are nvidia-ml-py's own.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

GPUS = "FAKE_NVML"
_MOST_SLICES = 7


class NVMLError(Exception):
    """Any of the library's errors."""


class NVMLError_LibraryNotFound(NVMLError):
    def __str__(self) -> str:
        return "NVML Shared Library Not Found"


class NVMLError_Uninitialized(NVMLError):
    def __str__(self) -> str:
        return "Uninitialized"


class NVMLError_NotSupported(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


class NVMLError_NotFound(NVMLError):
    def __str__(self) -> str:
        return "Not Found"


class NVMLError_GpuIsLost(NVMLError):
    def __str__(self) -> str:
        return "GPU is lost"


@dataclass(frozen=True)
class _Handle:
    facts: dict[str, Any]
    part_of: str = ""


_users = 0


def nvmlInit() -> None:
    global _users
    if GPUS not in os.environ:
        raise NVMLError_LibraryNotFound
    _users += 1


def nvmlShutdown() -> None:
    global _users
    _check()
    _users -= 1


def nvmlDeviceGetCount() -> int:
    _check()
    return len(_gpus())


def nvmlDeviceGetHandleByIndex(index: int) -> _Handle:
    _check()
    facts = _gpus()[index]
    if facts.get("lost"):
        raise NVMLError_GpuIsLost
    return _Handle(facts)


def nvmlDeviceGetUUID(handle: _Handle) -> str:
    _check()
    return str(handle.facts["uuid"])


def nvmlDeviceGetName(handle: _Handle) -> str:
    _check()
    name = str(handle.facts["name"])
    return f"{handle.part_of} MIG {name}" if handle.part_of else name


def nvmlDeviceGetPciInfo(handle: _Handle) -> SimpleNamespace:
    _check()
    if "pci" not in handle.facts:
        raise NVMLError_NotSupported
    return SimpleNamespace(busId=str(handle.facts["pci"]))


def nvmlDeviceGetMemoryInfo(handle: _Handle) -> SimpleNamespace:
    _check()
    return SimpleNamespace(total=int(handle.facts["memory"]), free=0, used=0)


def nvmlDeviceGetComputeRunningProcesses(handle: _Handle) -> list[SimpleNamespace]:
    """Reads `"processes": {"123": ["/usr/bin/python3 train.py", BYTES]}`; null bytes are
    unknown."""
    _check()
    if handle.facts.get("processes") == "unknown":
        raise NVMLError_NotSupported
    found = handle.facts.get("processes", {})
    return [SimpleNamespace(pid=int(pid), usedGpuMemory=size) for pid, (_, size) in found.items()]


def nvmlSystemGetProcessName(pid: int) -> str:
    _check()
    for gpu in _gpus():
        for facts in (gpu, *(gpu.get("slices") or {}).values()):
            if name := facts.get("processes", {}).get(str(pid), [""])[0]:
                return str(name)
    raise NVMLError_NotFound


def nvmlDeviceGetMigMode(handle: _Handle) -> list[int]:
    """Returns current and pending mode; raises if the GPU does not support MIG."""
    _check()
    if "slices" not in handle.facts:
        raise NVMLError_NotSupported
    return [int(handle.facts["slices"] is not None)] * 2


def nvmlDeviceGetMaxMigDeviceCount(handle: _Handle) -> int:
    _check()
    return _MOST_SLICES


def nvmlDeviceGetMigDeviceHandleByIndex(handle: _Handle, index: int) -> _Handle:
    _check()
    try:
        return _Handle(handle.facts["slices"][str(index)], part_of=handle.facts["name"])
    except KeyError:
        raise NVMLError_NotFound from None


def _gpus() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(os.environ[GPUS])
    return found


def _check() -> None:
    if not _users:
        raise NVMLError_Uninitialized
