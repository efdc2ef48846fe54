"""The machines on which the speed-up is measured, and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.cli import compare as verb
from cluster_kit.compare import speedup
from cluster_kit.compare.speedup import Machines, Speed
from cluster_kit.errors import Interrupted, TrainingFailed
from cluster_kit.facts import HostFacts
from cluster_kit.platforms.platform import load, plan
from tests.make import OWN, ROOT, host, inputs
from tests.unit.command_line import Cli

MANIFEST = ROOT / "compose" / f"{speedup.MANIFEST}.toml"
SPEEDS = [Speed(1, 10.0, 0.62, 0.9), Speed(2, 16.0, 1.0, 1.8), Speed(4, failed="no room")]


@pytest.mark.parametrize(("cpus", "memory_gb"), [(2, 23.6), (4, 15.5), (16, 128), (1, 8)])
def test_all_machines_fit_on_the_host_at_once(cpus: int, memory_gb: float) -> None:
    each = speedup.machines(4, cpus, memory_gb)
    facts = host(cpus=cpus, memory=int(max(memory_gb, 9.2) * 2**30))
    for workers in (1, 4):
        changes = speedup.overrides(workers, each, 30, "async")
        loaded = load(MANIFEST, changes)
        cluster = plan(loaded, inputs(loaded.manifest), facts, OWN)
        assert len(cluster.tasks) == workers + 2
        assert sum(task.cpus or 0 for task in cluster.tasks) <= cpus
        kilobits = {
            round((task.bandwidth or 0) / (task.cpus or 1) / 1000) for task in cluster.tasks
        }
        assert max(kilobits) - min(kilobits) == 0
        assert max(kilobits) == pytest.approx(50_000, rel=0.01), "as 100 Mbit/s to 2 CPUs"


def test_a_large_host_has_full_size_machines() -> None:
    assert speedup.machines(4, 16, 128) == Machines(1.0, 8.0)
    assert speedup.machines(4, 2, 128).scale == pytest.approx(0.15)


def test_every_replica_makes_the_same_number_of_steps() -> None:
    def steps(workers: int, update: str) -> str:
        arguments = speedup.overrides(workers, Machines(1.0, 8.0), 30, update)["extra_args"]
        return str(arguments[arguments.index("--steps") + 1])

    assert [steps(n, "async") for n in (1, 4)] == ["60", "150"]
    assert [steps(n, "sync") for n in (1, 4)] == ["30", "30"]


def test_speed_ups_are_relative_to_the_first_run() -> None:
    assert speedup.speedups(SPEEDS) == [1.0, 1.6, None]
    assert speedup.speedups([Speed(1, failed="x"), Speed(2, 4.0)]) == [None, None]


def test_the_verb_writes_a_table_and_its_facts(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts: HostFacts = host(cpus=2)
    monkeypatch.setattr(verb, "gather", lambda *_: facts)
    monkeypatch.setattr(verb, "measure_all", lambda _host, counts, *_: iter(SPEEDS[: len(counts)]))
    result = cli("speedup", "--workers", "1,2")
    assert result.code == 0, result.err
    assert "1 worker: " in result.err and "2 workers: " in result.err
    assert str(root / "build" / "speedup" / "speedup.json") in result.err.replace("\n", "")
    assert "1.60" in result.out and "at 22.5% of its CPUs and bandwidth: cpus 0.45" in result.out
    kept = json.loads((root / "build" / "speedup" / "speedup.json").read_text())
    assert [row["speedup"] for row in kept["results"]] == [1.0, 1.6]
    failing = cli("speedup", "--workers", "1", "--workers", "2", "--workers", "4", "--json")
    assert failing.code == TrainingFailed.exit_code
    assert json.loads(failing.out)["results"][2]["failed"] == "no room"
    assert cli("speedup").code == Interrupted.exit_code


def test_an_interruption_before_any_result_keeps_an_earlier_one(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> object:
        raise Interrupted("the measurement was interrupted", "")

    monkeypatch.setattr(verb, "gather", lambda *_: host(cpus=2))
    monkeypatch.setattr(verb, "measure_all", interrupted)
    monkeypatch.setattr(verb, "run_all", interrupted)
    for command in ("speedup", "compare"):
        kept = root / "build" / command / f"{command}.json"
        kept.parent.mkdir(parents=True)
        kept.write_text("{}")
        assert cli(command).code == Interrupted.exit_code
        assert kept.read_text() == "{}", command


def test_a_run_without_a_speed_is_said_to_have_none() -> None:
    assert verb._speedup_summary(Speed(1)) == "1 worker: too few steps to tell its speed"
    assert verb._speedup_summary(Speed(2, 3.5)) == "2 workers: 3.5 images/s"
