"""The host's catalog and the image's sources have the same programs, data sets and files."""

from __future__ import annotations

import re

import pytest

from cluster_kit.manifest.schema import Manifest
from cluster_kit.programs.catalog import DATA_SETS, DATA_SETS_IN_IMAGE, PROGRAMS, BuiltIn
from tests.make import ROOT

IMAGE = ROOT / "images" / "trainer"
PACKAGES = IMAGE / "trainer" / "programs"
DOCKERFILE = (IMAGE / "recipe" / "Dockerfile").read_text(encoding="utf-8")


def literals(program: BuiltIn) -> set[str]:
    """Returns every text in double quotes in the sources of a program."""
    sources = (PACKAGES / program.package).rglob("*.py")
    return {text for path in sources for text in re.findall(r'"([^"\n]*)"', path.read_text())}


def test_the_catalog_has_every_runnable_package_and_no_other() -> None:
    packages = {path.parent.name for path in PACKAGES.glob("*/__main__.py")}
    assert packages == {program.package for program in PROGRAMS.values()}


def test_the_catalog_has_every_data_set_of_the_image_and_no_other() -> None:
    built = set(re.findall(rf"{DATA_SETS_IN_IMAGE}/([a-z][a-z-]*)", DOCKERFILE))
    assert built == set(DATA_SETS)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_a_program_reads_the_files_of_the_catalog(program: BuiltIn) -> None:
    assert program.sample in ("", *DATA_SETS)
    read = {*(name for part in program.folders for name in part), program.pipeline} - {""}
    assert read <= literals(program)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_a_program_has_the_options_from_which_drills_read_its_length(program: BuiltIn) -> None:
    shared = (PACKAGES / "training").rglob("*.py")
    texts = {text for path in shared for text in re.findall(r'"([^"\n]*)"', path.read_text())}
    known = literals(program) | texts | {f"--{text}" for text in texts}
    assert set(program.steps) <= known


def test_programs_that_need_class_folders_or_a_pipeline_are_listed() -> None:
    assert [p.name for p in PROGRAMS.values() if p.folders] == ["classifier"]
    assert [p.name for p in PROGRAMS.values() if p.pipeline] == ["detection"]


def test_the_manifests_defaults_are_in_the_catalog_and_fit_each_other() -> None:
    default = Manifest.model_fields["program"].default
    assert Manifest.model_fields["data"].default == PROGRAMS[default].sample


def test_every_program_has_a_chapter_in_the_docs() -> None:
    page = (ROOT / "docs" / "built-in.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## ([a-z-]+)$", page, re.MULTILINE)
    assert headings == list(PROGRAMS)
