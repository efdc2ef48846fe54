"""NVIDIA's management library, and nothing else of NVIDIA's: which GPUs this host has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import pynvml

from cluster_kit.facts import Gpu, Slice


def gpu_inventory() -> tuple[Gpu, ...]:
    """GPUs by index, with their MIG slices; none where there is no driver.

    One that does not answer (fallen off the bus, say) is left out.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_answering(range(pynvml.nvmlDeviceGetCount())))
    finally:
        pynvml.nvmlShutdown()


def driver_problem() -> str:
    """Why NVML cannot be used, "" where it can: no driver, or one that does not answer."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    pynvml.nvmlShutdown()
    return ""


def _answering(indexes: Iterable[int]) -> Iterator[Gpu]:
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
    )


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
        )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
