"""The kit finds out by a trial how an engine provides GPUs: no runtime, NVIDIA's runtime, CDI."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster_kit.platforms.docker.docker_engine import connect
from cluster_kit.platforms.engine import Engine
from tests.gpu.conftest import MakeKit, inventory
from tests.gpu.second_engine import SecondEngine
from tests.kit import Kit

NO_RUNTIME = "could not select device driver"


@pytest.fixture
def own_engine() -> Engine:
    """The machine's engine, if it cannot provide GPUs."""
    engine = connect()
    if NO_RUNTIME not in engine.gpu_refusal("nvidia", "0"):
        pytest.skip("this machine's own engine really hands out GPUs")
    return engine


@pytest.fixture
def on_nvidia(nvidia_engine: SecondEngine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("DOCKER_HOST", nvidia_engine.host)
    return connect()


@pytest.fixture
def on_cdi(cdi_engine: SecondEngine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("DOCKER_HOST", cdi_engine.host)
    return connect()


def test_an_engine_without_a_runtime_refuses(own_engine: Engine) -> None:
    assert NO_RUNTIME in own_engine.gpu_refusal("nvidia", "0")


def test_nvidias_runtime_accepts_index_and_uuid_but_not_cdi(on_nvidia: Engine) -> None:
    assert on_nvidia.gpu_refusal("nvidia", "0") == ""
    assert on_nvidia.gpu_refusal("nvidia", "GPU-3333") == ""
    assert "unknown device id: 7" in on_nvidia.gpu_refusal("nvidia", "7")
    assert NO_RUNTIME in on_nvidia.gpu_refusal("cdi", "nvidia.com/gpu=0")


def test_cdi_accepts_its_own_names(on_cdi: Engine) -> None:
    assert on_cdi.gpu_refusal("cdi", "nvidia.com/gpu=0") == ""
    assert "unresolvable CDI devices" in on_cdi.gpu_refusal("cdi", "nvidia.com/gpu=7")
    assert NO_RUNTIME in on_cdi.gpu_refusal("nvidia", "0")


def test_many_probes_at_once_agree_and_leave_nothing(
    on_nvidia: Engine, nvidia_engine: SecondEngine
) -> None:
    def everything() -> str:
        listed = (("ps", "--all", "--quiet"), ("images", "--all", "--quiet"))
        return "".join(nvidia_engine.docker(*words).stdout for words in listed)

    before = everything()
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: on_nvidia.gpu_refusal("nvidia", "0"), range(6)))
    assert found == [""] * 6
    assert everything() == before


def lines(kit: Kit) -> dict[str, dict[str, str]]:
    """Returns doctor's lines by the name of the check."""
    return {check["name"]: check for check in json.loads(kit.run("doctor", "--json").stdout)}


def test_gpus_and_doctor_show_how_gpus_are_provided(
    engine: SecondEngine, make_kit: MakeKit
) -> None:
    kit = make_kit(engine, inventory(2))
    done = kit.run("gpus", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["refusal"] is None
    assert [(gpu["index"], gpu["uuid"]) for gpu in found["gpus"]] == [
        ("0", "GPU-0000"),
        ("1", "GPU-1111"),
    ]
    named = {"nvidia": "NVIDIA's runtime", "cdi": "CDI"}[found["driver"]]
    line = lines(kit)["gpus"]
    assert line["state"] == "ok"
    assert line["found"] == f"0: Stub GPU, 1: Stub GPU, handed out by {named}"


def test_gpus_that_the_engine_refuses_are_reported_with_its_message_and_the_hint(
    own_engine: Engine, make_kit: MakeKit
) -> None:
    kit = make_kit(gpus=inventory(1))
    done = kit.run("gpus", "--json")
    assert done.returncode == 3
    assert NO_RUNTIME in json.loads(done.stdout)["refusal"]
    assert "nvidia-ctk runtime configure" in " ".join(done.stderr.split())
    line = lines(kit)["gpus"]
    assert line["state"] == "warn"
    assert NO_RUNTIME in line["found"] and "restart the engine" in line["cure"]
    assert "nvidia-ctk runtime configure" in lines(kit)["gpu runtime"]["cure"]


def test_a_host_without_a_driver_can_train_on_the_cpu(make_kit: MakeKit) -> None:
    kit = make_kit()
    done = kit.run("gpus", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"driver": None, "refusal": None, "gpus": []}
    line = lines(kit)["gpus"]
    assert (line["state"], line["found"]) == ("ok", "CPU only (NVML Shared Library Not Found)")
