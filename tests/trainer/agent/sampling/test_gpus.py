"""GPUs as NVML reports them; the library is a double with its signatures."""

from __future__ import annotations

import ctypes

import pytest

from trainer.agent import usage_recorder
from trainer.agent.usage_recorder import Driver, GpuUse

NOT_SUPPORTED = 3


class Library:
    """Two GPUs: the second is a MIG slice, which has no utilization."""

    def __init__(self, works: bool = True):
        self.works = works

    def nvmlInit_v2(self):
        return 0 if self.works else 9

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        handle._obj.value = {b"GPU-1": 1, b"MIG-2": 2}.get(uuid)
        return 0 if handle._obj.value else 6

    def nvmlDeviceGetUtilizationRates(self, handle, rates):
        if handle.value == 2:
            return NOT_SUPPORTED
        rates._obj.gpu = 73
        return 0

    def nvmlDeviceGetMemoryInfo_v2(self, handle, memory):
        version, size = divmod(memory._obj.version, 1 << 24)
        assert (version, size) == (2, 40)  # sizeof nvmlMemory_v2_t
        memory._obj.total, memory._obj.used = 1 << 40, handle.value << 33
        return 0


@pytest.fixture
def library(monkeypatch):
    found = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: found)
    return found


def test_each_gpu_has_its_share_and_its_bytes(library):
    expected = [GpuUse(0.73, 1 << 33), GpuUse(None, 2 << 33)]
    assert Driver(["GPU-1", "MIG-2", "GPU-unknown"]).look() == expected


def test_an_old_driver_reports_no_memory(monkeypatch, library):
    monkeypatch.delattr(Library, "nvmlDeviceGetMemoryInfo_v2")
    assert Driver(["GPU-1"]).look() == [GpuUse(0.73, None)]


def test_a_driver_that_does_not_start_reports_no_gpus(library):
    library.works = False
    assert Driver(["GPU-1"]).look() == []


def test_without_gpus_the_driver_is_not_asked(monkeypatch):
    monkeypatch.setattr(usage_recorder.ctypes, "CDLL", lambda name: pytest.fail("asked"))
    assert Driver([]).look() == []


def test_without_a_driver_there_are_no_gpus():
    assert Driver(["GPU-1"], library="libno-such-driver.so.1").look() == []
