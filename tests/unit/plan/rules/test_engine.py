"""Keys that an engine does not support are refused with a fix."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.plan.tasks import constraints
from tests.make import cluster, gpus, host, problems

REFUSED: dict[str, dict[str, Any]] = {
    "task.worker-1.ip": {"subnet": "172.28.0.0/24", "task": {"worker-1": {"ip": "172.28.0.150"}}},
    "addressing": {"addressing": "ip"},
    "gpus": {"gpus": "auto"},
    "share_gpus": {"gpus": "require", "share_gpus": True},
    "role.chief.gpus": {"role": {"chief": {"gpus": ["0"]}}},
    "role.ps.ports": {"role": {"ps": {"ports": [6006]}}},
    "sidecar.cache": {"sidecar": {"cache": {"image": "redis:7"}}},
    "role.ps.environment.API_TOKEN": {"role": {"ps": {"environment": {"API_TOKEN": "x"}}}},
    "role.ps.nodes": {"role": {"ps": {"nodes": "disk=ssd"}}},
    "args.0": {"args": ["--bind={{ ip }}"], "program": "train.py"},
    "name": {"name": "a" * 40},
}


@pytest.mark.parametrize("key_path", REFUSED)
def test_keys_that_a_swarm_does_not_support_are_refused(key_path: str) -> None:
    found = problems(host(gpus=gpus(2)), engine="swarm", **REFUSED[key_path])
    assert key_path in [problem.key_path for problem in found]
    assert all(problem.hint for problem in found)


@pytest.mark.parametrize(
    ("key_path", "keys"),
    [
        ("role.ps.nodes", {"role": {"ps": {"nodes": "disk==ssd"}}}),
        ("network.encrypted", {"network": {"encrypted": True}}),
    ],
)
def test_keys_that_only_a_swarm_supports_are_refused_by_compose(
    key_path: str, keys: dict[str, Any]
) -> None:
    (problem,) = problems(**keys)
    assert problem.key_path == key_path
    assert "engine" in problem.hint_text()


def test_a_swarm_is_planned_with_names_whatever_this_host_has() -> None:
    small = host(cpus=1, memory=2**30)
    made = cluster(small, engine="swarm", worker=40, role={"worker": {"cpus": 8, "memory": "64g"}})
    assert made.address(made.leader) == "chief-0:2222"
    assert made.beacon == "chief-0:2223"


def test_a_swarm_gets_a_number_of_gpus() -> None:
    made = cluster(engine="swarm", gpus="require", gpus_per_worker=2, gpu_memory="8g")
    gpu = {task.name: (len(task.gpus), task.gpu_memory_mib) for task in made.tasks if task.gpus}
    assert gpu == {"worker-0": (2, 8192), "worker-1": (2, 8192)}
    assert made.variant == "gpu"
    promised = made.tasks[1].gpus_promised
    assert [(one.name, one.pci, one.uuid) for one in promised] == [
        ("GPU 1 of 2 of its node", "", ""),
        ("GPU 2 of 2 of its node", "", ""),
    ]


def test_labels_of_nodes_become_constraints() -> None:
    assert constraints("disk==ssd, node.role != manager") == (
        "node.labels.disk == ssd",
        "node.role != manager",
    )
    assert constraints("") == ()
