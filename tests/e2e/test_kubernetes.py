"""The pods of a Kubernetes file, run as a node would run them: the job trains and ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.fakes.kubernetes_server import serving
from tests.kit import Kit
from tests.kubelet.cluster import containers
from tests.kubelet.node import running

WITHIN_S = 180


def test_the_pods_train_and_end_with_their_leader(kit: Kit, elsewhere: Path) -> None:
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


@pytest.mark.more
def test_data_workers_and_their_dispatcher_die_and_training_goes_on(
    kit: Kit, elsewhere: Path
) -> None:
    on = ("--engine", "kubernetes", "--name", kit.name, "--data-workers", "2")
    long = ("--set", "evaluator=0", "--args", "--epochs 12 --steps-per-epoch 100")
    rendered = kit.run("render", "smoke", *on, *long)
    assert rendered.returncode == 0, rendered.stderr
    file = kit.root / "compose" / kit.name / "kubernetes.yaml"
    objects = [one for one in yaml.safe_load_all(file.read_text()) if one]
    progress = elsewhere / "claims" / f"ck-{kit.name}-output" / kit.name / "progress"
    killed: dict[str, int] = {}

    def kill() -> None:
        """Kill a data worker after the first epoch, and the dispatcher two epochs later."""
        path = progress / "chief-0.jsonl"
        epochs = path.read_text().count('"epoch"') if path.exists() else 0
        for after, role in ((1, "data-worker"), (3, "data-dispatcher")):
            if epochs >= after and role not in killed:
                killed[role] = epochs
                node.kill(f"ck-{kit.name}-{role}-0")

    with running(objects, f"{kit.name}-pods", elsewhere) as node:
        ended = node.run(WITHIN_S, kill)
        leader = node.logs(f"ck-{kit.name}-chief-0")
    assert set(ended.values()) == {0}, leader
    again = {pod.removeprefix(f"ck-{kit.name}-") for pod, n in node.starts.items() if n > 1}
    assert again == {"data-worker-0", "data-dispatcher-0"}
    lines = map(json.loads, (progress / "chief-0.jsonl").read_text().splitlines())
    events = [one["event"] for one in lines]
    assert (events.count("start"), events[-1]) == (1, "end")


@pytest.mark.slow  # A second cluster, for what the one above cannot show.
@pytest.mark.parametrize("jobset", ["false", "true"], ids=["Jobs", "JobSet"])
def test_up_shows_judges_and_saves_the_run_of_the_pods(
    kit: Kit, elsewhere: Path, jobset: str
) -> None:
    with containers(f"{kit.name}-pods", elsewhere) as cluster:
        cluster.knows_sets = jobset == "true"
        config = kit.root / "kubeconfig"
        with serving(cluster, config):
            on = replace(kit, extra={**kit.extra, "KUBECONFIG": str(config)})
            words = ("--engine", "kubernetes", "--set", f"kubernetes.jobset={jobset}")
            up = on.run("up", "smoke", "--name", kit.name, *words)
        assert up.returncode == 0, up.stdout + up.stderr
    outcome = kit.outcome()
    assert outcome["success"] and outcome["reason"] == "finished"
    assert outcome["metrics"]["test_accuracy"] > 0.2
    assert {task["exit_code"] for task in outcome["tasks"]} == {0}
    run = kit.root / "runs" / kit.name / "latest"
    assert "TensorFlow server ready" in (run / "logs" / "worker-0.log").read_text()
    claim = elsewhere / "claims" / f"ck-{kit.name}-output" / kit.name / run.resolve().name
    for there in (claim / "progress").glob("*.jsonl"):
        assert (run / "output" / "progress" / there.name).read_bytes() == there.read_bytes()
    assert (claim / "model").is_dir(), "results stay in the claim"
    assert {kind for kind, _ in cluster.objects} == {"persistentvolumeclaims"}
    made = "jobsets" if jobset == "true" else "jobs"
    assert ("POST", made) in cluster.asked
