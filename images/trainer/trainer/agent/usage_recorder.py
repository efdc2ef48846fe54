"""Records this task's usage in progress/TASK.usage: one JSON object per line, one line a second."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent import usage
from trainer.agent.outcome import traffic
from trainer.agent.progress_file import Progress
from trainer.agent.task import Address, Task, addresses_by_task
from trainer.agent.tcp_connections import Sent, connections
from trainer.agent.usage import cpu_and_faults

PROCESSES = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_in_use() -> int:
    """Bytes in use as the control group counts them; else the sum of the processes' private
    memory."""
    counted = usage.control_group_memory()
    return memory_of_processes() if counted is None else counted


def memory_of_processes(processes: Path = PROCESSES) -> int:
    """The processes' private resident memory in bytes; file pages count as shared."""
    pages = 0
    for statm in processes.glob("[0-9]*/statm"):
        try:
            _, resident, shared, *_ = map(int, statm.read_text().split())
        except (OSError, ValueError):
            continue  # it has already ended
        pages += max(resident - shared, 0)
    return pages * PAGE


NVML_LIBRARY = "libnvidia-ml.so.1"


class _Rates(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    """nvmlMemory_v2_t. Here `used` is without what the driver keeps for itself, which
    nvmlMemory_t counts as used: 0.5 GB of an idle H100."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


MEMORY_VERSION = ctypes.sizeof(_Memory) | 2 << 24
"""nvmlMemory_v2, of drivers from 510 on. Source: NVML_STRUCT_VERSION in nvml.h."""


@dataclass(frozen=True)
class GpuUse:
    """The share of the last moment in which the GPU computed (0 to 1), and its memory in bytes.

    None: the driver does not report it, as the utilization of a MIG slice.
    """

    busy: float | None
    memory: int | None


class Driver:
    """NVML of this container.

    Args:
        uuids: of the GPUs to measure. Without any, or without a driver, nothing is measured.
    """

    def __init__(self, uuids: Sequence[str], library: str = NVML_LIBRARY) -> None:
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
        """Each GPU's current use, in the order of `uuids`."""
        return [self._of(handle) for handle in self._handles]

    def _of(self, handle: ctypes.c_void_p) -> GpuUse:
        assert self._nvml is not None
        rates, memory = _Rates(), _Memory(version=MEMORY_VERSION)
        no_rates = self._nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates))
        try:
            no_memory = self._nvml.nvmlDeviceGetMemoryInfo_v2(handle, ctypes.byref(memory))
        except AttributeError:  # a driver before 510
            no_memory = True
        return GpuUse(
            busy=None if no_rates else rates.gpu / 100,
            memory=None if no_memory else memory.used,
        )


SUFFIX = ".usage"
EVERY_S = 1.0
MANY = 10
"""The tasks of a cluster that each take a sample every EVERY_S. Of more tasks each takes fewer, so
that all together take as many."""
LATER_S, SELDOM_S = 3600.0, 5.0
"""Seconds between two samples after the first hour, so that the file stays small."""
PATIENCE_S = 1.0
"""Maximum seconds for the last sample, since a stopped container must end soon."""
PEERS_EVERY = 10
"""Number of samples after which the bytes sent to each task are written, too."""
PEERS_SELDOM = 5
"""Samples between two readings of the connections in a long run. They are read more often at its
beginning, since a short program's connections end with it."""


def pause_s(tasks: int, passed_s: float) -> float:
    """The seconds until a task's next sample, in a cluster of so many, so long after its start."""
    often = EVERY_S * max(1.0, tasks / MANY)
    return SELDOM_S if passed_s > LATER_S else min(often, SELDOM_S)


class Recorder:
    """Samples from its start to `stop`; the first and the last sample are written at once."""

    def __init__(self, task: Task) -> None:
        self._progress = Progress(task.progress_file.with_suffix(SUFFIX), again=False)
        self._sent = Sent(tasks_by_ip(task))
        self._told: dict[str, int] = {}
        self._gpus = Driver([gpu.uuid for gpu in task.gpus if gpu.uuid])
        self._samples = self._look_at = 0
        self._tasks = len(addresses_by_task(task.cluster))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write the last sample."""
        self._over.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        began = time.monotonic()
        over = False
        while not over:
            self._sample(last=False)
            over = self._over.wait(pause_s(self._tasks, time.monotonic() - began))
        self._sample(last=True)

    def _sample(self, last: bool) -> None:
        network = traffic()
        keys: dict[str, object] = {
            "cpu_s": round(cpu_and_faults()[0], 3),
            "memory": memory_in_use(),
            "rx_bytes": network.get("rx_bytes", 0),
            "tx_bytes": network.get("tx_bytes", 0),
        }
        if last or self._samples >= self._look_at:
            self._told = self._sent.look(connections())
            self._look_at = self._samples + min(1 + self._samples // 2, PEERS_SELDOM)
        if last or self._samples % PEERS_EVERY == 0:
            keys["sent_to"] = self._told
        if gpus := self._gpus.look():
            keys["gpus"] = [{"busy": gpu.busy, "memory": gpu.memory} for gpu in gpus]
        self._samples += 1
        self._progress.write("usage", **keys)


def tasks_by_ip(task: Task) -> dict[str, str]:
    """Names of the cluster's other tasks by IP address; {} if several share one."""
    addresses = addresses_by_task(task.cluster)
    tasks = {Address.parse(text, "TF_CONFIG").host: name for name, text in addresses.items()}
    if len(tasks) < len(addresses):
        return {}
    return {ip: name for ip, name in tasks.items() if name != task.name}
