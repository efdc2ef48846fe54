"""A full disk, or a removed output: a clear end, and existing files are kept."""

from __future__ import annotations

import errno
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_kit.errors import HostError
from cluster_kit.run import conclude, launch, run_directory, start
from cluster_kit.run.outcome import Outcome
from cluster_kit.workspace import newest_run_directory
from tests.fakes.acting import LEADS, Life, dies, ends, prints, says
from tests.fakes.stage import NAME, Stage

FULL = OSError(errno.ENOSPC, "No space left on device")
LOST = {"chief-0": [Life((says(0.1, "start", attempt=1), prints(0.2, "trains"), dies(1.0, 4)))]}
SAYS_FULL = {"chief-0": [Life((says(0.4, "ready"), ends(1.0, 4, "disk-full", "full")))]}


def raising(error: OSError) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates the system's answers for a disk of 64 MB."""
    disk = namedtuple("disk", "f_bavail f_frsize f_blocks")
    monkeypatch.setattr(run_directory.os, "statvfs", lambda _path: disk(0, 4096, 16_000))


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_named_with_its_free_space(stage: Stage) -> None:
    outcome = stage.up(SAYS_FULL)
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("disk-full", 3, None)
    assert f"the disk of {stage.directory.output} is full (0 MB of 65 MB free)" in outcome.message
    assert "make: RESUME=1" in outcome.cure and "if the program has saved one" in outcome.cure
    assert stage.saved() == outcome.as_json()
    assert stage.is_clean()


@pytest.mark.usefixtures("full_disk")
def test_a_programs_error_about_a_full_disk_is_not_shown_before_the_verdict(stage: Stage) -> None:
    error = "OSError: [Errno 28] No space left on device"
    ended = f"the disk of /output is full (0 of 64 MB free): {error}"
    lines = ("saving", "Traceback (most recent call last):", '  File "/program/a.py", line 1, in x',
             error, f"chief-0: {ended}")  # fmt: skip
    printing = [prints(0.5 + at / 100, line) for at, line in enumerate(lines)]
    outcome = stage.up({"chief-0": [Life((*printing, ends(1.0, 4, "disk-full", ended)))]})
    assert [line for _, line in stage.view.lines] == ["saving"]
    assert outcome.reason == "disk-full" and "MB free)" in outcome.message
    assert error in (stage.directory.logs / "chief-0.log").read_text()


def test_a_leader_that_could_not_write_its_reason_is_judged_correctly(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_directory, "is_full", lambda _folder: True)
    outcome = stage.up(LOST)
    assert (outcome.reason, outcome.exit_code) == ("disk-full", 3)
    assert {task.name: task.restarts for task in outcome.tasks}["chief-0"] == 0


def test_an_output_that_was_removed_is_named_and_the_rest_is_saved(stage: Stage) -> None:
    stage.clock.at(0.9, lambda: shutil.rmtree(stage.directory.path))
    outcome = stage.up(LOST)
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("output-lost", 3, None)
    assert f"output directory {stage.directory.output} was removed" in outcome.message
    assert stage.saved() == outcome.as_json()
    assert "trains" in (stage.directory.logs / "chief-0.log").read_text()
    assert stage.is_clean()


@pytest.mark.usefixtures("full_disk")
def test_logs_that_do_not_fit_do_not_prevent_the_outcome(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conclude, "save_logs", raising(FULL))
    with pytest.raises(HostError, match=r"the run ended \(finished\), but") as told:
        stage.up()
    assert "No space left on device (0 MB of 65 MB free)" in told.value.message
    assert stage.saved()["success"]
    assert stage.is_clean()


def test_a_failed_run_keeps_its_verdict_if_it_cannot_be_saved(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conclude, "save_logs", raising(FULL))
    outcome = stage.up({"chief-0": [Life((*LEADS.steps[:4], ends(2.0, 1, "failed", "E: no")))]})
    assert (outcome.reason, outcome.exit_code, outcome.message) == ("failed", 5, "E: no")
    assert "is not complete: No space left on device" in outcome.notes[-1]


def test_space_is_reserved_for_the_outcome_and_released(stage: Stage) -> None:
    sizes: list[int] = []
    reserve = ".reserve"
    stage.clock.at(2.0, lambda: sizes.append((stage.directory.path / reserve).stat().st_size))
    saved = run_directory.save_events
    assert stage.up().success
    assert sizes == [run_directory.RESERVED_BYTES]
    assert not (stage.directory.path / reserve).exists()
    assert saved is run_directory.save_events


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (launch, "new_run"),
        (start, "write_atomically"),
        (start, "_record"),
        (run_directory, "reserve"),
    ],
)
def test_a_full_workspace_is_reported_before_anything_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    monkeypatch.setattr(module, name, raising(FULL))
    with pytest.raises(HostError) as told:
        stage.up()
    assert "cannot be written: No space left on device (0 MB of 65 MB free)" in told.value.message
    assert str(stage.workspace.runs(NAME)) in told.value.message, "perhaps another disk"
    assert stage.docker.ups == []
    assert stage.is_clean()


@pytest.mark.parametrize("earlier", [True, False])
def test_a_run_that_never_began_is_not_the_last_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, earlier: bool
) -> None:
    before = stage.up() and stage.directory if earlier else None
    monkeypatch.setattr(run_directory, "reserve", raising(FULL))
    monkeypatch.setattr(Outcome, "write", raising(FULL))
    with pytest.raises(HostError):
        stage.up()
    assert [*stage.workspace.runs(NAME).glob("2*")] == ([before.path] if before else [])
    assert newest_run_directory(stage.workspace.runs(NAME)) == before


def test_checkpoints_without_the_files_of_their_run_stay(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a run's output that a person has copied, to continue it here."""
    kept = stage.workspace.runs(NAME) / "20261101-100000" / "output" / "checkpoint"
    kept.parent.mkdir(parents=True)
    kept.write_text("weights")
    monkeypatch.setattr(run_directory, "reserve", raising(FULL))
    monkeypatch.setattr(Outcome, "write", raising(FULL))
    with pytest.raises(HostError):
        stage.up(resume=True)
    assert kept.read_text() == "weights"


def test_a_run_on_another_disk_is_resumed_by_the_path_of_its_directory(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Otherwise it would not count as a run of this directory."""
    stage.workspace.runs(NAME).parent.symlink_to(tmp_path_factory.mktemp("disk"))
    assert stage.up().success
    assert stage.up(resume=True).run.startswith(str(stage.workspace.runs(NAME)))


def test_a_link_to_a_disk_that_is_not_mounted_is_named(stage: Stage) -> None:
    runs = stage.workspace.runs(NAME)
    runs.parent.mkdir()
    runs.symlink_to("/nowhere/runs")
    with pytest.raises(HostError, match="is a link to /nowhere/runs, which does not exist"):
        stage.up()


def test_free_space_is_that_of_the_nearest_existing_folder(tmp_path: Path) -> None:
    assert run_directory.free(tmp_path / "not" / "there") == run_directory.free(tmp_path)
    assert not run_directory.is_full(tmp_path)
    assert list(tmp_path.iterdir()) == []


SAVING = (
    prints(1.0, "Traceback (most recent call last):"),
    prints(1.0, '  File "/program/train.py", line 3, in <module>'),
    prints(1.0, "ResourceExhaustedError: Graph execution error:"),
    prints(1.0, "/output/backup/ckpt-3_temp/part-00000; No space left on device"),
)


@pytest.mark.usefixtures("full_disk")
def test_a_program_that_deletes_its_incomplete_file_is_judged_correctly(stage: Stage) -> None:
    """TensorFlow deletes the incomplete checkpoint when writing it fails."""
    failed = ends(1.1, 1, "failed", "the program ended with exit code 1")
    outcome = stage.up({"chief-0": [Life((says(0.4, "ready"), *SAVING, failed))]})
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("disk-full", 3, None)
    assert f"the disk of {stage.directory.output} is full (0 MB of 65 MB free)" in outcome.message
    assert "ckpt-3_temp" in outcome.last_words


@pytest.mark.parametrize("where", [": '/tmp/cache'", " (/tmp is full: 0 of 64 MB free)"])
def test_full_memory_is_not_a_full_disk(stage: Stage, where: str) -> None:
    words = f"OSError: [Errno 28] No space left on device{where}"
    outcome = stage.up({"chief-0": [Life((says(0.4, "ready"), ends(1.1, 1, "failed", words)))]})
    assert (outcome.reason, outcome.blame) == ("failed", "chief-0")
    assert ("tmp_size" in outcome.cure) == ("is full" in where)
