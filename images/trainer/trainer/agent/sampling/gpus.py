"""How busy this task's GPUs are, as NVIDIA's driver tells (NVML); nothing where there is none."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"


class _Rates(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (
        ("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)
    )  # fmt: skip


@dataclass(frozen=True)
class GpuUse:
    """The share of the last moment in which the GPU computed (0 to 1), and its memory in bytes.

    None: the driver does not tell, as of the utilization of a MIG slice.
    """

    busy: float | None
    memory: int | None


class Driver:
    """NVML of this container.

    Args:
        uuids: of the GPUs to look at. Without any, or without a driver, there is nothing to see.
    """

    def __init__(self, uuids: Sequence[str], library: str = LIBRARY) -> None:
        self._nvml: ctypes.CDLL | None = None
        self._handles: list[ctypes.c_void_p] = []
        if not uuids:
            return
        try:
            nvml = ctypes.CDLL(library)
        except OSError:
            return
        if nvml.nvmlInit_v2():
            return
        self._nvml = nvml
        for uuid in uuids:
            handle = ctypes.c_void_p()
            if not nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
                self._handles.append(handle)

    def look(self) -> list[GpuUse]:
        """Each GPU's use now, in the order in which they were given."""
        return [self._of(handle) for handle in self._handles]

    def _of(self, handle: ctypes.c_void_p) -> GpuUse:
        assert self._nvml is not None
        rates, memory = _Rates(), _Memory()
        no_rates = self._nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates))
        no_memory = self._nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        return GpuUse(
            busy=None if no_rates else rates.gpu / 100,
            memory=None if no_memory else memory.used,
        )
