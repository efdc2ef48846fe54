"""A server checks that it sees the MIG slices, or the GPUs from a swarm, that it was promised."""

from __future__ import annotations

import json

import pytest

from trainer.agent.injected import gpu_promises
from trainer.agent.injected.gpu_promises import CudaDevice
from trainer.agent.servers import serve
from trainer.agent.task import Task, read_task

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
    """The GPUs that the driver shows: a list that the test fills."""
    shown: list[CudaDevice] = []
    monkeypatch.setattr(gpu_promises, "cuda_devices", lambda: shown)
    return shown


def test_another_slice_of_the_same_gpu_ends_the_server(sees: list[CudaDevice]) -> None:
    sees.append(CudaDevice(PCI, OTHER))
    ended = serve.gpus_missing(task(f"MIG-{OWN}"))
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
def test_gpus_that_do_not_end_the_server(
    sees: list[CudaDevice], uuid: str, check: str, shown: list[CudaDevice]
) -> None:
    sees.extend(shown)
    assert serve.gpus_missing(task(uuid, check)) is None


def on_a_swarm(given: str, number: int = 1, check: str = "on") -> Task:
    config = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}
    gpus = [f"GPU {at} of {number} of its node" for at in range(1, number + 1)]
    return read_task({
        "TF_CONFIG": json.dumps(config),
        "CLUSTER_KIT_GPUS": json.dumps([{"name": name, "pci": "", "uuid": ""} for name in gpus]),
        "CLUSTER_KIT_GPU_CHECK": check,
        "DOCKER_RESOURCE_GPU": given,
    })  # fmt: skip


def test_another_gpu_than_the_swarm_assigned_ends_the_server(sees: list[CudaDevice]) -> None:
    sees.append(CudaDevice(PCI, OTHER))
    ended = serve.gpus_missing(on_a_swarm(f"GPU-{OWN}"))
    assert ended is not None
    assert (ended.reason, ended.exit_code, ended.tasks) == ("gpu-missing", 3, ("worker-0",))
    assert ended.message == (
        f"worker-0 was promised GPU 1 of 1 of its node (GPU-{OWN}), "
        f"sees a GPU (uuid {OTHER}, pci {PCI})"
    )


@pytest.mark.parametrize(
    ("given", "check", "shown"),
    [
        (f"GPU-{OWN}", "on", [CudaDevice(PCI, OWN)]),
        (f"MIG-{OWN}", "on", [CudaDevice(PCI, OWN)]),
        (f"GPU-{OWN[:8]}", "on", [CudaDevice(PCI, OWN)]),
        (f"GPU-{OWN}", "off", [CudaDevice(PCI, OTHER)]),
        (f"GPU-{OWN}", "on", []),
        (f"GPU-{OWN}", "on", [CudaDevice(PCI, "")]),
        ("1", "on", [CudaDevice(PCI, OTHER)]),
        ("", "on", [CudaDevice(PCI, OTHER)]),
    ],
    ids=["its own", "its own slice", "abbreviated", "unchecked", "no driver: the leader asks",
         "an old driver", "a number", "not on a swarm"],
)  # fmt: skip
def test_the_gpus_that_a_swarm_assigned_are_accepted(
    sees: list[CudaDevice], given: str, check: str, shown: list[CudaDevice]
) -> None:
    sees.extend(shown)
    assert serve.gpus_missing(on_a_swarm(given, check=check)) is None


def test_the_program_of_a_task_on_a_swarm_checks_its_gpus_too(tmp_path, monkeypatch) -> None:
    """The part of the hook after TensorFlow's own: compares promised with visible GPUs."""
    from trainer.agent.injected import gpu_promises, tensorflow_devices

    left: list[str] = []

    class Mailbox:
        GPU_MISSING = "gpu-missing"
        leave_last_words = staticmethod(lambda message, reason: left.append(f"{reason}: {message}"))

    class Ended(BaseException):
        pass

    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(tensorflow_devices.os, "_exit", end)
    monkeypatch.setenv("CLUSTER_KIT_TASK", "worker-0")
    monkeypatch.setenv("CLUSTER_KIT_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.delenv("CLUSTER_KIT_GPU_CHECK", raising=False)
    task = on_a_swarm(f"GPU-{OWN}")
    tensorflow_devices.check(
        task.gpus, [gpu_promises.Gpu("NVIDIA H200", PCI, OWN)], gpu_promises, Mailbox
    )
    assert left == []
    with pytest.raises(Ended, match="3"):
        tensorflow_devices.check(
            task.gpus, [gpu_promises.Gpu("NVIDIA H200", PCI, OTHER)], gpu_promises, Mailbox
        )
    assert left == [
        f"gpu-missing: worker-0 was promised GPU 1 of 1 of its node (GPU-{OWN}), "
        f"sees NVIDIA H200 (uuid {OTHER}, pci {PCI})"
    ]
