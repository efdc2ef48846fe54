"""Runs a drill in real containers, and returns its findings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import docker

from tests.kit import Kit, mine

CALM = "1s"
"""Seconds of training between two faults: a fast machine makes many steps in them, and must not
finish."""
Fault = tuple[str, str, str]
"""Kind, task, and further keys as TOML."""


@dataclass(frozen=True)
class Drilled:
    """The facts of a drill that passed, and its output."""

    facts: dict[str, Any]
    said: str

    @property
    def faults(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.facts["faults"]
        return found


def drilled(
    kit: Kit, client: docker.DockerClient, manifest: str, faults: Sequence[Fault], *more: str
) -> Drilled:
    """Run these faults, each after the cluster has recovered from the one before; all must be
    survived."""
    scenario = kit.root / "scenario.toml"
    scenario.write_text("".join(map(written, faults)) + '[expect]\nrecovers_within = "60s"\n')
    done = kit.run("drill", manifest, str(scenario), "--name", kit.name, "--json", *more)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["passed"] and facts["success"] and facts["misses"] == []
    assert not any(fault["not_injected"] for fault in facts["faults"])
    run = kit.root / "runs" / kit.name / "latest"
    assert json.loads((run / "drill.json").read_text()) == facts
    assert_reported(facts, json.loads((run / "report.json").read_text()))
    assert mine(client, kit.name) == ([], [])
    return Drilled(facts, done.stderr)


def assert_reported(facts: dict[str, Any], report: dict[str, Any]) -> None:
    """Assert that the report lists each fault, and shows it on the lane of its task."""
    assert [(one["number"], one["task"]) for one in report["faults"]] == [
        (one["number"], one["task"]) for one in facts["faults"]
    ]
    for task in report["tasks"]:
        marks = [mark for mark in task["marks"] if mark["kind"] == "drill"]
        assert len(marks) == sum(fault["task"] == task["name"] for fault in facts["faults"])
        broken = [span for span in task["over"] if span["state"] == "broken"]
        lasting = [one for one in report["faults"] if one["task"] == task["name"] and one["over"]]
        assert [span["begin"] for span in broken] == [one["at"] for one in lasting]


def written(fault: Fault) -> str:
    kind, task, more = fault
    at = "" if "at =" in more else f'at = {{ calm = "{CALM}" }}\n'
    return f'[[fault]]\nkind = "{kind}"\ntask = "{task}"\n{at}{more}\n'
