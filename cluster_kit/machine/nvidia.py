"""Reads the GPUs of this host with NVIDIA's management library (NVML)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import pynvml

from cluster_kit.facts import Gpu, Slice


def gpu_inventory() -> tuple[Gpu, ...]:
    """GPUs by index, with their MIG slices; () if there is no driver.

    A GPU that does not respond, fallen off the bus for example, is left out.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_responding(range(pynvml.nvmlDeviceGetCount())))
    finally:
        pynvml.nvmlShutdown()


def driver_problem() -> str:
    """Why NVML cannot be used: no driver, or one that does not respond; "" if it can."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    pynvml.nvmlShutdown()
    return ""


def _responding(indexes: Iterable[int]) -> Iterator[Gpu]:
    for index in indexes:
        with contextlib.suppress(pynvml.NVMLError):
            yield _gpu(index)


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return Gpu(
        index=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        memory=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
        mig=_in_mig_mode(handle),
        slices=tuple(_slices(handle)),
        pci=_pci(handle),
        users=_users(handle),
    )


def _users(handle: Any) -> tuple[str, ...]:
    """The processes that compute on a GPU or slice; those that only draw on it are left out."""
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        return ()
    return tuple(map(_process, sorted(processes, key=lambda process: int(process.pid))))


def _process(process: Any) -> str:
    """`process 123 (python3), 10.2 GiB`; a name or a size that is not known is left out."""
    name, size = "", ""
    with contextlib.suppress(pynvml.NVMLError, UnicodeDecodeError):
        program = _text(pynvml.nvmlSystemGetProcessName(process.pid)).split(maxsplit=1)
        name = f" ({program[0].rpartition('/')[2]})" if program else ""
    if process.usedGpuMemory:
        size = f", {process.usedGpuMemory / 2**30:.1f} GiB"
    return f"process {process.pid}{name}{size}"


def _pci(handle: Any) -> str:
    try:
        return _text(pynvml.nvmlDeviceGetPciInfo(handle).busId)
    except pynvml.NVMLError:
        return ""


def _in_mig_mode(handle: Any) -> bool:
    try:
        mode, _pending = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:
        return False
    return bool(mode)


def _slices(handle: Any) -> Iterator[Slice]:
    """The MIG devices of a GPU in MIG mode. Their indexes may have holes."""
    if not _in_mig_mode(handle):
        return
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError:
            continue
        yield Slice(
            index=index,
            uuid=_text(pynvml.nvmlDeviceGetUUID(part)),
            name=_text(pynvml.nvmlDeviceGetName(part)).split("MIG")[-1].strip() or f"slice {index}",
            memory=int(pynvml.nvmlDeviceGetMemoryInfo(part).total),
            users=_users(part),
        )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
