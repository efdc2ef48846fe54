"""The effect of each key of a manifest on the compose file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_kit.platforms.compose.compose_file import render
from tests.make import cluster, gpus, host, parse_compose, promised

GPU_HOST = host(gpus=gpus(8))
UUIDS = [gpu.uuid for gpu in gpus(8)]
TOLD = [promised(gpu) for gpu in gpus(8)]
DEVICE = "deploy.resources.reservations.devices.0"
SPEC = "environment.TF_CONFIG.cluster"
FIXED = {"subnet": "172.28.0.0/22"}

MEANS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "addressing by name": (
        {"addressing": "name", "evaluator": 1, "worker": 1, "ps": 1},
        {
            f"worker-0.{SPEC}": {
                "chief": ["chief-0:2222"], "worker": ["worker-0:2222"], "ps": ["ps-0:2222"]
            },
            f"evaluator-0.{SPEC}": {"evaluator": ["evaluator-0:2222"]},
            "ps-0.environment.CLUSTER_KIT_BEACON": "chief-0:2223",
        },
    ),
    "no GPUs, no evaluator": (
        {"gpus": "none", "worker": 3, "ps": 1},
        {
            "worker-2.environment.CUDA_VISIBLE_DEVICES": "-1",
            "worker-2.image": "cluster-kit/trainer:cpu-0123456789ab",
            "worker-2.labels.cluster-kit.gpus": "",
            "evaluator-0": None,
        },
    ),
    "an image of one's own, port and deadlines": (
        {
            "image": "registry.example:5000/team/trainer:2.1",
            "port": 4000,
            "retries": 7,
            "deadline": {"start": "30s", "job": "2h", "evaluator_grace": 90.5, "silent": 0},
        },
        {
            "chief-0.image": "registry.example:5000/team/trainer:2.1",
            "chief-0.pull_policy": "missing",
            "ps-1.restart": "on-failure:7",
            "ps-1.environment.CLUSTER_KIT_RETRIES": "7",
            "ps-1.environment.CLUSTER_KIT_START_DEADLINE_S": "30",
            "ps-1.environment.CLUSTER_KIT_JOB_DEADLINE_S": "7200",
            "ps-1.environment.CLUSTER_KIT_EVALUATOR_GRACE_S": "90.5",
            "ps-1.environment.CLUSTER_KIT_SILENT_S": "0",
        },
    ),
    "ports follow each other": (
        {**FIXED, "port": 4000},
        {
            f"chief-0.{SPEC}.worker": ["172.28.0.100:4000", "172.28.0.101:4000"],
            "worker-1.environment.CLUSTER_KIT_BEACON": "172.28.0.10:4001",
        },
    ),
    "500 workers": (
        {**FIXED, "worker": 500, "ps": 4},
        {
            "worker-154.networks.cluster.ipv4_address": "172.28.0.254",
            "worker-155.networks.cluster.ipv4_address": "172.28.1.0",
            "worker-411.networks.cluster.ipv4_address": "172.28.3.0",
            "worker-499.networks.cluster.ipv4_address": "172.28.3.88",
            "ps-3.networks.cluster.ipv4_address": "172.28.0.23",
            "worker-499.environment.TF_CONFIG.task": {"type": "worker", "index": 499},
        },
    ),
    "two GPUs for each worker": (
        {"gpus": "auto", "gpus_per_worker": 2},
        {
            f"worker-0.{DEVICE}.device_ids": ["0", "1"],
            f"worker-1.{DEVICE}.device_ids": ["2", "3"],
            "worker-1.image": "cluster-kit/trainer:gpu-0123456789ab",
            "worker-1.shm_size": "1gb",
            "chief-0.deploy": None,
            "worker-1.environment.CLUSTER_KIT_GPUS": json.dumps(TOLD[2:4]),
            "chief-0.environment.CLUSTER_KIT_PROMISES": json.dumps({
                "worker-0": TOLD[:2],
                "worker-1": TOLD[2:4],
            }),
        },
    ),
    "GPUs by UUID": (
        {"gpus": [UUIDS[5], UUIDS[2]]},
        {
            f"worker-0.{DEVICE}.device_ids": [UUIDS[5]],
            f"worker-1.{DEVICE}.device_ids": [UUIDS[2]],
            "worker-0.labels.cluster-kit.gpus": UUIDS[5],
        },
    ),
    "workers that run the program, a ps that serves": (
        {
            **FIXED, "chief": 0, "worker": 2, "ps": 1, "style": "all-tasks",
            "program": "linear-regression",
        },
        {
            "worker-1.command": ["run", "linear-regression"],
            "ps-0.command": ["serve"],
            "worker-0.labels.cluster-kit.leader": "true",
            "worker-0.restart": "no",
            "worker-1.restart": "on-failure:3",
            "worker-1.environment.CLUSTER_KIT_SERVERS": "ps-0",
            f"worker-0.{SPEC}": {
                "worker": ["172.28.0.100:2222", "172.28.0.101:2222"], "ps": ["172.28.0.20:2222"]
            },
        },
    ),
    "requirements, and arguments for each task": (
        {
            **FIXED, "program": "train.py", "requirements": "requirements.txt",
            "args": ["--rank={{ index }}", "--ps={{ ps_hosts }}"],
        },
        {
            "chief-0.command": [
                "run", "/program/train.py", "--rank=0", "--ps=172.28.0.20:2222,172.28.0.21:2222"
            ],
            "chief-0.image": "cluster-kit/trainer:cpu-0123456789ab-with-419b77a73dea",
            "chief-0.pull_policy": "never",
            "worker-0.volumes.1": {
                "type": "bind", "source": "/home/you/project", "target": "/program",
                "read_only": True, "bind": {"create_host_path": False},
            },
        },
    ),
    "one worker alone": (
        {**FIXED, "chief": 0, "worker": 1, "ps": 0},
        {
            f"worker-0.{SPEC}": {"worker": ["172.28.0.100:2222"]},
            "worker-0.environment.CLUSTER_KIT_SERVERS": "",
            "worker-0.environment.CLUSTER_KIT_LEADER": "worker-0",
            "chief-0": None,
        },
    ),
}  # fmt: skip


def at(services: Any, path: str) -> Any:
    """Returns the value at `service.key.key`; None if there is none. Labels contain dots."""
    found = services
    for key in path.replace("cluster-kit.", "cluster-kit\0").split("."):
        name = int(key) if isinstance(found, list) else key.replace("\0", ".")
        if found is None or (isinstance(found, dict) and name not in found):
            return None
        found = json.loads(found[name]) if name == "TF_CONFIG" else found[name]
    return found


@pytest.mark.parametrize(("keys", "means"), MEANS.values(), ids=MEANS)
def test_the_effect_of_keys(keys: dict[str, Any], means: dict[str, Any]) -> None:
    services = parse_compose(render(cluster(GPU_HOST, **keys)))["services"]
    assert {path: at(services, path) for path in means} == means


def test_gpus_auto_means_the_cpu_on_a_host_without_gpus() -> None:
    keys = {"gpus": "auto", "gpus_per_worker": 2}
    services = parse_compose(render(cluster(host(), **keys)))["services"]
    assert at(services, "worker-0.image") == "cluster-kit/trainer:cpu-0123456789ab"
    assert at(services, "worker-0.environment.CUDA_VISIBLE_DEVICES") == "-1"
    assert at(services, "worker-0.deploy") is None
