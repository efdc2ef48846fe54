"""Docker's own command line reads the stack files as intended, without an engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_kit.plan.tasks import tf_configs
from cluster_kit.platforms.swarm.swarm_platform import Swarm
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import Workspace
from tests.golden.test_golden import HERE
from tests.make import cluster

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        shutil.which("docker") is None, reason="Docker's command line is not on this machine"
    ),
]
LARGEST_MESSAGE = 4 * 2**20
"""The maximum bytes of a message in a swarm, which is gRPC's default."""
LARGEST_CONFIG = 500 * 1024
"""The maximum bytes of a config, in every engine that the kit supports."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_by_docker(made: Cluster, folder: Path) -> dict[str, Any]:
    """Returns the file as `docker stack config` reads it, which must print nothing else."""
    file = Swarm().write(Workspace(folder), made, Swarm().render(made))
    return _read(file)


def _read(file: Path) -> dict[str, Any]:
    done = subprocess.run(
        ["docker", "stack", "config", "-c", file.name],
        cwd=file.parent,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "WANDB_API_KEY": "k", "MY_KEY": "m"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = yaml.load(done.stdout, Loader=_LOADER)
    return found


def test_the_golden_file_is_read_without_a_warning(tmp_path: Path) -> None:
    text = (HERE / "swarm.stack.yaml").read_text(encoding="utf-8")
    (tmp_path / "some.env").write_text("FROM_FILE=1\n")
    file = tmp_path / "stack.yaml"
    file.write_text(text.replace("/home/you/some.env", str(tmp_path / "some.env")))
    services = _read(file)["services"]
    assert services["worker-1"]["environment"]["PRICE"] == "$5 or ${HOME}"
    assert services["worker-1"]["environment"]["FROM_FILE"] == "1"
    assert services["worker-0"]["command"] == ["serve"]
    assert services["chief-0"]["environment"]["WANDB_API_KEY"] == "k"
    assert services["chief-0"]["secrets"][0]["mode"] == 0o400


def test_every_task_has_its_place_in_the_cluster(tmp_path: Path) -> None:
    made = cluster(engine="swarm", worker=2, ps=1, evaluator=1)
    services = read_by_docker(made, tmp_path)["services"]
    shared = json.loads((tmp_path / "compose" / made.name / "cluster.json").read_text())
    configs = tf_configs(made)
    assert shared["cluster"] == json.loads(configs["worker-1"])["cluster"]
    assert [name for name in services if "TF_CONFIG" in services[name]["environment"]] == [
        "evaluator-0"
    ]
    assert services["evaluator-0"]["environment"]["TF_CONFIG"] == configs["evaluator-0"]
    assert {name: s["deploy"]["restart_policy"]["condition"] for name, s in services.items()} == {
        "chief-0": "none",
        **dict.fromkeys(("worker-0", "worker-1", "ps-0", "evaluator-0"), "on-failure"),
    }
    assert all(s["deploy"]["endpoint_mode"] == "dnsrr" for s in services.values())
    assert all(s["deploy"]["labels"] == s["labels"] for s in services.values())


def test_gpus_are_generic_resources_and_a_number_is_promised(tmp_path: Path) -> None:
    made = cluster(engine="swarm", gpus="require", gpus_per_worker=2, role={"ps": {"cpus": 1}})
    services = read_by_docker(made, tmp_path)["services"]
    asked = {"discrete_resource_spec": {"kind": "GPU", "value": 2}}
    worker = services["worker-0"]
    assert worker["deploy"]["resources"]["reservations"] == {"generic_resources": [asked]}
    assert [one["uuid"] for one in json.loads(worker["environment"]["CLUSTER_KIT_GPUS"])] == [
        "",
        "",
    ]
    assert "reservations" not in services["ps-0"]["deploy"]["resources"]
    assert services["ps-0"]["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"


def test_five_hundred_workers_fit_into_the_limits_of_a_swarm(tmp_path: Path) -> None:
    began = time.process_time()
    made = cluster(engine="swarm", worker=500, ps=50, evaluator=1)
    text = Swarm().render(made)
    assert time.process_time() - began < 1.0
    services = read_by_docker(made, tmp_path)["services"]
    assert len(services) == 552
    assert made.subnet.num_addresses > len(services) + 100
    beside = (tmp_path / "compose" / made.name / "cluster.json").stat().st_size
    assert beside < LARGEST_CONFIG
    largest = max(len(json.dumps(service)) for service in services.values())
    assert largest < 4096, "what grows with the cluster is in the config, not in every service"
    assert len(text) + beside < LARGEST_MESSAGE
    assert sum(len(json.dumps(service)) for service in services.values()) < LARGEST_MESSAGE


def test_shared_memory_is_set_for_a_task_without_other_mounts(tmp_path: Path) -> None:
    made = cluster(engine="swarm", role={"worker": {"shm_size": "1g"}})
    services = read_by_docker(made, tmp_path)["services"]
    found = {name: {v["target"]: v for v in one["volumes"]} for name, one in services.items()}
    assert int(found["worker-0"]["/dev/shm"]["tmpfs"]["size"]) == 2**30
    assert found["worker-0"].keys() - {"/dev/shm"} == found["chief-0"].keys()
