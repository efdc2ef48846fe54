"""new and init: the files they write, also for Make and CI; all of them or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_kit.util import paths
from tests.make import ROOT
from tests.unit.command_line import Cli

WHEEL = "cluster_kit-9-py3-none-any.whl"


@pytest.fixture
def kit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a wheel outside of the project."""
    path = tmp_path_factory.mktemp("dist") / WHEEL
    path.write_bytes(b"PK wheel")
    return str(path)


def files(root: Path) -> set[str]:
    found = (path for path in root.rglob("*") if not path.is_dir())
    return {path.relative_to(root).as_posix() for path in found} - {"compose/demo.toml"}


def test_new_and_init_are_the_same(cli: Cli, root: Path) -> None:
    assert cli("new", "first").out.replace("first", "other") == cli("init", "other").out
    one, two = ((root / "compose" / f"{name}.toml").read_text() for name in ("first", "other"))
    assert one.replace("first", "other") == two


def test_without_a_name_the_directorys_name_is_used(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = root / "My Project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert cli("init").code == 0
    assert files(project) == {"compose/my-project.toml", "programs/my-project/train.py"}


def test_outside_of_the_clone_it_writes_into_the_current_directory(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory may be empty, and the command that of a clone."""
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.chdir(empty)
    assert cli("new", "mine").code == 0
    assert files(empty) == {"compose/mine.toml", "programs/mine/train.py"}


def test_make_is_mentioned_only_if_there_is_a_makefile(cli: Cli, root: Path) -> None:
    output = cli("new", "mine").out
    texts = [output, *((root / path).read_text() for path in files(root))]
    assert "`cluster-kit up mine`" in output
    assert not any("make cluster" in text for text in texts)


def test_the_part_for_a_makefile_is_written_once_and_mentioned(cli: Cli, root: Path) -> None:
    (root / "Makefile").write_text("mine:\n")
    result = cli("new", "one", "--make")
    assert "write `include cluster-kit.mk` into your Makefile" in result.out
    assert "CLUSTER ?= one\n" in (root / "cluster-kit.mk").read_text()
    result = cli("new", "two", "--make")
    assert "cluster-kit.mk exists already: `make cluster CLUSTER=two` runs it" in result.out
    assert "CLUSTER ?= one\n" in (root / "cluster-kit.mk").read_text()
    assert (root / "Makefile").read_text() == "mine:\n"


def test_files_for_github_are_in_the_repositorys_root(
    cli: Cli, root: Path, kit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".git").mkdir()
    below = root / "ml" / "a b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert cli("new", "no", "--ci", "github", "--kit", kit).code == 0
    action = root / ".github" / "actions" / "cluster-kit"
    assert (action / "action.yml").read_bytes() == (ROOT / "action.yml").read_bytes()
    assert (action / WHEEL).read_bytes() == b"PK wheel"
    read = yaml.safe_load((root / ".github" / "workflows" / "cluster-no.yml").read_text())
    assert read["jobs"]["cluster"]["timeout-minutes"] > 60, "the starter's deadline ends it first"
    checkout, step = read["jobs"]["cluster"]["steps"]
    assert checkout["with"] == {"persist-credentials": False}
    assert step["with"] == {
        "kit": f".github/actions/cluster-kit/{WHEEL}",
        "manifest": "no",
        "working-directory": "ml/a b",
    }
    assert cli("new", "1e5", "--ci", "github", "--kit", kit).code == 0  # the action is shared
    read = yaml.safe_load((root / ".github" / "workflows" / "cluster-1e5.yml").read_text())
    assert read["jobs"]["cluster"]["steps"][1]["with"]["manifest"] == "1e5"


@pytest.mark.parametrize("system", ["github", "gitlab"])
def test_a_folder_that_ci_would_expand_is_refused(
    cli: Cli, root: Path, kit: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".git").mkdir()
    below = root / "ml-${{ secrets.A }}"
    below.mkdir()
    monkeypatch.chdir(below)
    result = cli("new", "one", "--ci", system, "--kit", kit)
    assert result.code == 2 and "has a `$` in its path" in result.err
    assert not list(root.rglob("*.yml"))


def test_files_for_gitlab_do_not_change_an_existing_pipeline(
    cli: Cli, root: Path, kit: str
) -> None:
    assert cli("new", "one", "--ci", "gitlab", "--kit", kit).code == 0
    pipeline = (root / ".gitlab-ci.yml").read_text()
    assert yaml.safe_load(pipeline) == {"include": [{"local": ".gitlab/cluster-one.yml"}]}
    result = cli("new", "two", "--ci", "gitlab", "--kit", "cluster-kit==1.2")
    assert "write `- local: .gitlab/cluster-two.yml` below `include:`" in result.out
    assert "commit them with what the manifest names (program, data" in result.out
    assert (root / ".gitlab-ci.yml").read_text() == pipeline
    read = yaml.safe_load((root / ".gitlab" / "cluster-two.yml").read_text())
    assert read["cluster two"]["timeout"] == "1h 30m", "the starter's deadline, 1 h, ends it first"
    assert read["cluster two"]["variables"]["KIT"] == "cluster-kit==1.2"
    assert read["cluster two"]["artifacts"]["when"] == "always"


def test_a_dev_container_with_the_hosts_engine_has_the_project_at_the_same_path(
    cli: Cli, root: Path, kit: str
) -> None:
    assert cli("new", "one", "--devcontainer", "--kit", kit).code == 0
    folder = root / ".devcontainer"
    described = json.loads((folder / "devcontainer.json").read_text())
    assert described["workspaceFolder"] == "${localWorkspaceFolder}"
    assert "target=${localWorkspaceFolder}," in described["workspaceMount"]
    assert described["onCreateCommand"].endswith(f"pip install .devcontainer/{WHEEL}")
    assert (folder / WHEEL).read_bytes() == b"PK wheel"
    assert "docker.io" not in (folder / "Dockerfile").read_text()
    assert cli("new", "two", "--devcontainer", "--kit", kit).code == 0, "both clusters share it"


def test_a_dev_container_with_its_own_engine(cli: Cli, root: Path) -> None:
    assert cli("new", "--devcontainer=inside", "--kit", "cluster-kit>=1.2").code == 0
    described = json.loads((root / ".devcontainer" / "devcontainer.json").read_text())
    assert described["runArgs"] == ["--privileged"] and "workspaceMount" not in described
    assert described["onCreateCommand"].endswith("pip install 'cluster-kit>=1.2'")
    assert "docker.io" in (root / ".devcontainer" / "Dockerfile").read_text()


def test_json_names_every_file(cli: Cli, root: Path, kit: str) -> None:
    result = cli("new", "one", "--make", "--ci", "github", "--kit", kit, "--json")
    facts: dict[str, Any] = json.loads(result.out)
    named = {facts["manifest"], facts["program"], *facts["beside"]}
    assert {Path(path).relative_to(root).as_posix() for path in named} == files(root)


def test_a_cluster_that_exists_already_gets_only_the_added_files(
    cli: Cli, root: Path, kit: str
) -> None:
    assert cli("new", "one").code == 0
    mine = dict.fromkeys((root / "compose" / "one.toml", *root.rglob("train.py")), "# mine\n")
    for path, text in mine.items():
        path.write_text(text)
    for words, there in (
        (["--ci", "github"], ".github/workflows/cluster-one.yml"),
        (["--ci", "gitlab"], ".gitlab/cluster-one.yml"),
        (["--devcontainer"], ".devcontainer/devcontainer.json"),
    ):
        before = files(root)
        result = cli("new", "one", *words, "--kit", kit)
        assert result.code == 0 and "compose/one.toml exists already" in result.out, result.err
        assert there in result.out and "cluster-kit up" not in result.out
        assert there in files(root) - before
    assert "open the folder" in cli("new", "one", "--devcontainer", "--kit", kit).out
    facts = json.loads(cli("new", "one", "--make", "--json").out)
    made = str(root / "cluster-kit.mk")
    assert facts == {"manifest": None, "program": None, "beside": [made]}
    assert {path: path.read_text() for path in mine} == mine
    result = cli("new", "one")
    assert result.code == 2 and "exists already" in result.err


@pytest.mark.parametrize(
    ("words", "there", "told"),
    [
        (("--ci", "jenkins"), "", "there are: github, gitlab"),
        (("--ci", "githb"), "", "did you mean `github`?"),
        (("--kit", "x"), "", "--kit without --ci"),
        (("--devcontainer=hots", "--kit", "x"), "", "did you mean `host`?"),
        (("--devcontainer", "--kit", "x"), ".devcontainer/devcontainer.json", "exists already"),
        (("--ci", "github", "--kit", "no.whl"), "", "no such file"),
        (("--ci", "github", "--kit", "x"), ".github/workflows/cluster-one.yml", "exists already"),
        (("--ci", "github", "--kit", "x"), ".github/actions/cluster-kit/action.yml",
         "is not what this command writes"),
        (("--ci", "gitlab", "--kit", "x"), ".gitlab/cluster-one.yml", "exists already"),
        (("--ci", "gitlab", "--kit", "x"), ".gitlab", "cannot be written"),
        (("--make",), "cluster-kit.mk", "exists already"),
        ((), "programs", "cannot be written"),
        ((), "compose/one.toml", "exists already"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_written_leaves_no_other_file(
    words: tuple[str, ...], there: str, told: str, cli: Cli, root: Path
) -> None:
    if there:
        (root / there).parent.mkdir(parents=True, exist_ok=True)
        (root / there).write_text("mine")
    before = sorted(root.rglob("*"))
    result = cli("new", "one", *words)
    assert result.code in (2, 3) and told in result.err
    assert sorted(root.rglob("*")) == before
    if there:
        assert (root / there).read_text() == "mine"


def test_a_full_disk_leaves_no_file(
    cli: Cli, root: Path, kit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, opened = sorted(root.rglob("*")), Path.open

    def full(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if mode == "xb" and path.name == "action.yml":
            raise OSError(28, "No space left on device", str(path))
        return opened(path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", full)
    result = cli("new", "one", "--make", "--ci", "github", "--kit", kit)
    assert result.code == 3 and "action.yml cannot be written: No space left" in result.err
    assert sorted(root.rglob("*")) == before


def test_the_clone_has_its_makefile(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CLONE", root)
    result = cli("new", "one", "--make")
    assert result.code == 2 and "`make cluster CLUSTER=one`" in result.err
