"""The scripts for Slurm: the resources they request, shellcheck's findings, their size."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cluster_kit.platforms.platform import platform_of
from cluster_kit.platforms.slurm.sbatch_script import ENVIRONMENT
from tests.fakes.slurm import submit
from tests.golden.sbatch import GOLDEN, PLACED, TWO, addresses, planned, script
from tests.make import ROOT

LARGEST = 4 * 2**20
"""The maximum bytes of a script that Slurm accepts, by default."""


def test_the_golden_script_requests_resources_for_each_kind_of_task() -> None:
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
@pytest.mark.parametrize("text", [GOLDEN, script()], ids=["image", "python"])
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "sbatch.sh").write_text(text)
    done = subprocess.run(
        ["shellcheck", tmp_path / "sbatch.sh"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@pytest.mark.processes
def test_files_of_tasks_in_an_image_are_in_a_directory_that_they_see() -> None:
    assert "give CLUSTER_KIT_SHARED /output/cluster.json\n" in GOLDEN
    assert '--bind "$run/output":/output ' in GOLDEN
    assert 'write_cluster > "$run/output/cluster.json"\n' in GOLDEN


def test_apptainer_gets_the_image_the_folders_and_no_other_variables(tmp_path: Path) -> None:
    (line,) = (line.strip() for line in GOLDEN.splitlines() if '"${given[@]}" apptainer' in line)
    assert line == (
        'exec env "${given[@]}" apptainer exec --cleanenv --contain --no-home --workdir "$TMPDIR" '
        '--pwd /tmp --nv --bind "$run/output":/output "${binds[@]}" "$image" '
        'python3 -m trainer "${command[@]}"'
    )
    assert (
        "chief-* | worker-* | ps-* | evaluator-*) binds=(--bind /home/you/project:/program:ro "
        "--bind /home/you/images:/data:ro) ;;"
    ) in GOLDEN
    assert 'export APPTAINERENV_WANDB_API_KEY="$WANDB_API_KEY"' in GOLDEN
    job = submit(GOLDEN.replace("/shared/", f"{tmp_path}/"), tmp_path, TWO * 2)
    assert job.code == 3 and "trainer.sif cannot be read" in job.said
    (tmp_path / "trainer.sif").touch()
    job = submit(GOLDEN.replace("/shared/", f"{tmp_path}/"), tmp_path, TWO * 2)
    assert job.code == 3 and "WANDB_API_KEY is not set" in job.said


def test_the_verdict_is_made_in_the_image_which_sees_the_run_and_the_trainer() -> None:
    judged = 'apptainer exec --cleanenv --contain --no-home --pwd / --bind "$run":/output '
    assert f'{judged}"$image" python3 -m trainer verdict /output "$@"\n' in GOLDEN
    own = script(slurm={"image": "a.sif"}, image="mine:1", program="train.py")
    start = '"$image" python3 /opt/trainer/trainer/own_image/start.py verdict /output "$@"'
    assert f"{judged}--bind /kit/trainer:/opt/trainer/trainer:ro {start}\n" in own


def test_a_mount_of_some_roles_is_only_for_these() -> None:
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
    text = platform_of("slurm").render(made)
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


def test_values_that_script_and_image_share_are_equal() -> None:
    folder = ROOT / "images" / "trainer"
    recipe = (folder / "recipe" / "Dockerfile").read_text()
    for name, value in ENVIRONMENT.items():
        assert f"{name}={value}" in recipe
