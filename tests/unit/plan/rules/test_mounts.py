"""Mounts of a manifest: what is refused before anything starts, and which tasks get which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.plan import container_rules
from cluster_kit.plan.container_rules import WHOLE
from cluster_kit.plan.portable import everywhere, moved, neutral
from cluster_kit.platforms.platform import load, plan
from cluster_kit.programs.resolve import resolve
from tests.make import OWN, cluster, problems, problems_of

LEAST = 'format = 1\nname = "demo"\n'


def mounted(*tables: dict[str, Any]) -> list[str]:
    """Returns the key paths of the problems of these mounts."""
    return [problem.key_path for problem in problems(mount=list(tables))]


def at(target: str, **more: Any) -> dict[str, Any]:
    return {"source": "cache", "target": target, **more}


def test_paths_that_the_kit_or_the_system_uses_are_refused(subtests: pytest.Subtests) -> None:
    for target in map(str, (*container_rules.OWN, *WHOLE)):
        with subtests.test(target=target):
            assert mounted(at(target)) == ["mount.0.target"]


@pytest.mark.parametrize(
    "target",
    ["/", "/data/x", "/output/x/y", "/run", "/opt", "cache", "", "../x", "/a/../data", "/a/"],
)
def test_targets_that_are_impossible_in_a_container_are_refused(target: str) -> None:
    assert mounted(at(target)) == ["mount.0.target"]


@pytest.mark.parametrize(
    "target", ["/cache", "/data2", "/etc/krb5.conf", "/tmp/.cache", "/opt/mine", "/a b", "/é$x"]
)
def test_targets_of_real_projects(target: str) -> None:
    assert mounted(at(target)) == []


def test_equal_and_nested_targets_are_refused() -> None:
    assert mounted(at("/a"), at("/a")) == ["mount.1.target"]
    assert mounted(at("/a/b"), at("/a")) == ["mount.1.target"]
    assert mounted(at("/a"), at("/ab")) == []
    apart = at("/a", roles=["ps"]), at("/a", roles=["worker"])
    assert mounted(*apart) == []
    assert mounted(at("/a", roles=["ps"]), at("/a", roles=["worker", "ps"])) == ["mount.1.target"]


def test_a_role_that_does_not_exist() -> None:
    (problem,) = problems(mount=[at("/a", roles=["wroker"])])
    assert (problem.key_path, problem.value) == ("mount.0.roles", '"wroker"')
    assert "worker" in problem.hint_text()


def test_a_mount_is_for_all_tasks_or_for_those_of_its_roles() -> None:
    made = cluster(mount=[at("/all"), at("/some", roles=["worker"], read_only=False)])
    assert [(m.source, m.target, m.read_only) for m in made.mounts] == [
        ("/home/you/cache", "/all", True)
    ]
    for task in made.tasks:
        targets = [(mount.target, mount.read_only) for mount in task.mounts]
        assert targets == ([("/some", False)] if task.role == "worker" else [])
    assert {mount.target for mount in made.all_mounts} == {"/all", "/some"}
    every = cluster(mount=[at("/all", roles=["chief", "worker", "ps", "evaluator"])])
    assert [mount.target for mount in every.mounts] == ["/all"]


@pytest.mark.parametrize("source", ["absent", "", "~nobody-of-this-name/x", "a\\u0000b", "file/x"])
def test_a_missing_source_is_refused(source: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    text = f'{LEAST}[[mount]]\nsource = "{source}"\ntarget = "/a"\n'
    (problem,) = problems_of(text, tmp_path)
    assert problem.key_path == "mount.0.source"
    assert not (tmp_path / "absent").exists()


def test_sources_are_relative_to_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for source in ("file", ".", str(tmp_path)):
        text = f'{LEAST}[[mount]]\nsource = "{source}"\ntarget = "/a"\n'
        assert problems_of(text, tmp_path) == []


def test_in_a_portable_file_sources_are_relative_or_absolute_as_written(
    tmp_path: Path,
) -> None:
    root, folder = tmp_path, tmp_path / "portable" / "demo"
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    theirs = '[[mount]]\nsource = "{}"\ntarget = "/b"\nroles = ["ps"]\n'
    for source, wanted in (("theirs", "../../theirs"), ("/var/tmp", "/var/tmp"), ("..", "")):
        file = tmp_path / "demo.toml"
        mine = '[[mount]]\nsource = "mine"\ntarget = "/a"\n'
        file.write_text(LEAST + mine + theirs.format(source))
        read = load(file)
        made = plan(read, resolve(read.manifest, tmp_path), neutral(read.manifest), OWN)
        if not wanted:
            with pytest.raises(UsageError, match="is outside of"):
                moved(made, folder, root, everywhere(read))
            continue
        made = moved(made, folder, root, everywhere(read))
        assert [mount.source for mount in made.mounts] == ["../../mine"]
        assert [mount.source for mount in made.of("ps")[0].mounts] == [wanted]


def test_all_problems_of_structure_are_reported_together(tmp_path: Path) -> None:
    first = '[[mount]]\nsorce = "x"\ntarget = 3\n'
    second = '[[mount]]\nsource = "."\ntarget = "/a"\nread_only = "no"\n'
    text = LEAST + first + second
    found = {problem.key_path: problem.hint_text() for problem in problems_of(text, tmp_path)}
    assert found.keys() == {
        "mount.0.source",
        "mount.0.sorce",
        "mount.0.target",
        "mount.1.read_only",
    }
    assert "did you mean `source`?" in found["mount.0.sorce"]
    assert problems_of(f'{LEAST}mount = "x"\n', tmp_path)[0].rule == "must be a list"
    assert problems_of(f"{LEAST}[mount]\n", tmp_path)[0].rule == "must be a list"
