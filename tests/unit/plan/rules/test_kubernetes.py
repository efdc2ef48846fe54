"""Keys that Kubernetes does not support are refused with a fix."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.platforms.platform import platform_of
from tests.make import cluster, gpus, host, problems

REFUSED: dict[str, dict[str, Any]] = {
    "task.worker-1.ip": {"subnet": "172.28.0.0/24", "task": {"worker-1": {"ip": "172.28.0.150"}}},
    "task.worker-1.cpus": {"task": {"worker-1": {"cpus": 1}}},
    "task.worker-1.environment": {"task": {"worker-1": {"environment": {"A": "1"}}}},
    "addressing": {"addressing": "ip"},
    "subnet": {"subnet": "172.28.0.0/24"},
    "network.mtu": {"network": {"mtu": 1400}},
    "network.encrypted": {"network": {"encrypted": True}},
    "container.pids": {"container": {"pids": 100}},
    "container.log_size": {"container": {"log_size": 0}},
    "gpus": {"gpus": "auto"},
    "share_gpus": {"gpus": "require", "share_gpus": True},
    "role.chief.gpus": {"role": {"chief": {"gpus": ["0"]}}},
    "role.ps.ports": {"role": {"ps": {"ports": [6006]}}},
    "role.ps.bandwidth": {"role": {"ps": {"bandwidth": "1gbit"}}},
    "role.ps.ulimits": {"role": {"ps": {"ulimits": {"nofile": 65536}}}},
    "role.ps.env_file": {"role": {"ps": {"env_file": "some.env"}}},
    "role.ps.environment.API_TOKEN": {"role": {"ps": {"environment": {"API_TOKEN": "x"}}}},
    "role.ps.nodes": {"role": {"ps": {"nodes": "node.role!=manager"}}},
    "sidecar.cache": {"sidecar": {"cache": {"image": "redis:7"}}},
    "args.0": {"args": ["--bind={{ ip }}"], "program": "train.py"},
    "image": {"image": "tensorflow/tensorflow:2.15.0"},
    "build": {"build": "Dockerfile"},
    "data.fetch": {"data": {"fetch": "fetch.py"}},
    "tensorboard": {"tensorboard": True},
    "kubernetes.namespace": {"kubernetes": {"namespace": "Mine"}},
    "kubernetes.registry": {"kubernetes": {"registry": "a b"}},
    "kubernetes.output": {"kubernetes": {"output": "emptyDir"}},
    "kubernetes.claims./data": {"kubernetes": {"claims": {"/data": "images/../x"}}},
}


def test_keys_that_kubernetes_does_not_support_are_refused(subtests: pytest.Subtests) -> None:
    for key_path in REFUSED:
        with subtests.test(key_path=key_path):
            found = problems(host(gpus=gpus(8)), engine="kubernetes", **REFUSED[key_path])
            assert key_path in [problem.key_path for problem in found]
            assert all(problem.hint_text() for problem in found)


@pytest.mark.parametrize("output", ["pvc:", "pvc:A", "hostPath"])
def test_an_invalid_output_is_refused(output: str) -> None:
    (problem,) = problems(engine="kubernetes", kubernetes={"output": output})
    assert problem.key_path == "kubernetes.output"


def test_other_engines_do_not_read_the_table() -> None:
    cluster(kubernetes={"output": "emptyDir", "namespace": "mine"})


def test_it_is_planned_with_names_whatever_this_host_has() -> None:
    small = host(cpus=1, memory=2**30, user="0:0")
    big = {"worker": {"cpus": 8, "memory": "64g"}}
    made = cluster(small, engine="kubernetes", worker=3, role=big, gpus="require")
    assert made.address(made.of("worker")[1]) == "ck-demo-worker-1.ck-demo:2222"
    assert made.beacon == "ck-demo-chief-0.ck-demo:2223"
    assert made.user == "1000:1000", "the restricted profile allows no root"
    assert [task.gpus for task in made.of("worker")] == [("0",)] * 3, "a node says which"
    assert made.image == "cluster-kit/trainer:gpu-0123456789ab"


def test_tasks_of_a_jobset_have_its_names() -> None:
    made = cluster(engine="kubernetes", worker=3, kubernetes={"jobset": True})
    assert made.address(made.of("worker")[1]) == "ck-demo-worker-0-1.ck-demo:2222"
    assert made.beacon == "ck-demo-chief-0-0.ck-demo:2223"


def test_an_image_that_the_kit_builds_has_the_registrys_name() -> None:
    made = cluster(engine="kubernetes", kubernetes={"registry": "ghcr.io/me/"})
    assert made.image == "ghcr.io/me/cluster-kit/trainer:cpu-0123456789ab"


@pytest.mark.parametrize("argument", ["--n={{ 'many' if index > 1 else 'one' }}", "{{ name[:8] }}"])
def test_arguments_that_differ_by_more_than_the_index_are_refused(argument: str) -> None:
    own = {"/program": "code"}
    made = cluster(
        engine="kubernetes", chief=0, ps=0, worker=11, program="train.py", args=[argument, "a"],
        kubernetes={"claims": own},
    )  # fmt: skip
    with pytest.raises(UsageError, match="worker-0 … worker-10: their arguments differ"):
        platform_of("kubernetes").render(made)


@pytest.mark.parametrize(
    ("keys", "is_refused"),
    [
        ({"success": {"worker": 0.5}}, True),
        ({"success": {"worker": 1}}, False),
        ({"success": "all"}, False),
        ({"success": {"worker": 0.5}, "chief": 1, "ps": 1, "style": "all-tasks"}, False),
    ],
)
def test_a_set_without_a_chief_needs_every_worker(keys: dict[str, Any], is_refused: bool) -> None:
    each = {"engine": "kubernetes", "chief": 0, "ps": 0, "worker": 4, **keys}
    found = problems(**each, kubernetes={"jobset": True})
    assert [problem.key_path for problem in found] == ["success.worker"] * is_refused
    assert all('`success = "all"`' in problem.hint_text() for problem in found)
    assert not problems(**each)
