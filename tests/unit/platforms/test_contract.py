"""The variables and paths that the host gives a container equal those of the contract."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from cluster_kit.contract import interface
from cluster_kit.plan.portable import debugged
from cluster_kit.platforms import variables
from cluster_kit.platforms.compose.compose_file import render as compose_file
from cluster_kit.platforms.container import every_task, task_containers
from cluster_kit.platforms.swarm.stack_file import GPU_KIND, render
from cluster_kit.resolved import OUTPUT, SECRETS
from tests.make import cluster, gpus, host
from tests.unit.platforms.test_container_spec import CLUSTERS, NASTY

LIBRARIES = {"CUDA_VISIBLE_DEVICES", "NCCL_SOCKET_IFNAME", "NO_PROXY", "no_proxy"}
"""Variables that libraries read, not the image's own code."""
OUTSIDE = {
    *("CLUSTER_KIT_OUTPUT", "CLUSTER_KIT_COUNT_STEPS", "CLUSTER_KIT_DEVICE_FILTERS"),
    "CLUSTER_KIT_SCHEDULING",
}
"""In the contract for tests that run the trainer outside a container (a container has /output), or
for users to set."""

VARIABLE = r"CLUSTER_KIT_\w+|TF_CONFIG|(CUDA|NCCL)_\w+|(?i:no_proxy)"


def named() -> set[str]:
    """Returns every variable that the module names, in any text of its code."""
    tree = ast.parse(Path(variables.__file__).read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and re.fullmatch(VARIABLE, text)}


def test_the_contract_and_the_host_have_the_same_variables() -> None:
    told = {name for name, one in interface.VARIABLES.items() if not one.of_image}
    assert named() - LIBRARIES == told - OUTSIDE
    made = [
        *CLUSTERS.values(),
        cluster(simulate_gpus=2, profile={"at_step": 100}),
        cluster(program="/a/train.py", tf1=True, args=["--master={{ master }}"]),
        cluster(host(gpus=gpus(2)), gpus="auto"),
        cluster(evaluator=1, tensorflow="2.15"),
        cluster(data_worker=1),
        cluster(sidecar={"cache": {"image": "redis:7", "ready": 6379}}),
        cluster(success="all", restart={"permanent": [3]}),
        debugged(cluster(), "chief-0", "/debugger"),
    ]
    given = {name for one in made for spec in task_containers(one) for name in spec.variables}
    assert given - NASTY.keys() - {"API_TOKEN", "OPEN"} == named() - {
        variables.SHARED,
        variables.BEACON_SECRET,
    }
    stack = render(cluster(engine="swarm"))
    assert variables.SHARED in stack
    given_at_up = f"  {variables.BEACON_SECRET}: ${{{variables.BEACON_SECRET}:-}}\n"
    assert given_at_up in stack and given_at_up in compose_file(cluster())


def test_a_swarm_gives_gpus_in_the_variable_of_the_contract() -> None:
    """Docker derives its name from the kind of the generic resource."""
    meaning = interface.VARIABLES["CLUSTER_KIT_GPUS"].meaning
    assert f"`DOCKER_RESOURCE_{GPU_KIND}`" in meaning


def test_the_contract_and_the_host_agree_on_paths() -> None:
    made = CLUSTERS["limits"]
    shared = every_task(made)
    own = {"/all", "/some", f"{SECRETS}/file"}
    targets = {OUTPUT, *shared.tmpfs, *(mount.target for mount in shared.mounts)} - own
    assert targets == interface.PATHS.keys()
