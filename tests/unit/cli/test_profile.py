"""`profile`: which task takes the trace, what is printed, and its errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hosts import Machine
from tests.unit.cli.clusters_up import ClustersUp
from tests.unit.command_line import Cli
from tests.unit.stories import container

SHARES = {"compute": 0.3, "waiting": 0.5, "sending": 0.1, "input": 0, "dispatch": 0.1, "idle": 0}
ROW = {
    "seconds": 2.0, "runs": 40, "shares": SHARES, "waits_for": "variables",
    "longest_ops": [{"name": "[b]conv", "op": "Conv2D", "count": 40, "ms": 61.25}],
    "longest_waits": [],
}  # fmt: skip
FACTS: dict[str, Any] = {
    "format": 1, "began": 1.0, "seconds": 2.0, "tasks": {"worker-0": ROW}, "missing": {},
    "trace": "trace.json.gz", "trace_bytes": 303_000, "folder": "profile/now",
    "tensorboard": "plugins/profile/now", "steps_per_s": {"before": 20.0, "during": 18.0},
}  # fmt: skip


@dataclass
class FakeEngine(ClustersUp):
    asked: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    says: str = json.dumps(FACTS)

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> str:
        assert within_s > 60
        self.asked.append((container_id, command))
        return f"a warning of a library\n{self.says}\n"


@pytest.fixture(autouse=True)
def engine(machine: Machine) -> FakeEngine:
    fake = FakeEngine()
    machine.connects(lambda: fake)
    fake.up["demo"] = [
        replace(container(name), id=name, state="running", output="/runs/demo/1/output")
        for name in ("chief-0", "worker-0", "ps-0", "evaluator-0")
    ]
    return fake


def test_all_servers_are_traced_by_the_leader(cli: Cli, engine: FakeEngine) -> None:
    result = cli("profile", "demo", "--seconds", "2")
    assert result.code == 0, result.err
    ((asked, command),) = engine.asked
    assert asked == "chief-0"
    assert command[-5:] == ("profile", "2", "chief-0", "worker-0", "ps-0")
    rows = [line.split()[:5] for line in result.out.splitlines()]
    assert ["worker-0", "40", "50.0", "30", "%"] in rows
    assert "[b]conv (Conv2D)" in result.out and "61.2" in result.out
    assert "steps/s: 20 before, 18 while it was traced (10 % slower)" in result.err
    assert "/runs/demo/1/output/profile/now/trace.json.gz, 0.3 MB" in result.err
    assert "ui.perfetto.dev" in result.err and "chrome://tracing" in result.err


def test_only_the_leader_of_an_all_reduce_is_traced_if_none_is_named(
    cli: Cli, engine: FakeEngine
) -> None:
    """TensorFlow's profiler can crash the others."""
    engine.up["demo"] = [
        replace(container(name), id=name, state="running", leader=name == "worker-0")
        for name in ("worker-0", "worker-1", "evaluator-0")
    ]
    assert (
        "tracing demo for 2 s, only worker-0: TensorFlow's profiler" in cli("profile", "demo").err
    )
    named = cli("profile", "demo", "worker-0", "worker-1").err
    assert "tracing demo for 2 s\n" in named
    assert [command[3:] for _, command in engine.asked] == [
        ("2", "worker-0"), ("2", "worker-0", "worker-1"),
    ]  # fmt: skip


def test_output_as_json(cli: Cli) -> None:
    result = cli("profile", "demo", "--json")
    assert json.loads(result.out)["path"] == "/runs/demo/1/output/profile/now/trace.json.gz"
    assert result.err == ""


def test_only_the_named_tasks_are_traced(cli: Cli, engine: FakeEngine, root: Path) -> None:
    assert cli("profile", "demo", "ps-0", "ps-0").code == 0
    output = str(root / "runs" / "demo" / "1" / "output")
    engine.up["demo"] = [replace(one, output=output) for one in engine.up["demo"]]
    assert cli("profile", "ps-0").code == 0
    assert [command[-2:] for _, command in engine.asked] == [("2", "ps-0")] * 2


def test_another_task_takes_the_trace_if_the_leader_does_not_run(
    cli: Cli, engine: FakeEngine
) -> None:
    engine.up["demo"][0] = replace(engine.up["demo"][0], state="paused")
    assert cli("profile", "demo").code == 0
    assert engine.asked[0][0] == "worker-0"


def test_a_missing_task_is_named_and_the_others_are_kept(cli: Cli, engine: FakeEngine) -> None:
    engine.says = json.dumps({**FACTS, "missing": {"ps-0": "it did not answer in time"}})
    result = cli("profile", "demo")
    assert result.code == 0
    assert "ps-0 is missing in the trace: it did not answer in time" in result.err


def test_a_trace_without_a_step_is_reported(cli: Cli, engine: FakeEngine) -> None:
    without = {**FACTS, "tasks": {"worker-0": {**ROW, "runs": 0}}}
    for during, why in ((0.0, "profile while it trains, or for longer"), (18.0, "a step outside")):
        engine.says = json.dumps({**without, "steps_per_s": {"before": 20.0, "during": during}})
        assert f"no step is seen in 2 s of trace: {why}" in cli("profile", "demo").err


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (("gone",), 2, "no cluster `gone`", "there are: demo, ended"),
        (("ended",), 3, "no task of ended is running", "start it with `cluster-kit up ended`"),
        (("demo", "worker-7"), 2, "demo has no task worker-7", "worker-0"),
        (("demo", "evaluator-0"), 2, "evaluator-0 has no TensorFlow server", "chief-0"),
        (("demo", "--seconds", "0"), 2, "--seconds 0: a profile takes more than 0", "2"),
        (("demo", "--seconds", "-1"), 2, "--seconds -1: a profile takes", "2"),
        (("demo", "--seconds", "60.5"), 2, "--seconds 60.5: ", "at most 60"),
        (("demo", "--seconds", "nan"), 2, "--seconds nan: ", "at most 60"),
    ],
)
def test_invalid_arguments_are_refused(
    cli: Cli, engine: FakeEngine, arguments: Sequence[str], code: int, message: str, hint: str
) -> None:
    engine.up["ended"] = []
    result = cli("profile", *arguments)
    assert result.code == code
    assert message in result.err and hint in result.err
    assert "tracing" not in result.err
    assert not engine.asked


def test_no_running_task_is_an_error(cli: Cli, engine: FakeEngine) -> None:
    engine.up["demo"] = [replace(one, state="exited") for one in engine.up["demo"]]
    result = cli("profile", "demo")
    assert result.code == 3
    assert "no task of demo is running: nothing can be traced" in result.err


def test_a_trace_without_any_task_is_an_error(cli: Cli, engine: FakeEngine) -> None:
    engine.says = "error: no task could be traced: ps-0: no TensorFlow server answers there"
    result = cli("profile", "demo")
    assert result.code == 3
    assert "error: no task could be traced: ps-0: no TensorFlow server" in result.err
    assert "`cluster-kit status demo`" in result.err
    assert "only under a strategy for several tasks" in result.err


def test_a_task_that_ends_while_it_is_traced_is_named(
    cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(container_id: str, command: Sequence[str], within_s: int) -> str:
        engine.up["demo"] = [replace(one, state="exited") for one in engine.up["demo"]]
        return ""

    monkeypatch.setattr(engine, "ask", ask)
    result = cli("profile", "demo")
    assert result.code == 3
    assert "error: chief-0 ended before the trace was complete" in result.err
    assert "--seconds" in result.err


def test_no_answer_at_all_is_an_error(cli: Cli, engine: FakeEngine, monkeypatch) -> None:
    monkeypatch.setattr(engine, "ask", lambda *_: "")
    assert "error: chief-0 did not return a profile in time" in cli("profile", "demo").err


@pytest.mark.parametrize("answer", ["", "usage: python3 -m trainer serve", "{broken", "{}"])
def test_an_invalid_answer_is_an_error(cli: Cli, engine: FakeEngine, answer: str) -> None:
    engine.says = answer
    result = cli("profile", "demo")
    assert result.code == 4
    assert "chief-0 did not return a profile, but:" in result.err
