"""The wheel has all files that the kit reads from its clone; commands are named as they exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster_kit.util import paths
from tests.make import PYPROJECT, ROOT, WHEEL

TOLD = re.compile(r"(?:[^.\w]|paths\.)command\(['\"](\w+)['\"]\)")


def test_the_wheel_has_everything_that_the_kit_reads() -> None:
    assert {"compose/drills", "templates", "images/trainer"} <= WHEEL.keys()
    assert all(to == f"cluster_kit/files/{source}" for source, to in WHEEL.items())
    assert all((ROOT / source).exists() for source in WHEEL)


def test_a_package_in_a_clone_is_distinguished_from_an_installed_one(tmp_path: Path) -> None:
    assert paths.clone_of(ROOT / "cluster_kit") == ROOT
    assert paths.clone_of(tmp_path / "site-packages" / "cluster_kit") is None


def test_commands_are_named_as_they_exist_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.CALLED_BY, "make")
    assert paths.command("engine") == "make engine"
    monkeypatch.delenv(paths.CALLED_BY)
    assert paths.command("engine") == "cluster-kit engine", "who does not use make is told so"
    monkeypatch.setenv(paths.CALLED_BY, "make")
    assert paths.extra("compare", "drill") == "`make drill` installs it"
    monkeypatch.setattr(paths, "CLONE", None)
    assert paths.command("engine") == "cluster-kit engine"
    assert paths.command("image") == "cluster-kit image build"
    assert paths.extra("compare", "drill") == "`pip install 'cluster-kit[compare]'` does"


def test_every_suggested_command_exists_in_a_clone_and_in_a_wheel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Among them is `doctor`, which an installed wheel once did not have after it had installed an
    old engine."""
    told = {
        match
        for path in (ROOT / "cluster_kit").rglob("*.py")
        for match in TOLD.findall(path.read_text(encoding="utf-8"))
    }
    assert {"engine", "image", "cluster", "doctor"} <= told
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in told:
        assert paths.command(target).startswith("cluster-kit ")
        assert re.search(rf"^(\w+ )*{target}( \w+)*:", makefile, re.MULTILINE), target


def test_the_hosts_contract_is_a_link_to_the_images() -> None:
    """Both paths are in the source distribution, whichever of them hatchling finds first."""
    there = ROOT / "images" / "trainer" / "trainer" / "contract"
    assert (ROOT / "cluster_kit" / "contract").resolve() == there
    kept = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["force-include"]
    assert kept["images/trainer/trainer/contract"] == "images/trainer/trainer/contract"
