"""A pipeline configuration must be where the tasks look for it."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.manifest.command_line import CommandLine
from cluster_kit.programs.resolve import resolve
from tests.make import manifest


def detection_problems(folder: Path, *args: str, data: str = "../half") -> list[str]:
    asked = manifest(program="detection", data=data, args=list(args))
    return [problem.text(CommandLine()) for problem in resolve(asked, folder).problems]


def test_detection_on_data_without_a_pipeline_is_a_problem(folder: Path) -> None:
    half = folder.parent / "half"
    (problem,) = detection_problems(folder, "--mode", "graph")
    assert problem.startswith('data = "../half": ')
    assert f"there is no pipeline.toml in {half}" in problem
    assert "docs/detection.md" in problem and "--pipeline-config FILE" in problem
    (half / "ssd.config").touch()
    (problem,) = detection_problems(folder)
    assert "name yours: `--args '--pipeline-config ssd.config'`" in problem
    (half / "pipeline.toml").touch()
    assert not detection_problems(folder)
    assert not detection_problems(folder, data="digit-scenes")


def test_the_pipeline_in_the_arguments_must_exist(folder: Path) -> None:
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


def test_a_pipeline_outside_of_the_data_is_refused(folder: Path) -> None:
    (folder.parent / "beside.toml").touch()
    for path in ("../beside.toml", str(folder.parent / "beside.toml")):
        (problem,) = detection_problems(folder, "--pipeline-config", path)
        assert f"the containers can access only {folder.parent / 'half'}" in problem
    in_image = "/opt/datasets/digit-scenes/pipeline.toml"
    assert not detection_problems(folder, "--pipeline-config", in_image)


def test_classic_names_and_a_configuration_in_parts_are_checked(folder: Path) -> None:
    half = folder.parent / "half"
    (half / "ssd.config").touch()
    for option in ("--pipeline_config_path", "--pipeline-config-path", "--pipeline_config"):
        assert not detection_problems(folder, option, "ssd.config")
        (problem,) = detection_problems(folder, f"{option}=none.config")
        assert f"there is no none.config in {half}" in problem
    trio = [f"--{part}_config_path={part}.config" for part in ("model", "train", "input")]
    problems = detection_problems(folder, *trio, "--train_dir", "ssd")
    assert [problem.split(": ")[0] for problem in problems] == [
        f"args = --{part}_config_path {part}.config" for part in ("model", "train", "input")
    ]
    for part in ("model", "train", "input"):
        (half / f"{part}.config").touch()
    assert not detection_problems(folder, *trio)
