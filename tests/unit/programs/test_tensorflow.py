"""The versions of TensorFlow that a manifest can name, and requirements that contradict them."""

from __future__ import annotations

import re

import pytest

from cluster_kit.image.kit_image import SOURCE
from cluster_kit.programs.style import OWN_VERSION, check_pins, check_version
from tests.make import manifest, problems


def test_the_kits_own_version_equals_that_of_its_lock_files() -> None:
    for variant, package in (("cpu", "tensorflow-cpu"), ("gpu", "tensorflow")):
        text = (SOURCE / "recipe" / f"locked-{variant}.txt").read_text()
        found = re.search(rf"^{package}==(\S+)", text, re.MULTILINE)
        assert found and found[1] == OWN_VERSION


@pytest.mark.parametrize("version", ["", "2.15", "2.16.1", "2.22.0rc1", "3.0", "nightly"])
def test_a_version_is_two_or_three_numbers_or_nightly(version: str) -> None:
    assert not list(check_version(manifest(tensorflow=version)))


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        ("2.14", "the oldest that the kit installs is 2.15"),
        ("1.15.5", "the oldest that the kit installs is 2.15"),
        ("2", "not a version of TensorFlow"),
        ("latest", "not a version of TensorFlow"),
        (">=2.15", "not a version of TensorFlow"),
        ("../../2.15", "not a version of TensorFlow"),
    ],
)
def test_any_other_value_is_refused_with_the_rule(version: str, rule: str) -> None:
    (problem,) = problems(tensorflow=version)
    assert problem.key_path == "tensorflow" and rule in problem.text()


def test_the_key_cannot_be_combined_with_a_users_image() -> None:
    (problem,) = problems(tensorflow="2.16", image="mine:1")
    assert "only in its own image, not in mine:1" in problem.text()


@pytest.mark.parametrize(
    "line",
    ["tensorflow==2.16.1", "tensorflow-cpu == 2.16.1", "tensorflow[and-cuda]==2.16.1",
     "TensorFlow==2.16.1 ; python_version > '3.8'"],
)  # fmt: skip
def test_a_requirement_that_pins_another_version_is_reported_with_a_hint(line: str) -> None:
    for asked in ("", "2.16", "2.17"):
        written = manifest(requirements="r.txt", tensorflow=asked)
        (problem,) = check_pins(written, f"numpy\n{line}\n", ("r.txt:1", "r.txt:3"))
        assert problem.line == "r.txt:3"
        assert "asks for another TensorFlow" in problem.rule
        assert '`tensorflow = "2.16.1"`' in problem.hint_text()


PLACES = ("r.txt:1", "r.txt:2")


def test_the_same_version_and_other_packages_are_accepted() -> None:
    same = manifest(requirements="r.txt", tensorflow="2.16.1")
    assert not list(check_pins(same, "tensorflow==2.16.1\ntensorflow-datasets==4.9\n", PLACES))
    (problem,) = check_pins(manifest(requirements="r.txt"), "tensorflow==2.12\n", PLACES[:1])
    assert problem.hint == "remove the line: the oldest that the kit installs is 2.15"
    assert not list(check_pins(manifest(requirements="r.txt"), "tensorflow==2.21.0\n", PLACES[:1]))
    assert not list(check_pins(manifest(requirements="r.txt"), "tensorflow>=2.15\n", PLACES[:1]))
