"""Manifests, paths and names in tests with the plugin; and how pytest finds the plugin."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from cluster_kit.testing import clusters
from tests.fakes.hosts import fake_host
from tests.fakes.stage import MANIFEST, Stage
from tests.make import ROOT
from tests.unit.testing.project import PASSES, Project

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("usual_handlers")


def test_an_invalid_manifest_fails_with_the_kits_message(project: Project, stage: Stage) -> None:
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


def test_a_users_own_fixture_of_that_name_replaces_the_plugins(project: Project) -> None:
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
def test_paths_are_relative_to_the_test_or_the_root_directory(
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


def test_locked_versions_of_the_project_are_used(project: Project, stage: Stage) -> None:
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
def test_every_test_has_a_valid_cluster_name(
    test: str, begins: str, stage: Stage, tmp_path: Path
) -> None:
    root = stage.workspace.root
    new = tmp_path / "new"
    new.mkdir()
    made = clusters.Clusters(fake_host(), test, (root,), lambda: new, tmp_path)
    jobs = [made.load("demo") for _ in range(2)]
    assert all(job.name.startswith(begins) and len(job.name) <= 40 for job in jobs)
    assert jobs[0].name != jobs[1].name
    assert jobs[0].plan().name == jobs[0].name


def test_the_plugin_costs_nothing_if_it_is_not_used() -> None:
    """The module that pytest loads imports nothing of the kit but names."""
    tree = ast.parse((ROOT / "cluster_kit" / "testing" / "plugin.py").read_text())
    tops = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in tops}
    assert names == {"__future__", "contextlib", "shutil", "collections.abc", "typing", "pytest"}


def test_pytest_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"cluster-kit": "cluster_kit.testing.plugin"}
    assert not any(one.startswith("pytest") for one in project["dependencies"])


def test_the_example_on_the_page_runs(project: Project, stage: Stage) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (project.root / "programs" / "demo").mkdir(parents=True)
    (project.root / "programs" / "demo" / "train.py").write_text("x = 1\n")
    project.test(example).assert_outcomes(passed=2)
    assert not stage.engine.boxes
