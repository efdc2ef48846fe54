"""Faults in real containers: each does what it says, and is measured."""

from __future__ import annotations

import json

import docker

from tests.kit import Kit, mine

SCENARIO = """
[[fault]]
kind = "freeze"
task = "evaluator-0"
at = { after = "ready" }
for = "2s"

[[fault]]
kind = "slow"
task = "worker-0"
at = { step = 10 }
cpus = 0.5
for = "1s"

[[fault]]
kind = "cut"
task = "evaluator-0"
at = { step = 20 }
for = "1s"

[[fault]]
kind = "crash"
task = "worker-0"
at = { epoch = 1 }

[[fault]]
kind = "stop"
task = "evaluator-0"
at = { epoch = 2 }

[expect]
success = true
recovers_within = "15s"
"""


def test_every_kind_of_fault_is_injected_survived_and_measured(
    kit: Kit, client: docker.DockerClient
) -> None:
    scenario = kit.root / "scenario.toml"
    scenario.write_text(SCENARIO)
    done = kit.run("drill", "smoke", str(scenario), "--name", kit.name, "--json",
                   "--args=--epochs 4 --steps-per-epoch 40")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["passed"] and facts["misses"] == []
    freeze, slow, cut, crash, stop = facts["faults"]
    assert not any(fault["not_injected"] for fault in facts["faults"])
    assert (crash["detected_by"], crash["restarts"]) == ("die", 1)
    assert crash["detected_after_s"] < 5
    assert (stop["detected_by"], stop["restarts"]) == ("die", 1)
    assert [fault["restarts"] for fault in (freeze, slow, cut)] == [0, 0, 0]
    run = kit.root / "runs" / kit.name / "latest"
    assert json.loads((run / "drill.json").read_text()) == facts
    assert mine(client, kit.name) == ([], [])
