"""The pytest plugin as other people's tests use it, on a stage instead of an engine."""

from __future__ import annotations

import functools
import os
import re
import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.engine import client
from cluster_kit.errors import HostError
from cluster_kit.testing import clusters
from tests.fakes.acting import Life, ends, prints, says
from tests.fakes.handlers import usual_handlers
from tests.fakes.stage import MANIFEST, Stage, stage
from tests.make import ROOT

__all__ = ["stage", "usual_handlers"]
pytest_plugins = ["pytester"]
PLUGIN = ("-p", "cluster_kit.testing.plugin")
QUIET = ("-p", "no:cacheprovider", "--tb=native")


class Project:
    """Somebody's project with a manifest, and pytest in it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.root = pytester.path
        self._pytester = pytester
        (self.root / "compose").mkdir()
        (self.root / "compose" / "demo.toml").write_text(MANIFEST)

    def test(self, text: str, *options: str, at: str = "test_it.py") -> pytest.RunResult:
        path = self.root / at
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        base = f"--basetemp={self.root / 'tmp'}"
        return self._pytester.runpytest_inprocess(
            *PLUGIN, *QUIET, base, *options, no_reraise_ctrlc=True
        )

    @property
    def runs(self) -> list[Path]:
        return sorted(self.root.glob("tmp/cluster-kit[0-9]*/runs/*/2*"))

    def ini(self, text: str) -> None:
        (self.root / "pytest.ini").write_text(f"[pytest]\n{text}\n")


pytestmark = pytest.mark.usefixtures("usual_handlers")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Without the plugins that happen to be installed here: to find them takes longer than all. So
    does to show the source of all of pytest where a session is interrupted."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    briefly = functools.partialmethod(pytest.ExceptionInfo.getrepr, style="value")
    monkeypatch.setattr(pytest.ExceptionInfo, "getrepr", briefly)
    return Project(pytester)


PASSES = """
def test_it_learns(cluster):
    outcome = cluster.run("compose/demo.toml", worker=1)
    assert outcome.metrics["test_accuracy"] > 0.8
    assert [task.name for task in outcome.tasks if task.role == "worker"] == ["worker-0"]
    assert outcome.cluster.startswith("test-it-learns-")
"""


def test_a_cluster_is_run_and_nothing_is_left(project: Project, stage: Stage) -> None:
    result = project.test(PASSES)
    result.assert_outcomes(passed=1)
    assert not stage.engine.boxes and len(project.runs) == 1
    assert not list(project.root.glob("tmp/*.cluster-kit"))
    assert not (project.root / "runs").exists()
    assert [path.name for path in project.root.glob("compose/*")] == ["demo.toml"]


@pytest.mark.parametrize("policy", ["failed", "none"])
def test_runs_of_tests_that_pass_go_as_pytests_own_folders_do(
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


@pytest.mark.parametrize("policy", ["all", "failed"])
def test_a_test_that_fails_names_its_runs_which_stay(
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


def test_a_cluster_stays_up_for_a_block(project: Project, stage: Stage) -> None:
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


def test_an_interrupt_of_a_run_ends_the_session_too(project: Project, stage: Stage) -> None:
    stage.clock.at(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = project.test(FAILS)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not stage.engine.boxes


def test_sigterm_is_an_interrupt_while_a_cluster_is_asked_for(
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


def test_what_a_killed_process_has_left_is_removed_at_the_end(
    project: Project, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    monkeypatch.setattr(clusters, "take_down", removed.append)
    project.test("""
def test_killed(cluster, tmp_path):
    (tmp_path.parent / "popen-gw0").mkdir()
    (tmp_path.parent / "popen-gw0" / "left-over.cluster-kit").touch()
""").assert_outcomes(passed=1)
    assert removed == ["left-over"]


def gone() -> Any:
    raise HostError("no Docker engine answers: Connection refused", "run `make engine`")


def test_without_an_engine_it_is_skipped_with_the_reason(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", gone)
    result = project.test(PASSES, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*no Docker engine answers: Connection refused"])
    assert not project.runs


@pytest.mark.parametrize("by", ["option", "ini"])
def test_an_engine_can_be_required(
    by: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", gone)
    if by == "ini":
        project.ini("cluster_kit_engine = require")
    result = project.test(PASSES, *(["--cluster-kit-engine=require"] if by == "option" else []))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no Docker engine answers*", "*run `make engine`*"])
    assert "During handling of" not in result.stdout.str()


def test_a_wrong_choice_is_told(project: Project) -> None:
    project.ini("cluster_kit_engine = requir")
    result = project.test(PASSES)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cluster_kit_engine = 'requir': must be 'skip' or 'require'*"])


def test_a_wrong_manifest_fails_in_the_kits_words(project: Project, stage: Stage) -> None:
    result = project.test("""
import cluster_kit as ck
import pytest

def test_wrong(cluster):
    with pytest.raises(ck.ManifestError, match="worker = -1"):
        cluster.run("demo", worker=-1)
    with pytest.raises(ck.UsageError, match="no manifest"):
        cluster.run("compose/dmo.toml")
    with pytest.raises(ck.ManifestError, match="trian.py"):
        cluster.run("demo", program="trian.py")
    with pytest.raises(ck.ManifestError, match='name = "A B"'):
        with cluster.up("demo", name="A B"):
            pass
""")
    result.assert_outcomes(passed=1)
    assert not stage.engine.boxes


def test_the_marker_selects_tests_with_clusters(project: Project, stage: Stage) -> None:
    text = PASSES + "\ndef test_other(): pass\n"
    project.ini("addopts = --strict-markers")
    project.test(text, "-m", "cluster").assert_outcomes(passed=1, deselected=1)
    project.test(text, "-m", "not cluster").assert_outcomes(passed=1, deselected=1)


def test_a_fixture_of_that_name_of_the_users_own_is_theirs(project: Project) -> None:
    project.test("""
import pytest

@pytest.fixture
def cluster():
    return "mine"

def test_mine(cluster):
    assert cluster == "mine"

@pytest.mark.parametrize("cluster", ["theirs"])
def test_theirs(cluster):
    assert cluster == "theirs"
""", "-m", "not cluster").assert_outcomes(passed=2)  # fmt: skip


PATHS = """
def test_paths(cluster):
    job = cluster.load({manifest!r}, program="train.py", data="digits")
    assert job.overrides["program"] == {program!r}
    assert job.overrides["data"] == "digits"
    assert str(job.manifest) == {found!r}
"""


@pytest.mark.parametrize("beside", [True, False])
def test_paths_are_beside_the_test_or_in_the_root_directory(
    beside: bool, project: Project, stage: Stage
) -> None:
    (project.root / "train.py").write_text("x = 1\n")
    folder = project.root / "tests"
    folder.mkdir()
    if beside:
        (folder / "train.py").write_text("x = 2\n")
        (folder / "own.toml").write_text(MANIFEST)
    text = PATHS.format(
        manifest="own.toml" if beside else "compose/demo.toml",
        program=str((folder if beside else project.root) / "train.py"),
        found=str(folder / "own.toml" if beside else project.root / "compose" / "demo.toml"),
    )
    project.test(text, at="tests/test_it.py").assert_outcomes(passed=1)


def test_versions_that_the_project_has_written_down_are_taken(
    project: Project, stage: Stage
) -> None:
    (project.root / "compose" / "tensorflow-2.16-cpu-amd64.lock").write_text("tensorflow==2.16.2\n")
    project.test("""
def test_locked(cluster):
    job = cluster.load("demo")
    (lock,) = (job.root / "compose").glob("*.lock")
    assert lock.read_text() == "tensorflow==2.16.2\\n"
""").assert_outcomes(passed=1)


def test_a_name_is_a_manifest_of_the_project_or_of_the_kit(project: Project, stage: Stage) -> None:
    project.test("""
def test_names(cluster):
    assert cluster.load("demo").manifest.parent.name == "compose"
    assert cluster.load("smoke").plan().source == "compose/smoke.toml"
""").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("test", "begins"),
    [
        ("test_it_learns", "test-it-learns-"),
        ("test_é[a/b-2]", "test-a-b-2-"),
        ("_1_", "t-1-"),
        ("test_" + "x" * 60, "test-" + "x" * 26 + "-"),
    ],
)
def test_every_test_has_a_name_that_a_cluster_may_have(
    test: str, begins: str, stage: Stage, tmp_path: Path
) -> None:
    root = stage.workspace.root
    new = tmp_path / "new"
    new.mkdir()
    made = clusters.Clusters(test, (root,), lambda: new, tmp_path)
    jobs = [made.load("demo") for _ in range(2)]
    assert all(job.name.startswith(begins) and len(job.name) <= 40 for job in jobs)
    assert jobs[0].name != jobs[1].name
    assert jobs[0].plan().name == jobs[0].name


def test_it_costs_nothing_where_nobody_uses_it() -> None:
    """The module that pytest loads imports nothing of the kit but its names."""
    import ast

    tree = ast.parse((ROOT / "cluster_kit" / "testing" / "plugin.py").read_text())
    tops = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in tops}
    assert names == {"__future__", "contextlib", "shutil", "collections.abc", "typing", "pytest"}


def test_pytest_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"cluster-kit": "cluster_kit.testing.plugin"}
    assert not any(one.startswith("pytest") for one in project["dependencies"])


def test_the_pages_example_runs(project: Project, stage: Stage) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (project.root / "programs" / "demo").mkdir(parents=True)
    (project.root / "programs" / "demo" / "train.py").write_text("x = 1\n")
    project.test(example).assert_outcomes(passed=2)
    assert not stage.engine.boxes
