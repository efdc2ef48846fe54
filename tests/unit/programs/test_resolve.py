"""Program and data: in the image, or mounted from where the manifest lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.cluster import Mount
from cluster_kit.programs.resolve import resolve
from tests.make import manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `compose`, beside it a program and two data sets, one of them incomplete."""
    (tmp_path / "compose").mkdir()
    (tmp_path / "train.py").touch()
    for part in ("Train", "Validate", "Test"):
        (tmp_path / "images" / part).mkdir(parents=True)
    (tmp_path / "half" / "Train").mkdir(parents=True)
    return tmp_path / "compose"


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


def test_class_folders_that_are_missing_are_all_named(folder: Path) -> None:
    (problem,) = resolve(manifest(data="../half"), folder).problems
    assert "there is no Validate/, Test/" in problem.rule


def test_a_users_program_may_lay_out_its_data_as_it_likes(folder: Path) -> None:
    found = resolve(manifest(program="../train.py", data="../half"), folder)
    assert not found.problems


@pytest.mark.parametrize("program", ["linear-regression", "detection"])
def test_only_the_classifier_asks_for_class_folders(program: str, folder: Path) -> None:
    (folder.parent / "half" / "pipeline.toml").touch()
    found = resolve(manifest(program=program, data="../half"), folder)
    assert (found.program, found.problems) == (program, ())
    assert found.mounts == (Mount(str(folder.parent / "half"), "/data"),)


def detection_problems(folder: Path, *args: str, data: str = "../half") -> list[str]:
    asked = manifest(program="detection", data=data, args=list(args))
    return [problem.told() for problem in resolve(asked, folder).problems]


def test_detection_on_data_without_a_pipeline_is_a_problem(folder: Path) -> None:
    half = folder.parent / "half"
    (problem,) = detection_problems(folder, "--mode", "graph")
    assert problem.startswith('data = "../half": ')
    assert f"there is no pipeline.toml in {half}" in problem
    assert "docs/detection.md" in problem and "--pipeline-config FILE" in problem
    (half / "ssd.config").touch()
    (problem,) = detection_problems(folder)
    assert "(make: `ARGS='--pipeline-config ssd.config'`)" in problem
    (half / "pipeline.toml").touch()
    assert not detection_problems(folder)
    assert not detection_problems(folder, data="digit-scenes")


def test_the_pipeline_that_the_arguments_name_must_be_there(folder: Path) -> None:
    half = folder.parent / "half"
    (half / "deep").mkdir()
    (half / "deep" / "ssd.config").touch()
    for path in ("deep/ssd.config", "./deep/../deep/ssd.config", "/data/deep/ssd.config"):
        assert not detection_problems(folder, "--pipeline-config", path)
        assert not detection_problems(folder, f"--pipeline-config={path}")
        assert not detection_problems(folder, f"--pipe={path}", "--mode", "graph")
    last = ("--pipeline-config", "deep/ssd.config", "--pipeline-config", "none.toml")
    for args in (last, ["--pipeline-config=/data/none.toml"]):
        (problem,) = detection_problems(folder, *args)
        assert problem.startswith("args = --pipeline-config ")
        assert f"there is no none.toml in {half}" in problem


def test_a_pipeline_outside_of_the_data_is_not_seen_by_the_containers(folder: Path) -> None:
    (folder.parent / "beside.toml").touch()
    for path in ("../beside.toml", str(folder.parent / "beside.toml")):
        (problem,) = detection_problems(folder, "--pipeline-config", path)
        assert f"the containers see {folder.parent / 'half'}, and nothing beside it" in problem
    in_image = "/opt/datasets/digit-scenes/pipeline.toml"
    assert not detection_problems(folder, "--pipeline-config", in_image)


def test_each_built_in_program_finds_its_sample_in_the_image(folder: Path) -> None:
    scenes = resolve(manifest(program="detection", data="digit-scenes"), folder)
    assert (scenes.data, scenes.mounts, scenes.problems) == ("/opt/datasets/digit-scenes", (), ())
    assert not resolve(manifest(program="linear-regression"), folder).problems
    assert not resolve(manifest(program="../train.py", data="digit-scenes"), folder).problems


@pytest.mark.parametrize("path", ["nowhere", "../train.py", "x" * 5000, "~nobody-at-all/x"])
def test_data_that_are_no_directory_are_a_problem(path: str, folder: Path) -> None:
    (problem,) = resolve(manifest(data=path), folder).problems
    assert problem.place == "data"
    assert "nor a directory at" in problem.rule


@pytest.mark.parametrize("path", ["nowhere.py", "..", "x" * 5000])
def test_a_program_that_is_no_file_is_a_problem(path: str, folder: Path) -> None:
    (problem,) = resolve(manifest(program=path), folder).problems
    assert problem.place == "program"
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
    assert problem.cure_told().startswith(f"did you mean `{meant}`? Or mend the path")
    (other,) = resolve(manifest(**{key: "../elsewhere"}), folder).problems
    assert other.cure_told().startswith("mend the path")


@pytest.fixture
def default_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_KIT_BASE", raising=False)


NO_PYTHON = {
    "a loop over nothing": (b"x = 1\nfor x in\n", "2", "`for x in`", "invalid syntax"),
    "a bracket left open": (b"x = 1\ny = (x,\n", "2", "`y = (x,`", "was never closed"),
    "the print of Python 2": (b"print 'a'\n", "1", "`print 'a'`", "Missing parentheses"),
    "what only the compiler sees": (b"x = 1\n  # two\nreturn x\n", "3", "`return x`", "outside"),
    "another encoding": (b"x = 1\ny = '\xfc'\n", "2", "`y = '\ufffd'`", "utf-8"),
    "a long line": (b"x = [" + b"1, " * 100 + b"\n", "1", "1,…`", "was never closed"),
}


@pytest.mark.parametrize("what", NO_PYTHON)
@pytest.mark.usefixtures("default_base")
def test_a_program_that_is_no_python_is_a_problem(what: str, folder: Path) -> None:
    text, line, value, said = NO_PYTHON[what]
    (folder.parent / "train.py").write_bytes(text)
    (problem,) = resolve(manifest(program="../train.py"), folder).problems
    assert problem.place == f"train.py:{line}"
    assert problem.value.endswith(value) and said in problem.rule
    assert "mend the line" in problem.cure_told()


PASSED_OVER = {
    "no module": ("train", b"PK\x03\x04\0"),
    "too deep for a parser": ("train.py", b"-" * 200_000),
    "too long": ("train.py", b"(" * 1_000_001),
    "a warning": ("train.py", b"x = '\\d' is 1\n"),
    "an encoding that it names": ("train.py", b"# coding: latin-1\nx = '\xfc'\n"),
    "a byte order mark": ("train.py", b"\xef\xbb\xbfx = 1\n"),
}


@pytest.mark.parametrize("what", PASSED_OVER)
@pytest.mark.usefixtures("default_base")
def test_what_python_may_well_run_is_no_problem(
    what: str, folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    name, text = PASSED_OVER[what]
    (folder.parent / name).write_bytes(text)
    assert not resolve(manifest(program=f"../{name}"), folder).problems
    assert not recwarn.list


def test_an_image_whose_python_may_be_newer_is_left_to_judge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "train.py").write_text("for x in\n")
    monkeypatch.delenv("CLUSTER_KIT_BASE", raising=False)
    assert not resolve(manifest(program="../train.py", image="mine:1"), folder).problems
    monkeypatch.setenv("CLUSTER_KIT_BASE", "python:3.13")
    assert not resolve(manifest(program="../train.py"), folder).problems


def test_links_in_a_circle_are_not_followed_for_ever(folder: Path) -> None:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    found = resolve(manifest(program="a", data="b"), folder)
    assert [problem.place for problem in found.problems] == ["program", "data"]
