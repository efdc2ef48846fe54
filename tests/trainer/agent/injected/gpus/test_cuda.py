"""Queries of the CUDA driver, against a test library that answers like the real one."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.agent.injected import gpu_promises
from trainer.agent.injected.gpu_promises import CudaDevice

PCI = ["0000:3B:00.0", "0000:5E:00.0"]
UUIDS = [uuid.UUID(int=1), uuid.UUID(int=2)]
INVALID_DEVICE = 101


def driver(init: int = 0, pci: int = 0) -> Any:
    """Build a libcuda with two devices; `init` and `pci` are what those calls return (0:
    success)."""

    def count(pointer: Any) -> int:
        pointer._obj.value = 2
        return 0

    def bus_id(text: Any, length: int, ordinal: int) -> int:
        text.value = PCI[ordinal].encode()[:length]
        return pci

    def octets(pointer: Any, ordinal: int) -> int:
        pointer._obj[:] = UUIDS[ordinal].bytes
        return 0

    return SimpleNamespace(
        cuInit=lambda _flags: init,
        cuDeviceGetCount=count,
        cuDeviceGetPCIBusId=bus_id,
        cuDeviceGetUuid_v2=octets,
    )


def test_each_device_has_a_bus_id_and_a_uuid() -> None:
    found = gpu_promises.cuda_devices(driver())
    assert found == [CudaDevice(p.lower(), str(u)) for p, u in zip(PCI, UUIDS, strict=True)]


def test_a_driver_that_does_not_start_shows_no_gpus() -> None:
    assert gpu_promises.cuda_devices(driver(init=100)) == []


def test_values_that_an_old_driver_lacks_stay_unknown() -> None:
    old = driver(pci=INVALID_DEVICE)
    del old.cuDeviceGetUuid_v2
    assert gpu_promises.cuda_devices(old) == [CudaDevice("", "")] * 2


def test_a_machine_without_a_driver_shows_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_promises, "CUDA_LIBRARY", "libcuda-that-is-not-there.so")
    assert gpu_promises.cuda_devices() == []
