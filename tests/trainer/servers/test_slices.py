"""A server looks whether its MIG slices are those that it was promised."""

from __future__ import annotations

import json

import pytest

from trainer.injected.gpus import cuda
from trainer.injected.gpus.cuda import CudaDevice
from trainer.servers import slices
from trainer.task import Task, read_task

PCI = "0000:86:00.0"
OWN, OTHER = (f"00000000-1111-2222-3333-44444444440{index}" for index in (0, 1))


def task(uuid: str, check: str = "on") -> Task:
    config = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}
    gpu = {"name": f"GPU 0:0 ({uuid})", "pci": PCI, "uuid": uuid}
    return read_task({
        "TF_CONFIG": json.dumps(config),
        "CLUSTER_KIT_GPUS": json.dumps([gpu]),
        "CLUSTER_KIT_GPU_CHECK": check,
    })  # fmt: skip


@pytest.fixture
def sees(monkeypatch: pytest.MonkeyPatch):
    """What the driver shows: a list that the test fills."""
    shown: list[CudaDevice] = []
    monkeypatch.setattr(cuda, "devices", lambda: shown)
    return shown


def test_another_slice_of_the_same_gpu_ends_it(sees: list[CudaDevice]) -> None:
    sees.append(CudaDevice(PCI, OTHER))
    ended = slices.broken(task(f"MIG-{OWN}"))
    assert ended is not None
    assert (ended.reason, ended.exit_code, ended.tasks) == ("gpu-missing", 3, ("worker-0",))
    assert ended.message == (
        f"worker-0 was promised GPU 0:0 (MIG-{OWN}), pci {PCI}, "
        f"sees a MIG slice (MIG-{OTHER}, pci {PCI})"
    )


@pytest.mark.parametrize(
    ("uuid", "check", "shown"),
    [
        (f"MIG-{OWN}", "on", [CudaDevice(PCI, OWN)]),
        (f"MIG-{OWN}", "off", [CudaDevice(PCI, OTHER)]),
        (f"MIG-{OWN}", "on", []),
        (f"MIG-{OWN}", "on", [CudaDevice(PCI, "")]),
        (f"GPU-{OWN}", "on", [CudaDevice(PCI, OTHER)]),
    ],
    ids=["its own", "unchecked", "no driver", "an old driver", "a whole GPU: the leader asks"],
)
def test_what_does_not_end_it(
    sees: list[CudaDevice], uuid: str, check: str, shown: list[CudaDevice]
) -> None:
    sees.extend(shown)
    assert slices.broken(task(uuid, check)) is None
