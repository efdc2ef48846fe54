"""A command prepares once: it reads the manifest, gathers the host's facts and probes GPUs once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cluster_kit.cli import doctor as doctor_verb
from cluster_kit.cli import provision
from cluster_kit.machine import host_facts
from cluster_kit.platforms.engine import Engine
from cluster_kit.run import prepare
from cluster_kit.run.request import Request
from cluster_kit.workspace import Workspace
from tests.fakes.hosts import Machine, fake_host
from tests.fakes.stage import Stage
from tests.make import gpus, host, network
from tests.unit.command_line import Cli


def counted(asked: Counter[str], what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        asked[what] += 1
        return function(*arguments, **options)

    return call


@pytest.fixture
def asked(
    root: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> Counter[str]:
    """Records what a command has asked, on a host with two GPUs."""
    counts: Counter[str] = Counter()
    engine = stage.engine
    machine.connects(lambda: engine)
    monkeypatch.setattr(provision, "image_size", lambda *_: 10**9)
    machine.host = replace(machine.host, gpus=counted(counts, "driver", lambda: gpus(2)))
    monkeypatch.setattr(prepare, "load", counted(counts, "manifest", prepare.load))
    counting = counted(counts, "facts", host_facts.gather)
    monkeypatch.setattr(prepare, "gather", counting)
    monkeypatch.setattr(doctor_verb, "gather", counting)
    monkeypatch.setattr(doctor_verb, "check_strangers", lambda *_: [])
    monkeypatch.setattr(engine, "info", counted(counts, "info", engine.info))
    monkeypatch.setattr(engine, "gpu_refusal", counted(counts, "gpu probe", lambda *_: ""))
    return counts


@pytest.mark.parametrize(
    "words",
    [
        ("up", "demo"),
        ("render", "demo"),
        ("render", "demo", "--check"),
        ("doctor", "demo"),
        ("image", "build", "demo"),
    ],
    ids=" ".join,
)
def test_a_verb_prepares_once(words: tuple[str, ...], cli: Cli, asked: Counter[str]) -> None:
    if "--check" in words:
        cli("render", "demo")
        asked.clear()
    result = cli(*words)
    assert result.code == 0, result.err
    once = ("manifest", "facts", "driver", "info", "gpu probe")
    assert dict(asked) == dict.fromkeys(once, 1)


def test_doctor_without_a_manifest_gathers_facts_once(
    cli: Cli, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_verb, "left_behind", lambda *_: [])
    assert cli("doctor").code == 0
    assert dict(asked) == dict.fromkeys(("facts", "driver", "info", "gpu probe"), 1)


class Busy:
    """An engine that answers only questions about networks."""

    def __init__(self, *taken: str) -> None:
        self._taken = taken

    def networks(self) -> list[tuple[str, str, str]]:
        return [("other", "", cidr) for cidr in self._taken]

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        return ()

    gpus_reserved = gpus_taken

    def gpu_refusal(self, _driver: str, _device: str) -> str:
        return ""


def test_preparing_again_reads_only_the_networks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = host(networks=(network("172.17.0.0/16"),))
    monkeypatch.setattr(prepare, "gather", lambda *_: facts)
    request = Request("demo", {"worker": 3})
    first = prepare.prepare(fake_host(), request, Workspace(root), None)
    (root / "compose/demo.toml").unlink()
    again = prepare.prepare_again(fake_host(), first, cast(Engine, Busy(str(first.cluster.subnet))))
    assert not again.cluster.subnet.overlaps(first.cluster.subnet)
    assert (again.manifest, again.inputs, again.hints) == (
        first.manifest,
        first.inputs,
        first.hints,
    )
    assert len(again.cluster.of("worker")) == 3
