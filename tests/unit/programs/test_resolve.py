"""Program and data: in the image, or mounted from where the manifest lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.programs.resolve import resolve
from cluster_kit.resolved import Mount
from tests.make import manifest


def test_built_in_program_and_data_need_no_mount(folder: Path) -> None:
    found = resolve(manifest(), folder)
    assert (found.program, found.data) == ("classifier", "/opt/datasets/digits")
    assert (found.mounts, found.problems) == ((), ())


def test_a_program_brings_its_directory_and_data_their_own(folder: Path) -> None:
    found = resolve(manifest(program="../train.py", data="../images"), folder)
    assert (found.program, found.data) == ("/program/train.py", "/data")
    assert found.mounts == (
        Mount(str(folder.parent), "/program"),
        Mount(str(folder.parent / "images"), "/data"),
    )
    assert not found.problems


def test_an_absolute_path_and_one_from_home_are_taken_as_such(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    for path in (str(folder.parent / "images"), "~/images"):
        assert resolve(manifest(data=path), folder).mounts[0].source == str(
            folder.parent / "images"
        )


def images(folder: Path, *names: str) -> str:
    """A directory with these folders, an image in each; as a manifest names it."""
    for name in names:
        (folder.parent / "mine" / name).mkdir(parents=True)
        (folder.parent / "mine" / name / "1.JPG").touch()
    return "../mine"


@pytest.mark.parametrize(
    "names",
    [("rose", "tulip", ".git"), ("Train/rose",), ("train/rose", "val/rose"),
     ("Train/a", "Validate/a", "Test/a")],
)  # fmt: skip
def test_class_folders_do_and_parts_that_are_missing_are_taken_from_train(
    folder: Path, names: tuple[str, ...]
) -> None:
    assert not resolve(manifest(data=images(folder, *names)), folder).problems


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("rose",), "there is 1 folder with .png or .jpg files (rose/), and no Train/"),
        ((".git",), "there are 0 folders with .png or .jpg files, and no Train/"),
        (("rose/deeper",), "there are 0 folders"),
        (("Trian/rose", "val/rose"), "there is val/, but no Train/"),
    ],
)
def test_what_a_directory_lacks_is_named(folder: Path, names: tuple[str, ...], says: str) -> None:
    (problem,) = resolve(manifest(data=images(folder, *names)), folder).problems
    assert "needs a folder of images for each class, or Train/, Validate/, Test/" in problem.rule
    assert says in problem.rule


def test_a_users_program_may_lay_out_its_data_as_it_likes(folder: Path) -> None:
    found = resolve(manifest(program="../train.py", data="../half"), folder)
    assert not found.problems


@pytest.mark.parametrize("program", ["linear-regression", "detection"])
def test_only_the_classifier_asks_for_class_folders(program: str, folder: Path) -> None:
    (folder.parent / "half" / "pipeline.toml").touch()
    found = resolve(manifest(program=program, data="../half"), folder)
    assert (found.program, found.problems) == (program, ())
    assert found.mounts == (Mount(str(folder.parent / "half"), "/data"),)


def test_each_built_in_program_finds_its_sample_in_the_image(folder: Path) -> None:
    scenes = resolve(manifest(program="detection", data="digit-scenes"), folder)
    assert (scenes.data, scenes.mounts, scenes.problems) == ("/opt/datasets/digit-scenes", (), ())
    assert not resolve(manifest(program="linear-regression"), folder).problems
    assert not resolve(manifest(program="../train.py", data="digit-scenes"), folder).problems


@pytest.mark.parametrize("path", ["nowhere", "../train.py", "x" * 5000, "~nobody-at-all/x"])
def test_data_that_are_no_directory_are_a_problem(path: str, folder: Path) -> None:
    (problem,) = resolve(manifest(data=path), folder).problems
    assert problem.key_path == "data"
    assert "nor a directory at" in problem.rule


@pytest.mark.parametrize("path", ["nowhere.py", "..", "x" * 5000])
def test_a_program_that_is_no_file_is_a_problem(path: str, folder: Path) -> None:
    (problem,) = resolve(manifest(program=path), folder).problems
    assert problem.key_path == "program"
    assert "classifier" in problem.rule


@pytest.mark.parametrize(
    ("key", "written", "meant"),
    [
        ("program", "clasifier", "classifier"),
        ("program", "linear_regression", "linear-regression"),
        ("data", "digit", "digits"),
        ("data", "digit-scene", "digit-scenes"),
    ],
)
def test_a_name_that_is_nearly_right_is_proposed(
    key: str, written: str, meant: str, folder: Path
) -> None:
    (problem,) = resolve(manifest(**{key: written}), folder).problems
    assert problem.hint_text().startswith(f"did you mean `{meant}`? Or fix the path")
    (other,) = resolve(manifest(**{key: "../elsewhere"}), folder).problems
    assert other.hint_text().startswith("fix the path")


def test_links_in_a_circle_are_not_followed_for_ever(folder: Path) -> None:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    found = resolve(manifest(program="a", data="b"), folder)
    assert [problem.key_path for problem in found.problems] == ["program", "data"]


def test_a_directory_as_a_program_is_answered_with_the_file_in_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (problem,) = resolve(manifest(program="mine"), tmp_path).problems
    assert "which is a directory" in problem.rule and "contains none" in str(problem.hint)
    for name in ("data.py", "train.py"):
        (mine / name).write_text("")
    (problem,) = resolve(manifest(program="mine"), tmp_path).problems
    assert "such as mine/train.py; there are: data.py, train.py" in str(problem.hint)
    (mine / "train.py").unlink()
    (problem,) = resolve(manifest(program="mine"), tmp_path).problems
    assert str(problem.hint).endswith("such as mine/data.py")
