"""The output's disk is full, or the output was removed or is read-only: a clear end, no
traceback."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.agent import disk_space, outcome
from trainer.agent import progress_file as trainer_events
from trainer.agent.outcome import Outcome
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task, read_task
from trainer.contract import endings
from trainer.contract.endings import EXIT_OUTPUT
from trainer.contract.events import Ready

ALONE = {"chief": ["127.0.0.1:1"]}
WAITS = "import time\nprint('trains', flush=True)\ntime.sleep(60)\n"
FILLS = """import pathlib
for number in range(10_000):
    pathlib.Path(f"part-{number}").write_bytes(bytes(100_000))
"""
needs_mounts = pytest.mark.skipif(
    subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="mounting a small disk takes root",
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The tests' output directory, on a separate disk with room for 1 MB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=False)


@pytest.fixture
def roomy(tmp_path_factory) -> str:
    """A directory for temporary files that is neither full nor removed."""
    return str(tmp_path_factory.mktemp("roomy"))


def start(run_task, folder: Path, roomy: str, text: str):
    program = folder / "program.py"
    program.write_text(text)
    return run_task("chief-0", ALONE, "run", str(program), TMPDIR=roomy)


def ended(task) -> tuple[int, str]:
    output = task.communicate(timeout=30)[0]
    return task.returncode, output


def read_until(task, words: str) -> None:
    for line in task.stdout:
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said")


@pytest.mark.mounts
@needs_mounts
def test_a_program_that_fills_the_disk_ends_with_its_name_and_the_free_space(
    run_task, small_disk, roomy
):
    code, output = ended(start(run_task, small_disk, roomy, FILLS))
    assert code == EXIT_OUTPUT
    last = output.splitlines()[-1]
    assert last.startswith(f"chief-0: the disk of {small_disk} is full (0 of 1 MB free)")
    assert "supervise.py" not in output


@pytest.mark.mounts
@needs_mounts
def test_a_disk_that_another_process_fills_ends_the_job(run_task, small_disk, roomy):
    task = start(run_task, small_disk, roomy, WAITS)
    read_until(task, "trains")
    (small_disk / "kept").write_bytes(b"a checkpoint")
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "large").write_bytes(bytes(2_000_000))
    began = time.monotonic()
    code, output = ended(task)
    assert (code, time.monotonic() - began < 10) == (EXIT_OUTPUT, True)
    assert "the disk of" in output and "Traceback" not in output
    assert (small_disk / "kept").read_bytes() == b"a checkpoint"


def test_a_read_only_output_is_reported(alone: Task, monkeypatch) -> None:
    """The test makes it read-only as a file system does after a disk error."""

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(disk_space, "write_new", refused)
    monkeypatch.setattr(disk_space, "LOOK_S", 0.01)
    outputs: list[Outcome] = []
    disk_space.watch(alone, outputs.append, threading.Event())
    assert [found.reason for found in outputs] == [endings.OUTPUT_LOST]
    assert outputs[0].message.endswith("cannot be written any more: Read-only file system")


def test_an_output_that_is_removed_ends_the_job(run_task, tmp_path, roomy):
    output, program = tmp_path / "output", tmp_path / "program.py"
    output.mkdir()
    program.write_text(WAITS)
    variables = {"CLUSTER_KIT_OUTPUT": str(output), "TMPDIR": roomy}
    task = run_task("chief-0", ALONE, "run", str(program), **variables)
    read_until(task, "trains")
    until = time.monotonic() + 20
    while '"ready"' not in (output / "progress" / "chief-0.jsonl").read_text():
        assert time.monotonic() < until, "its last event for now is not written yet"
        time.sleep(0.05)
    shutil.rmtree(output)
    code, printed = ended(task)
    assert code == EXIT_OUTPUT
    assert f"chief-0: {output} cannot be written any more: No such file or directory" in printed
    assert "Traceback" not in printed


def test_a_removed_progress_directory_is_created_again(tmp_path):
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})
    progress = Progress(task.progress_file)
    progress.write("start", attempt=1)
    shutil.rmtree(task.progress_file.parent)
    assert disk_space.trouble(task) is None
    progress.write("ready")
    assert trainer_events.last_event(task.progress_file) == Ready()


def test_a_truncated_line_does_not_damage_others(tmp_path, monkeypatch):
    progress = Progress(tmp_path / "chief-0.jsonl")
    write, left = os.write, [5]

    def cut(file: int, text: bytes) -> int:
        return write(file, text[: left.pop()] if left else text)

    monkeypatch.setattr(os, "write", cut)
    progress.write("start", attempt=1)
    progress.write("ready")
    assert trainer_events.last_event(tmp_path / "chief-0.jsonl") == Ready()


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_event_that_cannot_be_written_ends_nothing(tmp_path, monkeypatch):
    progress = Progress(tmp_path / "chief-0.jsonl")
    monkeypatch.setattr(os, "write", full)
    progress.write("ready")


FAILED = Outcome(1, endings.FAILED, "ResourceExhausted: No space left on device\nat save")


@pytest.mark.parametrize(
    ("found", "before", "reason"),
    [
        ("full", FAILED, endings.DISK_FULL),
        ("", FAILED, endings.DISK_FULL),
        ("", Outcome(1, endings.FAILED, "OSError: No space left on device: '/tmp/a'"), "failed"),
        ("", Outcome(1, endings.FAILED, "ValueError: no"), "failed"),
        ("tmp", FAILED, "failed"),
        ("lost", Outcome(1, endings.FAILED, "ValueError: no"), endings.OUTPUT_LOST),
        ("full", Outcome(0, endings.FINISHED, "the program finished"), "finished"),
        ("lost", Outcome(0, endings.FINISHED, "the program finished"), endings.OUTPUT_LOST),
        ("full", outcome.stopped(), "stopped"),
    ],
)  # fmt: skip
def test_a_full_disk_or_lost_output_replaces_the_programs_outcome(
    alone: Task, monkeypatch, found: str, before: Outcome, reason: str
) -> None:
    numbers = {"full": errno.ENOSPC, "lost": errno.EROFS}
    known = disk_space.of(alone, OSError(numbers[found], "why")) if found in numbers else None
    monkeypatch.setattr(disk_space, "has_no_room", lambda _folder: found == "tmp")
    monkeypatch.setattr(disk_space, "trouble", lambda _task: known)
    after = disk_space.instead(alone, before)
    assert after.reason == reason
    if reason == endings.DISK_FULL:
        assert after.message.endswith(": ResourceExhausted: No space left on device")
    assert (" (/tmp is full: " in after.headline) == (found == "tmp")


def test_a_disk_that_is_full_for_a_moment_ends_nothing(alone: Task, monkeypatch) -> None:
    problem = disk_space.of(alone, OSError(errno.ENOSPC, "why"))
    looks = iter([problem, problem, None, problem, problem, problem])
    monkeypatch.setattr(disk_space, "LOOK_S", 0.01)
    monkeypatch.setattr(disk_space, "trouble", lambda _task: next(looks))
    outputs: list[Outcome] = []
    disk_space.watch(alone, outputs.append, threading.Event())
    assert outputs == [problem]
    assert next(looks, "all were looked at") == "all were looked at"
