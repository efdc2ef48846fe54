"""The test node expands pods as Kubernetes documents it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cluster_kit.plan.tasks import tf_configs
from cluster_kit.platforms.platform import platform_of
from tests.kubelet.expand import Objects, environment, expand
from tests.kubelet.pods import INDEX, pods
from tests.make import cluster

KNOWN = {"A": "a", "B": "$(A)", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        # from Kubernetes' own tests of expansion
        ("$(A)", "a"),
        ("___$(A)$(A)___", "___aa___"),
        ("$(EMPTY)_", "_"),
        ("$(B)", "$(A)"),  # a value is not expanded again
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$$$$(A)", "$$(A)"),
        ("f0o$$bar$", "f0o$bar$"),
        ("$A $ (A)", "$A $ (A)"),
        ("$(A", "$(A"),
        ("$", "$"),
    ],
)
def test_references_are_expanded_as_the_kubelet_does(text: str, made: str) -> None:
    assert expand(text, KNOWN) == made


def test_a_variable_sees_only_those_before_it() -> None:
    objects = Objects(
        [
            {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"FIRST": "c", "X": "c"}},
            {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "$(X)"}},
        ]
    )
    container = {
        "env": [
            {"name": "EARLY", "value": "$(LATE) $(FIRST)"},
            {"name": "LATE", "value": "1"},
            {"name": "X", "value": "own"},
            {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
            {"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "I", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
            {"name": "NOTHING"},
        ],
        "envFrom": [{"configMapRef": {"name": "c"}}],
    }
    found = environment(container, {"name": "pod", "labels": {"a/b": "7"}}, objects)
    assert found == {
        "FIRST": "c", "X": "own", "EARLY": "$(LATE) c", "LATE": "1", "S": "$(X)", "P": "pod",
        "I": "7", "NOTHING": "",
    }  # fmt: skip


@pytest.mark.parametrize("jobset", [False, True], ids=["Jobs", "JobSet"])
def test_every_pod_is_the_task_of_its_index(jobset: bool) -> None:
    made = cluster(
        engine="kubernetes", worker=12, ps=2, evaluator=1, program="train.py", style="all-tasks",
        args=["--rank={{ index }}", "--price=$5 $(HOME)"],
        kubernetes={"claims": {"/program": "code"}, "jobset": jobset},
    )  # fmt: skip
    objects: list[dict[str, Any]] = [
        one for one in yaml.safe_load_all(platform_of("kubernetes").render(made)) if one
    ]
    found = {pod.hostname: pod for pod in pods(objects)}
    assert len(found) == len(made.tasks)
    for task in made.tasks:
        pod = found[f"ck-demo-{task.role}-{'0-' if jobset else ''}{task.index}"]
        assert pod.spec["subdomain"] == "ck-demo"
        assert f"{pod.names[0]}:2222" == made.address(task)
        assert pod.environment["CLUSTER_KIT_TASK"] == task.name
        assert pod.environment["JOB_COMPLETION_INDEX"] == str(task.index) == pod.labels[INDEX]
        assert pod.args == task.command
        own = {"TF_CONFIG": tf_configs(made)[task.name]} if task.role == "evaluator" else {}
        assert {k: v for k, v in pod.environment.items() if k == "TF_CONFIG"} == own


def test_a_pod_that_no_service_selects_has_no_name() -> None:
    text = platform_of("kubernetes").render(cluster(engine="kubernetes"))
    objects = [one for one in yaml.safe_load_all(text) if one]
    (service,) = (one for one in objects if one["kind"] == "Service")
    service["spec"]["selector"] = {"cluster-kit.cluster": "other"}
    assert {pod.names for pod in pods(objects)} == {()}
