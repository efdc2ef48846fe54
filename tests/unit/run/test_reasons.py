"""A story for each reason with which a run can end; each is played from `up` to outcome.json."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, HostError, KitError, ManifestError
from cluster_kit.run.verdict import CODES, Reason
from tests.fakes.acting import ends
from tests.fakes.stage import Stage
from tests.schemas import check_run
from tests.unit.run.reason_stories import STORIES, leader


@pytest.mark.parametrize("name", STORIES)
def test_the_story_of(stage: Stage, name: str) -> None:
    story = STORIES[name]
    outcome = stage.up(story.acting, **story.overrides)
    assert (outcome.reason, outcome.exit_code, outcome.blame) == (
        story.reason,
        story.code,
        story.blame,
    ), outcome
    assert outcome.success == (story.code == 0)
    assert story.message in outcome.message
    tasks = {task.name: task for task in outcome.tasks}
    assert {name: tasks[name].exit_code for name in story.exit_codes} == story.exit_codes
    assert {name: tasks[name].restarts for name in story.restarts} == story.restarts
    assert outcome.notes == list(story.notes)
    assert stage.saved() == outcome.as_json()
    assert check_run(stage.directory.path) >= 10
    assert {path.stem for path in stage.directory.logs.iterdir()} == tasks.keys()
    assert {event["action"] for event in stage.events()} >= {"create", "start"}
    assert stage.is_clean()
    assert stage.view.differences == []


def test_the_last_output_is_that_of_the_task_to_blame(stage: Stage) -> None:
    outcome = stage.up(STORIES["the leader's program raises"].acting)
    assert 'File "/program/train.py", line 3' in outcome.last_words
    assert "ValueError" not in outcome.last_words, "the message says it already"


@pytest.mark.parametrize("mounted", [False, True])
def test_a_missing_data_file_has_a_hint_if_nothing_is_mounted(
    stage: Stage, mounted: bool, tmp_path: Path
) -> None:
    """If something is mounted, the hint says what."""
    for label in ("cats", "dogs"):
        (tmp_path / "data" / label).mkdir(parents=True)
        (tmp_path / "data" / label / "1.jpg").touch()
    missing = "FileNotFoundError: [Errno 2] No such file or directory: /data/train.csv"
    acting = {"chief-0": leader(ends(2.0, 1, "failed", missing))}
    outcome = stage.up(acting, **({"data": str(tmp_path / "data")} if mounted else {}))
    assert (outcome.reason, outcome.blame) == ("failed", "chief-0")
    is_there = f"/data is {tmp_path / 'data'}, which has cats/, dogs/"
    absent = "nothing is mounted at /data: run with `--data DIR`"
    assert outcome.cure == (is_there if mounted else absent)


def test_a_missing_data_file_has_a_hint_if_an_empty_directory_is_mounted(
    stage: Stage, tmp_path: Path
) -> None:
    (data := tmp_path / "data" / "train").mkdir(parents=True)
    missing = "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.npz'"
    acting = {"chief-0": leader(ends(2.0, 1, "failed", missing))}
    outcome = stage.up(acting, data=str(data.parent))
    assert outcome.cure == f"/data is {data.parent}, in which there is no file"


def test_a_missing_file_that_is_next_to_the_program_has_a_hint(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "conf").mkdir()
    for file in ("train.py", "conf/lr.json"):
        (tmp_path / file).touch()
    given = {"program": str(tmp_path / "train.py"), "args": []}
    for name, found in (("conf/lr.json", True), ("conf/no.json", False), ("../x/train.py", False)):
        missing = f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'"
        outcome = stage.up({"chief-0": leader(ends(2.0, 1, "failed", missing))}, **given)
        assert "relative paths start at /output" in outcome.cure
        assert (f"/program/{name}" in outcome.cure) == found
        assert ("in the program itself, or as /program" in outcome.cure) == found
        assert ("`--data DIR`" in outcome.cure) == (not found)
        assert ("; to write it, create conf first" in outcome.cure) == name.startswith("conf")


def test_a_missing_relative_file_that_is_in_the_data_has_a_hint(
    stage: Stage, tmp_path: Path
) -> None:
    for file in ("ml/train.py", "sets/train/x.csv"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    given = {"program": str(tmp_path / "ml/train.py"), "data": str(tmp_path / "sets"), "args": []}
    for pattern in ("train/*.csv", "sets/train/*.csv", "sets/train/x.csv"):
        missing = f"ValueError: No files match `file_pattern` {pattern}."
        outcome = stage.up({"chief-0": leader(ends(2.0, 1, "failed", missing))}, **given)
        opened = f"/data/{pattern.removeprefix('sets/')}"
        assert outcome.cure == (
            "relative paths start at /output, and this file is in the data's directory: "
            f"open it as {opened}"
        )


NEAR = "did you mean `/data/2025/load.npy`?"
ALL = "/data is {sets}, which has 0.csv, 1.csv, 2.csv, 2025/, 3.csv, …"


@pytest.mark.parametrize(
    ("missing", "cure"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/2025/laod.npy'", NEAR),
        ("FileNotFoundError: /data/2025/laod.npy not found.", NEAR),
        ("NotFoundError: /data/2025/laod.npy; No such file or directory", NEAR),
        ("NotFoundError: /data/load.npy; No such file or directory", NEAR),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/2025/other.csv'", ALL),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/2025/val.npy'", ALL),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/../laod.npy'", ""),
        ("FileNotFoundError: /data/link/laod.npy not found.", ALL),
        ("ValueError: /data/2025/laod.npy is broken", ""),
    ],
)
def test_a_missing_file_of_the_data_gets_the_most_similar_one_or_all(
    missing: str, cure: str, stage: Stage, tmp_path: Path
) -> None:
    more = (f"sets/{number}.csv" for number in range(9))
    for file in ("ml/train.py", "sets/2025/load.npy", "load.npy", *more):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "sets" / "link").symlink_to(tmp_path)  # a program can make one in a mount
    given = {"program": str(tmp_path / "ml/train.py"), "data": str(tmp_path / "sets"), "args": []}
    outcome = stage.up({"chief-0": leader(ends(2.0, 1, "failed", missing))}, **given)
    assert outcome.cure == cure.format(sets=tmp_path / "sets")


def test_every_task_gets_as_far_as_its_story(stage: Stage) -> None:
    """A story in which the fake does nothing would prove nothing."""
    outcome = stage.up(STORIES["the program never ends"].acting)
    assert outcome.timings_s["total"] > 50
    assert stage.view.states["chief-0"] == ["ready", "training", "ended"]


REFUSED: dict[Reason, tuple[type[KitError], int]] = {
    Reason.MANIFEST: (ManifestError, 2),
    Reason.HOST: (HostError, 3),
    Reason.ENGINE: (EngineError, 4),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_an_error_of_the_kit_during_a_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, reason: Reason
) -> None:
    kind, code = REFUSED[reason]
    error = kind("demo.toml", []) if kind is ManifestError else kind("no more", "fix it")

    def refuse(_seen: object) -> None:
        raise error

    monkeypatch.setattr(stage.view, "update", refuse)
    with pytest.raises(kind):
        stage.up()
    saved = stage.saved()
    assert (saved["success"], saved["reason"], saved["exit_code"]) == (False, reason, code)
    assert (saved["message"], saved["cure"]) == (error.message, error.hint)
    assert stage.is_clean()


ELSEWHERE = {
    Reason.DATA: "test_data_step",
    Reason.INTERRUPTED: "test_interrupt",
    Reason.INTERNAL: "test_launch: a bug in the kit",
}


def test_every_reason_has_a_story() -> None:
    told = {story.reason for story in STORIES.values()} | REFUSED.keys() | ELSEWHERE.keys()
    assert told == set(Reason)


def test_every_code_has_a_story() -> None:
    codes = {story.reason: story.code for story in STORIES.values()}
    assert {reason: codes[reason] for reason in CODES} == CODES
