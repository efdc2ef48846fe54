"""`image check --gpu` runs the GPU variant with this host's GPUs, in the way that the engine
supports."""

from __future__ import annotations

import json

import pytest

from cluster_kit.cli import provision
from cluster_kit.facts import HostFacts
from cluster_kit.image import kit_image
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.make import gpus, host
from tests.unit.command_line import Cli


@pytest.fixture
def ran(root: object, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: object) -> Completed:
        commands.append(command)
        line = {"name": "training step on a GPU", "ok": True, "detail": "H200", "seconds": 1.0}
        return Completed(command, 0, json.dumps(line) + "\n", "")

    machine.starts(run=run)
    monkeypatch.setattr(kit_image, "caller_of", lambda _connect: "0:0")
    monkeypatch.setattr(provision, "image_present", lambda *_: True)
    machine.connects(lambda: None)
    return commands


def on(facts: HostFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "gather", lambda *_: facts)


@pytest.mark.parametrize(
    ("driver", "words"), [("nvidia", "--gpus=all"), ("cdi", "--device=nvidia.com/gpu=all")]
)
def test_the_container_gets_all_gpus_and_trains_on_one(
    driver: str, words: str, cli: Cli, ran: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    on(host(gpus=gpus(1), gpu_driver=driver), monkeypatch)
    result = cli("image", "check", "--gpu")
    assert result.code == 0, result.err
    (command,) = ran
    assert words in command
    assert command[-1] == "--gpu"
    assert any(word.startswith("cluster-kit/trainer:gpu-") for word in command)


def test_without_the_option_no_gpu_is_requested(cli: Cli, ran: list[tuple[str, ...]]) -> None:
    assert cli("image", "check").code == 0
    (command,) = ran
    assert command[-1] == "/opt/trainer/check_image.py"
    assert not [word for word in command if "gpu" in word]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (host(no_gpu="NVML Shared Library Not Found"), "NVML Shared Library Not Found"),
        (host(gpus=gpus(1), gpu_refusal="no such driver"), "the engine refuses GPUs"),
    ],
    ids=["no GPU", "a refusal"],
)
def test_a_host_without_gpus_gets_an_error_with_a_fix(
    facts: HostFacts, why: str, cli: Cli, ran: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    on(facts, monkeypatch)
    result = cli("image", "check", "--gpu")
    assert result.code == 3
    assert why in result.err and "cluster-kit doctor" in result.err
    assert ran == []
