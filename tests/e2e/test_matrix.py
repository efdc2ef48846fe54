"""A part of the matrix in real containers: all-reduce, whose tasks all stop if one is lost."""

from __future__ import annotations

import json
from typing import Any

import docker
import pytest

from tests.e2e.evidence import log
from tests.kit import Kit, mine

EPOCHS, STEPS = 20, 30
MANIFEST = f"""
format = 1
name = "all-reduce"
chief = 0
worker = 2
ps = 0
program = "classifier"
args = [
  "--strategy", "all-reduce", "--model", "cnn", "--image-size", "8", "--batch-size", "16",
  "--epochs", "{EPOCHS}", "--steps-per-epoch", "{STEPS}", "--learning-rates", "0:2e-3",
]
data = "digits"
"""


@pytest.mark.more
def test_a_role_survives_several_faults_in_one_run(kit: Kit, client: docker.DockerClient) -> None:
    """After each fault all tasks continue from the backup, and no epoch is trained twice."""
    (kit.root / "compose" / f"{kit.name}.toml").write_text(MANIFEST)
    cells = ("--role=worker", "--role=leader", "--fault=crash", "--fault=freeze 10 s")
    done = kit.run("matrix", kit.name, *cells, "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert [(one["role"], one["task"], one["fault"]) for one in found] == [
        ("leader", "worker-0", "crash"), ("leader", "worker-0", "freeze 10 s"),
        ("worker", "worker-1", "crash"), ("worker", "worker-1", "freeze 10 s"),
    ], done.stderr  # fmt: skip
    for one in found:
        assert (one["verdict"], one["reason"]) == ("went on", "finished"), one
        assert one["left_behind"] == []
        assert one["steps_lost"] <= one["steps_at_risk"]
    ran = Kit(kit.root, f"{kit.name}-matrix")
    assert ran.outcome()["metrics"]["updates"] == EPOCHS * STEPS, "lost, or trained twice"
    assert "the connection to worker-1 was lost" in log(ran, "worker-0")
    assert mine(client, kit.name) == ([], [])
