"""The scripts for Slurm: bash takes them, and tells each task what the plan says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.backends.choose import backend
from cluster_kit.backends.slurm.render import ENVIRONMENT, FAILED_JOB_GRACE_S, WORKER_GRACE_S
from cluster_kit.cluster import Cluster
from cluster_kit.errors import UsageError
from cluster_kit.plan.tf_config import tf_configs
from tests.fakes.slurm import submit
from tests.golden.test_golden import HERE, rendered_anew
from tests.make import ROOT, cluster
from tests.unit import manifests

sys.path.insert(0, str(ROOT / "images" / "trainer"))
from trainer.network.shared import lacking
from trainer.task import read_task

LARGEST = 4 * 2**20
"""Bytes of a script that Slurm takes, by default."""
GOLDEN = rendered_anew(HERE / "slurm.toml")
SLURM = {"trainer": "kit", "datasets": "/shared/datasets"}
TWO = [("n1,n2", "3,4")]
PLACED = """
port=20000 run=$PWD
place_all > places || exit
read_places "$PWD"
mkdir -p output
write_cluster > output/cluster.json
for task in "${tasks[@]}"; do
  given=() command=()
  variables "$task" "$PWD"
  arguments "$task" "$PWD"
  printf '%s\\0' "$task" "${#given[@]}" "${given[@]}" "${#command[@]}" "${command[@]}"
done > told
"""
"""In place of a script's end: writes down what all tasks would be told."""


def planned(**keys: Any) -> Cluster:
    return cluster(**{"engine": "slurm", "slurm": SLURM, **keys})


def script(**keys: Any) -> str:
    return backend("slurm").render(planned(**keys))


def parts_of(text: str) -> int:
    return text.count("#SBATCH hetjob") + 1


def told(text: str, folder: Path) -> dict[str, tuple[dict[str, str], list[str]]]:
    """What a script would tell each task: variables and command, by the task's name."""
    head, cut, _ = text.rpartition("if [[ ${1:-} == task ]]")
    assert cut
    job = submit(head + PLACED, folder, [("n1,n2,n3", "40(x3)")] * parts_of(text))
    assert job.code == 0, job.said
    words = iter((folder / "told").read_bytes().decode("utf-8", "surrogateescape").split("\0"))
    found = {}
    while name := next(words):
        given = [next(words) for _ in range(int(next(words)))]
        command = [next(words) for _ in range(int(next(words)))]
        found[name] = (dict(one.split("=", 1) for one in given), command)
    return found


def addresses(folder: Path) -> dict[str, str]:
    lines = (line.split() for line in (folder / "places").read_text().splitlines())
    return {task: f"{host}:{port}" for task, _, host, port in lines}


def config_of(variables: dict[str, str]) -> dict[str, Any]:
    """A task's TF_CONFIG, as the trainer puts it together."""
    config: dict[str, Any] = json.loads({**lacking(variables), **variables}["TF_CONFIG"])
    return config


def as_planned(made: Cluster, name: str, places: dict[str, str]) -> dict[str, Any]:
    """A task's TF_CONFIG by the plan, with the addresses that the job has."""
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
def test_any_cluster_is_told_what_the_plan_says(
    keys: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        made = planned(**keys, data="mine")
        text = backend("slurm").render(made)
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
        assert read_task({**lacking(variables), **variables}).name == task.name
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


def test_the_golden_script_asks_for_each_kind_of_tasks() -> None:
    asked = [line for line in GOLDEN.splitlines() if line.startswith("#SBATCH")]
    assert asked.count("#SBATCH hetjob") == 1
    at = asked.index("#SBATCH hetjob")
    assert {"#SBATCH --ntasks=4", "#SBATCH --cpus-per-task=1"} <= {*asked[:at]}
    assert {
        "#SBATCH --ntasks=3",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --mem-per-cpu=2048M",
        "#SBATCH --gpus-per-task=2",
        "#SBATCH --partition=gpu",
        "#SBATCH --constraint=a100",
    } == {*asked[at + 1 :]}


@pytest.mark.processes
def test_tasks_of_the_golden_script_are_told_what_differs(tmp_path: Path) -> None:
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


@pytest.mark.processes
@pytest.mark.parametrize("text", [GOLDEN, script()], ids=["image", "python"])
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "sbatch.sh").write_text(text)
    done = subprocess.run(
        ["shellcheck", tmp_path / "sbatch.sh"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@pytest.mark.processes
def test_what_tasks_in_an_image_read_lies_in_a_directory_that_they_see() -> None:
    assert "give CLUSTER_KIT_SHARED /output/cluster.json\n" in GOLDEN
    assert '--bind "$run/output":/output ' in GOLDEN
    assert 'write_cluster > "$run/output/cluster.json"\n' in GOLDEN


def test_apptainer_gets_the_image_the_folders_and_no_other_variables(tmp_path: Path) -> None:
    (line,) = (line.strip() for line in GOLDEN.splitlines() if "apptainer exec --cleanenv" in line)
    assert line == (
        'exec env "${given[@]}" apptainer exec --cleanenv --contain --no-home --workdir "$TMPDIR" '
        '--pwd /tmp --nv --bind "$run/output":/output "${binds[@]}" "$image" '
        'python3 -m trainer "${command[@]}"'
    )
    assert (
        "chief-* | worker-* | ps-* | evaluator-*) binds=(--bind /home/you/project:/program:ro "
        "--bind /home/you/images:/data:ro) ;;"
    ) in GOLDEN
    assert 'give WANDB_API_KEY "$WANDB_API_KEY"' in GOLDEN
    job = submit(GOLDEN.replace("/shared/", f"{tmp_path}/"), tmp_path, TWO * 2)
    assert job.code == 3 and "trainer.sif cannot be read" in job.said
    (tmp_path / "trainer.sif").touch()
    job = submit(GOLDEN.replace("/shared/", f"{tmp_path}/"), tmp_path, TWO * 2)
    assert job.code == 3 and "WANDB_API_KEY is not set" in job.said


def test_a_mount_of_some_roles_is_for_these() -> None:
    own = {"source": "extra", "target": "/extra", "roles": ["ps"]}
    text = script(mount=[own], slurm={"image": "a.sif"})
    assert "    ps-*) binds=(--bind /home/you/extra:/extra:ro) ;;\n" in text
    assert text.count(":/extra") == 1


@pytest.mark.processes
def test_a_large_cluster_stays_small(tmp_path: Path) -> None:
    made = planned(
        worker=500, ps=50, evaluator=1, program="train.py", data="mine", style="all-tasks",
        args=["--ps={{ ps_hosts }}", "--workers={{ worker_hosts }}", "--me={{ master }}"],
    )  # fmt: skip
    began = time.process_time()
    text = backend("slurm").render(made)
    assert time.process_time() - began < 1
    assert len(text) < 32_000 < LARGEST
    head = text.rpartition("if [[ ${1:-} == task ]]")[0]
    again = head + PLACED.replace('in "${tasks[@]}"', "in worker-499")
    assert submit(again, tmp_path, [("n1,n2,n3,n4", "140(x4)")]).code == 0
    places = addresses(tmp_path)
    assert len({*places.values()}) == 552
    assert (
        len(json.loads((tmp_path / "output" / "cluster.json").read_text())["cluster"]["worker"])
        == 500
    )
    assert f"--me=grpc://{places['worker-499']}".encode() in (tmp_path / "told").read_bytes()


def test_what_it_has_in_common_with_the_image_is_the_same() -> None:
    folder = ROOT / "images" / "trainer"
    times = tomllib.loads((folder / "contract.toml").read_text())["times"]
    assert times["worker_grace"]["seconds"] == WORKER_GRACE_S
    assert times["failed_job_grace"]["seconds"] == FAILED_JOB_GRACE_S
    recipe = (folder / "recipe" / "Dockerfile").read_text()
    for name, value in ENVIRONMENT.items():
        assert f"{name}={value}" in recipe
