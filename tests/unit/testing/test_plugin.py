"""The pytest plugin in a user's tests, on a stage instead of an engine."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from cluster_kit.errors import HostError
from cluster_kit.testing import clusters
from tests.fakes.acting import Life, ends, prints, says
from tests.fakes.hosts import Machine
from tests.fakes.stage import Stage
from tests.runners import commands
from tests.unit.testing.project import PASSES, Project

pytest_plugins = ["pytester"]


pytestmark = pytest.mark.usefixtures("usual_handlers")


def test_a_cluster_runs_and_nothing_is_left(project: Project, stage: Stage) -> None:
    result = project.test(PASSES)
    result.assert_outcomes(passed=1)
    assert not stage.engine.boxes and len(project.runs) == 1
    assert not list(project.root.glob("tmp/*.cluster-kit"))
    assert not (project.root / "runs").exists()
    assert [path.name for path in project.root.glob("compose/*")] == ["demo.toml"]


@pytest.mark.parametrize("policy", ["failed", "none"])
def test_runs_of_passed_tests_are_removed_like_pytests_own_folders(
    policy: str, project: Project, stage: Stage
) -> None:
    project.ini(f"tmp_path_retention_policy = {policy}")
    project.test(PASSES).assert_outcomes(passed=1)
    assert not project.runs


FAILS = """
def test_it_learns(cluster):
    outcome = cluster.run("demo")
    assert outcome.success
"""
FAILURE = Life((says(0.1, "start", attempt=1), says(0.4, "ready"), prints(0.9, "epoch 1"),
                ends(1.0, 1, "failed", "ValueError: no data")))  # fmt: skip


def test_output_of_a_task_is_no_command_if_pytest_runs_on_ci(
    project: Project, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    words = "ValueError: no data\n::add-mask::e\n##[error]x"
    stage.engine.acting = {"chief-0": [Life((says(0.1, "start", attempt=1),
                                             ends(1.0, 1, "failed", words)))]}  # fmt: skip
    project.test(FAILS).assert_outcomes(failed=1)
    told = clusters.text(project.runs[0].parents[2])
    assert "add-mask" in told and commands(told) == []


@pytest.mark.parametrize("policy", ["all", "failed"])
def test_a_failed_test_names_its_runs_which_are_kept(
    policy: str, project: Project, stage: Stage
) -> None:
    project.ini(f"tmp_path_retention_policy = {policy}")
    stage.engine.acting = {"chief-0": [FAILURE]}
    result = project.test(FAILS)
    result.assert_outcomes(failed=1)
    (run,) = project.runs
    result.stdout.fnmatch_lines([
        "*- clusters of this test -*",
        "test-it-learns-*: failed in * s, blame chief-0",
        "  ValueError: no data*",
        f"  everything is in {run}",
    ])  # fmt: skip
    assert (run / "outcome.json").is_file() and (run / "logs" / "chief-0.log").is_file()


def test_every_run_of_a_test_is_named(project: Project, stage: Stage) -> None:
    result = project.test("""
def test_two(cluster):
    assert cluster.run("demo").success
    assert cluster.run("demo", worker=1).blame
""")
    result.assert_outcomes(failed=1)
    assert len(re.findall(r"test-two-\w+: success in", result.stdout.str())) == 2
    assert all(f"everything is in {run}" in result.stdout.str() for run in project.runs)


def test_a_cluster_is_up_for_a_block(project: Project, stage: Stage) -> None:
    project.test("""
import cluster_kit as ck

def test_up(cluster):
    with cluster.up("demo") as up:
        assert up.name.startswith("test-up-") and len(up.tasks()) == 5
        up.freeze("worker-1")
    with cluster.up("demo", name="mine") as up:
        assert up.name == "mine"
""").assert_outcomes(passed=1)
    assert not stage.engine.boxes


RAISES = """
import pytest

def test_raises(cluster):
    with cluster.up("demo"):
        raise {error}

def test_after(cluster):
    pass
"""


def test_a_test_that_raises_leaves_nothing_up(project: Project, stage: Stage) -> None:
    result = project.test(RAISES.format(error="ZeroDivisionError"))
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["test-raises-*: stopped in * s"])
    assert not stage.engine.boxes and project.runs


def test_an_interrupt_ends_the_session_and_leaves_nothing_up(
    project: Project, stage: Stage
) -> None:
    result = project.test(RAISES.format(error="KeyboardInterrupt"))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not stage.engine.boxes


def test_an_interrupt_during_a_run_ends_the_session_too(project: Project, stage: Stage) -> None:
    stage.clock.at(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = project.test(FAILS)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not stage.engine.boxes


def test_sigterm_acts_like_an_interrupt_while_a_cluster_is_used(
    project: Project, stage: Stage
) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    stage.clock.at(1.0, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert project.test(FAILS).ret == pytest.ExitCode.INTERRUPTED
    assert not stage.engine.boxes
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_block_that_is_never_left_ends_with_the_test(project: Project, stage: Stage) -> None:
    project.test("""
kept = []

def test_up(cluster):
    kept.append(cluster.up("demo"))
    kept[0].__enter__()

def test_late(cluster):
    kept.pop().__exit__(None, None, None)
""").assert_outcomes(passed=2)
    assert not stage.engine.boxes


def test_remains_of_a_killed_process_are_removed_at_the_end(
    project: Project, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    monkeypatch.setattr(clusters, "take_down", lambda _host, name: removed.append(name))
    project.test("""
def test_killed(cluster, tmp_path):
    (tmp_path.parent / "popen-gw0").mkdir()
    (tmp_path.parent / "popen-gw0" / "left-over.cluster-kit").touch()
    (tmp_path / "a-file-of-its-own.cluster-kit").touch()
""").assert_outcomes(passed=1)
    assert removed == ["left-over"]


def gone() -> Any:
    raise HostError("no Docker engine answers: Connection refused", "run `make engine`")


def test_without_an_engine_the_test_is_skipped_with_the_reason(
    project: Project, machine: Machine
) -> None:
    machine.connects(gone)
    result = project.test(PASSES, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*no Docker engine answers: Connection refused"])
    assert not project.runs


@pytest.mark.parametrize("by", ["option", "ini"])
def test_an_engine_can_be_required(by: str, project: Project, machine: Machine) -> None:
    machine.connects(gone)
    if by == "ini":
        project.ini("cluster_kit_engine = require")
    result = project.test(PASSES, *(["--cluster-kit-engine=require"] if by == "option" else []))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no Docker engine answers*", "*run `make engine`*"])
    assert "During handling of" not in result.stdout.str()


def test_an_invalid_choice_is_reported(project: Project) -> None:
    project.ini("cluster_kit_engine = requir")
    result = project.test(PASSES)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cluster_kit_engine = 'requir': must be 'skip' or 'require'*"])
