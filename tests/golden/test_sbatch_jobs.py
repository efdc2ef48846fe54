"""The whole script for Slurm runs jobs, with doubles of Slurm's commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.platforms.platform import platform_of
from cluster_kit.run.run_directory import read_record
from cluster_kit.run.run_report import report_of
from cluster_kit.util.paths import IMAGE
from cluster_kit.workspace import RunDirectory, Workspace
from tests.fakes.slurm import Job, submit
from tests.golden.sbatch import TWO, planned, script

pytestmark = pytest.mark.processes


def ran(
    folder: Path, ends: dict[str, list[dict[str, object]]], loopback: str = "", **keys: Any
) -> Job:
    (folder / "kit").symlink_to(IMAGE)
    made = planned(**{"ps": 1, **keys})
    Workspace(folder).manifests.mkdir()
    file = platform_of("slurm").write(Workspace(folder), made, platform_of("slurm").render(made))
    return submit(file.read_text(), folder, TWO, ends, FAKE_LOOPBACK=loopback)


def test_a_run_leaves_the_files_that_the_kit_reads(tmp_path: Path) -> None:
    crashes: dict[str, list[dict[str, object]]] = {
        "worker-1": [{"code": 137}, {"code": 0}],
        "chief-0": [{"code": 0, "after": ("worker-1", 2), "end": {"exit_code": 0}}],
    }
    job = ran(tmp_path, {**crashes, "ps-0": [{"code": 0, "after_leader": True}]}, evaluator=1)
    assert job.code == 0, job.said
    assert "success in" in job.said and "chief-0 | chief-0 says hello" in job.said
    assert "worker-0 | " not in job.said
    first = job.told("chief-0")[0]
    assert first["environment"]["CLUSTER_KIT_OUTPUT"] == str(job.run / "output")
    assert first["environment"]["CLUSTER_KIT_DATA"] == "/shared/datasets/digits"
    assert first["environment"]["PYTHONPATH"].startswith(f"{tmp_path}/kit")
    assert len(job.told("worker-1")) == 2
    log = (job.run / "logs" / "worker-1.log").read_text().splitlines()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]{8}\.\d{6}Z worker-1 says hello", log[0])
    assert "worker-1 ended with exit code 137 and is started again" in log[1]
    record = read_record(RunDirectory(job.run))
    assert record is not None and record.cluster.leader.name == "chief-0"
    report = report_of(RunDirectory(job.run))
    assert report["verdict"]["success"] is True
    assert (job.run.parent / "latest").resolve() == job.run
    assert not [path for path in tmp_path.glob("**/cluster-kit-??????") if path.is_dir()]


def test_a_failed_run_ends_with_the_kits_exit_code(tmp_path: Path) -> None:
    fields = {"exit_code": 9, "reason": "stall", "message": 'a "quoted"\nword', "tasks": ["ps-0"]}
    job = ran(tmp_path, {"chief-0": [{"code": 9, "end": fields}]})
    assert job.code == 6
    report = report_of(RunDirectory(job.run))["verdict"]
    assert (report["exit_code"], report["blame"]) == (6, "ps-0")
    assert len(job.told("chief-0")) == 1, "the leader is not started again"


def test_a_failed_evaluator_fails_a_successful_training(tmp_path: Path) -> None:
    late = {"exit_code": 6, "reason": "evaluator-grace", "message": "late", "tasks": []}
    job = ran(tmp_path, {"evaluator-0": [{"code": 6, "end": late}] * 2}, evaluator=1, retries=1)
    assert job.code == 6 and '"evaluator-grace", blame "evaluator-0"' in job.said


def test_an_evaluator_that_does_not_count_fails_no_run(tmp_path: Path) -> None:
    late = {"exit_code": 6, "reason": "evaluator-grace", "message": "late", "tasks": []}
    shares = {"chief": 1, "evaluator": 0}
    job = ran(
        tmp_path, {"evaluator-0": [{"code": 6, "end": late}]}, evaluator=1, retries=0,
        success=shares,
    )  # fmt: skip
    assert job.code == 0, job.said


def test_a_trainer_without_the_verdict_command_is_named(tmp_path: Path) -> None:
    (tmp_path / "kit" / "trainer").mkdir(parents=True)
    (tmp_path / "kit" / "trainer" / "__main__.py").write_text("raise SystemExit(2)\n")
    job = submit(script(), tmp_path, TWO)
    assert job.code == 4
    assert "could not be judged (exit code 2)" in job.said and "older than this script" in job.said


def test_a_leader_whose_name_is_loopback_on_its_node_listens_on_all_addresses(
    tmp_path: Path,
) -> None:
    job = ran(tmp_path, {}, loopback="yes", worker=1, ps=0, style="all-tasks")
    assert job.code == 0, job.said
    told_of = {task: job.told(task)[0]["environment"] for task in ("chief-0", "worker-0")}
    port = told_of["worker-0"]["CLUSTER_KIT_BEACON"].removeprefix("n1:")
    assert told_of["chief-0"]["CLUSTER_KIT_BEACON"] == f"0.0.0.0:{port}"


def test_a_task_is_restarted_only_up_to_its_retries(tmp_path: Path) -> None:
    ends: dict[str, list[dict[str, object]]] = {"worker-0": [{"code": 1}] * 9, "chief-0": []}
    job = ran(tmp_path, {**ends, "ps-0": [{"code": 0}]}, retries=2)
    assert len(job.told("worker-0")) <= 3
    assert job.code == 0, "the leader decides"


def test_missing_programs_are_reported_before_anything_starts(tmp_path: Path) -> None:
    job = submit(script(), tmp_path, TWO)
    assert job.code == 3
    assert f"the package trainer is not in {tmp_path}/kit" in job.said
    assert "--set slurm.trainer=DIRECTORY" in job.said
    assert not (tmp_path / "runs").exists()
    job = submit(script(), tmp_path, TWO, SLURM_JOB_ID="")
    assert job.code == 2 and "submit it: sbatch compose/demo/sbatch.sh" in job.said


def test_too_few_nodes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "kit").symlink_to(IMAGE)
    job = submit(script(), tmp_path, [("n1,n2", "1(x2)")])
    assert job.code == 4 and "there is no place for worker-1 on n1 n2" in job.said
