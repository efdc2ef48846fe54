"""The variables of a task in a user's image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainer.own_image import start

RECIPE = Path(start.__file__).parents[2] / "recipe" / "Dockerfile"
KIT_ONLY = {"PATH", "PYTHONPATH", "HOME", "TF_USE_LEGACY_KERAS"}


@pytest.mark.skipif(not RECIPE.exists(), reason="the recipe is not in the image")
def test_variables_equal_those_of_the_kits_own_image() -> None:
    block = re.search(r"^ENV ((?:.*\\\n)*.*)", RECIPE.read_text(), re.MULTILINE)
    assert block
    own = dict(word.split("=", 1) for word in block[1].replace("\\\n", " ").split())
    assert {name: value for name, value in own.items() if name not in KIT_ONLY} == start.USUAL


def test_variables_that_the_image_sets_are_kept(tmp_path: Path) -> None:
    given = {"LANG": "de_DE.UTF-8", "HOME": str(tmp_path), "PYTHONPATH": "/app:/more"}
    found = start.environment(given)
    assert (found["LANG"], found["HOME"]) == ("de_DE.UTF-8", str(tmp_path))
    assert found["PYTHONPATH"] == "/opt/trainer:/app:/more"
    assert start.environment(found)["PYTHONPATH"] == found["PYTHONPATH"]


def test_a_home_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    assert start.environment({"HOME": str(file / "home")})["HOME"] == "/tmp"
    assert start.environment({})["HOME"] == "/tmp"
