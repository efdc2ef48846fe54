"""Program and data: in the image, or mounted from the manifest's directory."""

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


def test_a_program_and_data_are_mounted_with_their_directories(folder: Path) -> None:
    found = resolve(manifest(program="../train.py", data="../images"), folder)
    assert (found.program, found.data) == ("/program/train.py", "/data")
    assert found.mounts == (
        Mount(str(folder.parent), "/program"),
        Mount(str(folder.parent / "images"), "/data"),
    )
    assert not found.problems


def test_absolute_and_home_paths_are_accepted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    for path in (str(folder.parent / "images"), "~/images"):
        assert resolve(manifest(data=path), folder).mounts[0].source == str(
            folder.parent / "images"
        )


def images(folder: Path, *names: str) -> str:
    """Returns a directory with these folders, an image in each, as a manifest names it."""
    for name in names:
        (folder.parent / "mine" / name).mkdir(parents=True)
        (folder.parent / "mine" / name / "1.JPG").touch()
    return "../mine"


@pytest.mark.parametrize(
    "names",
    [("rose", "tulip", ".git"), ("Train/rose",), ("train/rose", "val/rose"),
     ("Train/a", "Validate/a", "Test/a")],
)  # fmt: skip
def test_class_folders_are_enough_and_missing_parts_are_taken_from_train(
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
def test_missing_parts_of_a_directory_are_named(
    folder: Path, names: tuple[str, ...], says: str
) -> None:
    (problem,) = resolve(manifest(data=images(folder, *names)), folder).problems
    assert "needs a folder of images for each class, or Train/, Validate/, Test/" in problem.rule
    assert says in problem.rule


def test_a_users_program_may_use_any_layout_of_data(folder: Path) -> None:
    found = resolve(manifest(program="../train.py", data="../half"), folder)
    assert not found.problems


@pytest.mark.parametrize("program", ["linear-regression", "detection"])
def test_only_the_classifier_requires_class_folders(program: str, folder: Path) -> None:
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
def test_data_that_are_not_a_directory_are_a_problem(path: str, folder: Path) -> None:
    (problem,) = resolve(manifest(data=path), folder).problems
    assert problem.key_path == "data"
    assert "nor a directory at" in problem.rule


@pytest.mark.parametrize("path", ["nowhere.py", "..", "x" * 5000])
def test_a_program_that_is_not_a_file_is_a_problem(path: str, folder: Path) -> None:
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
def test_a_misspelled_name_gets_a_suggestion(
    key: str, written: str, meant: str, folder: Path
) -> None:
    (problem,) = resolve(manifest(**{key: written}), folder).problems
    assert problem.hint_text().startswith(f"did you mean `{meant}`? Or fix the path")
    (other,) = resolve(manifest(**{key: "../elsewhere"}), folder).problems
    assert other.hint_text().startswith("fix the path")


@pytest.mark.parametrize(
    ("table", "key", "near"),
    [
        ({"program": "ml/chrun.py"}, "program", "ml/churn.py"),
        ({"program": "m/churn.py"}, "program", "ml/churn.py"),
        ({"program": "lm/churn"}, "program", "ml/churn.py"),
        ({"program": "above/above.py"}, "program", "../above/above.py"),
        ({"data": "above"}, "data", "../above"),
        ({"data": "imagse"}, "data", "images"),
        ({"data": "images/trian"}, "data", "images/train"),
        ({"data": {"fetch": "ml/fecth.py"}}, "data.fetch", "ml/fetch.py"),
        ({"requirements": "need.txt"}, "requirements", "needs.txt"),
        ({"build": "imgae"}, "build", "images"),
        ({"mount": [{"source": "imges", "target": "/x"}]}, "mount.0.source", "images"),
        ({"secret": {"key": {"file": "need.txt"}}}, "secret.key", "needs.txt"),
        ({"role": {"worker": {"env_file": "need.txt"}}}, "role.worker.env_file", "needs.txt"),
    ],
)
def test_a_misspelled_path_gets_the_most_similar_one(
    table: dict[str, object], key: str, near: str, folder: Path
) -> None:
    (folder / "images" / "train").mkdir(parents=True)
    (folder.parent / "above").mkdir()
    (folder.parent / "above" / "above.py").touch()
    for file in ("ml/churn.py", "ml/fetch.py", "ml/train.py", "needs.txt"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    (problem,) = resolve(manifest(**table), folder).problems
    assert problem.key_path == key
    assert problem.hint_text().startswith(f"did you mean `{near}`? Or "), problem
    assert "fix the path" in problem.hint_text()


def test_cyclic_links_are_not_followed_forever(folder: Path) -> None:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    found = resolve(manifest(program="a", data="b"), folder)
    assert [problem.key_path for problem in found.problems] == ["program", "data"]


def test_a_directory_as_a_program_gets_a_hint_to_the_file_in_it(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "name", ["mine.train", "python -m mine.train", "-m mine.train", "mine.cli"]
)
def test_a_module_in_place_of_a_file_gets_the_line_that_runs_it(folder: Path, name: str) -> None:
    package = folder / "mine"
    (package / "cli").mkdir(parents=True)
    for file in (package / "train.py", package / "cli" / "__main__.py"):
        file.touch()
    (problem,) = resolve(manifest(program=name), folder).problems
    module = name.rpartition(" ")[2]
    assert f"import runpy; runpy.run_module('{module}', run_name='__main__')" in str(problem)


def test_a_module_that_is_not_there_is_a_wrong_path(folder: Path) -> None:
    (problem,) = resolve(manifest(program="mine.train"), folder).problems
    assert "fix the path" in str(problem)
