"""The pods of a Kubernetes file, run as a node would run them: the job trains and ends."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.kit import Kit
from tests.kubelet.node import running

WITHIN_S = 180


def test_the_pods_train_and_end_as_their_leader_says(kit: Kit, elsewhere: Path) -> None:
    short = "--model cnn --image-size 8 --epochs 1 --steps-per-epoch 10"
    on = ("--engine", "kubernetes", "--name", kit.name)
    rendered = kit.run("render", "smoke", *on, "--args", short)
    assert rendered.returncode == 0, rendered.stderr
    file = kit.root / "compose" / kit.name / "kubernetes.yaml"
    objects = [one for one in yaml.safe_load_all(file.read_text()) if one]
    with running(objects, f"{kit.name}-pods", elsewhere) as node:
        ended = node.run(WITHIN_S)
        leader = node.logs(f"ck-{kit.name}-chief-0")
    roles = ("chief", "worker", "ps", "evaluator")
    assert ended == {f"ck-{kit.name}-{role}-0": 0 for role in roles}, leader
    assert set(node.starts.values()) == {1}
    output = elsewhere / "claims" / f"ck-{kit.name}-output" / kit.name
    lines = (output / "progress" / "chief-0.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    assert (last["event"], last["reason"], last["exit_code"]) == ("end", "finished", 0)
    events = {json.loads(line)["event"] for line in lines}
    assert {"ready", "end"} <= events
    scored = (output / "progress" / "evaluator-0.jsonl").read_text()
    assert '"accuracy"' in scored or '"score"' in scored, "the evaluator saw the checkpoints"
