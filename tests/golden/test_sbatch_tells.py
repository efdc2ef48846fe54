"""The scripts for Slurm give each task of any cluster the planned values."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.errors import UsageError
from cluster_kit.plan.tasks import tf_configs
from cluster_kit.platforms.platform import platform_of
from cluster_kit.resolved import Cluster
from tests.golden.sbatch import GOLDEN, addresses, planned, told
from tests.make import ROOT
from tests.unit import manifests

sys.path.insert(0, str(ROOT / "images" / "trainer"))
from trainer.agent.task import read_task
from trainer.agent.task_environment import missing_variables


def config_of(variables: dict[str, str]) -> dict[str, Any]:
    """Returns a task's TF_CONFIG, as the trainer combines it."""
    config: dict[str, Any] = json.loads({**missing_variables(variables), **variables}["TF_CONFIG"])
    return config


def as_planned(made: Cluster, name: str, places: dict[str, str]) -> dict[str, Any]:
    """Returns a task's planned TF_CONFIG, with the addresses of the job."""
    found = {made.address(task): places[task.name] for task in made.tasks}
    config: dict[str, Any] = json.loads(tf_configs(made)[name])
    config["cluster"] = {k: [found[one] for one in v] for k, v in config["cluster"].items()}
    return config


roles = st.fixed_dictionaries(
    {},
    optional={
        "worker": st.fixed_dictionaries(
            {}, optional={"cpus": st.floats(0.1, 9), "environment": manifests.environments}
        ),
        "ps": st.fixed_dictionaries({}, optional={"memory": st.just("1g")}),
    },
)
rest = st.fixed_dictionaries(
    {"name": manifests.names, "evaluator": st.integers(0, 1)},
    optional={
        "port": st.integers(1024, 65000),
        "chief_job": st.sampled_from(["chief", "master"]),
        "role": roles,
    },
)
arguments = st.lists(
    manifests.plain_arguments | st.sampled_from(["{{ ps_hosts }}", "{{ index }}x"]), max_size=4
)
keys = st.builds(
    lambda counts, rest, args: {**counts, **rest, "args": args, "program": "train.py"},
    manifests.coordinated | manifests.all_tasks | manifests.reduced,
    rest,
    arguments,
)


@pytest.mark.processes
@given(keys=keys)
def test_tasks_of_any_cluster_get_the_planned_values(
    keys: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        made = planned(**keys, data="mine")
        text = platform_of("slurm").render(made)
    except UsageError as error:
        assert "U+E000" in error.message
        return
    folder = tmp_path_factory.mktemp("job")
    found, places = told(text, folder), addresses(folder)
    assert list(found) == [task.name for task in made.tasks]
    assert len({*places.values(), beacon(made, places)}) == len(made.tasks) + 1
    for task in made.tasks:
        variables, command = found[task.name]
        assert config_of(variables) == as_planned(made, task.name, places)
        assert read_task({**missing_variables(variables), **variables}).name == task.name
        assert variables["CLUSTER_KIT_BEACON"] == beacon(made, places)
        assert variables.items() >= {
            (k, v) for k, v in task.environment if k not in ("no_proxy", "NO_PROXY")
        }
        assert command == [as_on_the_nodes(word, made, places) for word in task.command]


def beacon(made: Cluster, places: dict[str, str]) -> str:
    host, _, port = places[made.leader.name].partition(":")
    return f"{host}:{int(port) + 1}"


def as_on_the_nodes(word: str, made: Cluster, places: dict[str, str]) -> str:
    for task in made.tasks:
        word = word.replace(made.address(task), places[task.name])
    return word.replace("/program/train.py", "/home/you/project/train.py")


@pytest.mark.processes
def test_tasks_of_the_golden_script_get_their_different_values(tmp_path: Path) -> None:
    found = told(GOLDEN, tmp_path)
    places = addresses(tmp_path)
    own = {name: variables for name, (variables, _) in found.items()}
    assert own["worker-0"]["APPTAINERENV_SWITCH"] == "on"
    assert own["worker-1"]["APPTAINERENV_SWITCH"] == "off"
    assert own["worker-2"]["APPTAINERENV_PRICE"] == "$5 or $(HOME)"
    assert own["ps-0"]["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == "-1"
    assert "APPTAINERENV_CUDA_VISIBLE_DEVICES" not in own["worker-0"]
    assert "APPTAINERENV_NCCL_SOCKET_IFNAME" not in own["worker-0"], "nodes have other names for it"
    assert found["worker-2"][1] == [
        "run", "/program/train.py", "--price=$5", "--rank=2",
        f"--ps={places['ps-0']},{places['ps-1']}", "--log=/output/log",
    ]  # fmt: skip
    assert places["chief-0"].endswith(":20000") and places["evaluator-0"].endswith(":20004")
    assert places["worker-0"].endswith(":20005"), "the second part of the job comes after the first"
