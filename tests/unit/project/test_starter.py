"""A new cluster: a valid manifest, also with its examples, and a program that runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cluster_kit.advice.of_program import advise
from cluster_kit.errors import UsageError
from cluster_kit.platforms.platform import load, plan
from cluster_kit.programs.resolve import resolve
from cluster_kit.project import starter
from cluster_kit.resolved import Style
from cluster_kit.workspace import Workspace
from tests.make import OWN, ROOT, host, problems_of

STYLES: tuple[Style, ...] = ("coordinator", "all-tasks")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "compose").mkdir()
    return Workspace(tmp_path)


@pytest.mark.parametrize("style", STYLES)
def test_the_manifest_is_valid_as_it_is(style: Style, workspace: Workspace) -> None:
    made = starter.create("mine", style, workspace)
    read = load(made.manifest)
    cluster = plan(read, resolve(read.manifest, made.manifest.parent), host(), OWN)
    assert (cluster.name, cluster.style) == ("mine", style)
    assert cluster.mounts[0].source == str(workspace.root / "programs" / "mine")
    assert cluster.leader.command[1] == "/program/train.py"
    assert not advise(made.program, read.manifest)


@pytest.mark.parametrize("style", STYLES)
def test_every_example_in_it_holds_when_its_mark_is_taken_away(
    style: Style, workspace: Workspace
) -> None:
    made = starter.create("mine", style, workspace)
    (made.program.parent / "requirements.txt").write_text("tqdm\n")
    text = made.manifest.read_text()
    examples = re.compile(r"^# (\[[\w.]+\]|[\w.]+ = .*)$", re.MULTILINE)
    assert len(examples.findall(text)) == 7
    assert not problems_of(examples.sub(r"\1", text), made.manifest.parent)


@pytest.mark.parametrize("style", STYLES)
def test_the_program_is_outside_of_generated_files(style: Style, workspace: Workspace) -> None:
    made = starter.create("mine", style, workspace)
    assert made.program == workspace.root / "programs" / "mine" / "train.py"
    tree = ast.parse(made.program.read_text())
    assert "A starter" in (ast.get_docstring(tree) or "")
    assert not (workspace.manifests / "mine").exists()


def test_an_editor_finds_the_schema_if_it_exists(workspace: Workspace) -> None:
    assert "#:schema" not in starter.manifest("a", "coordinator", workspace)
    assert starter.manifest("a", "coordinator", Workspace(ROOT)).startswith("#:schema ./schema")


@pytest.mark.parametrize("name", ["My Cluster", "", "a/b", "../a", "-a", "a" * 41, "ü", "a\n"])
def test_an_invalid_name_creates_nothing_and_gets_a_suggestion(
    name: str, workspace: Workspace
) -> None:
    with pytest.raises(UsageError) as caught:
        starter.create(name, "coordinator", workspace)
    assert "DNS label" in caught.value.message
    assert re.search(r"`cluster-kit new [a-z0-9-]+`", caught.value.hint)
    assert list(workspace.root.rglob("*")) == [workspace.manifests]


@pytest.mark.parametrize("there", ["compose/mine.toml", "programs/mine/other.py", "programs/mine"])
def test_nothing_is_overwritten(there: str, workspace: Workspace) -> None:
    path = workspace.root / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = sorted(workspace.root.rglob("*"))
    with pytest.raises(UsageError) as caught:
        starter.create("mine", "coordinator", workspace)
    assert "exists already" in caught.value.message
    assert sorted(workspace.root.rglob("*")) == before
    assert path.read_text() == "mine"
