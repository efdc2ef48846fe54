"""The evaluator's loop, without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.agent.injected import mailbox
from trainer.agent.progress_file import Progress
from trainer.programs.training import sidecar


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job that continues until its file exists."""
    monkeypatch.setenv(mailbox.VARIABLE, str(tmp_path))
    monkeypatch.setattr(sidecar, "POLL_S", 0.0)
    return tmp_path / mailbox.JOB_ENDED


def test_checkpoints_that_appear_during_scoring_are_scored_in_order(job: Path) -> None:
    waiting, scored, told = [["one"], [], ["two", "three"]], [], []

    def look() -> list[str]:
        if not waiting:
            job.touch()
        return waiting.pop(0) if waiting else []

    class Told(Progress):
        def write(self, event: str, **values: object) -> None:
            told.append((event, values))

    sidecar.score_each(look, scored.append, Told(job.with_name("progress.jsonl")))
    assert scored == ["one", "two", "three"]
    assert told == [("scoring", {"pending": count}) for count in (1, 0, 2, 0)]


def test_the_checkpoint_at_the_jobs_end_is_still_scored(job: Path) -> None:
    job.touch()
    waiting, scored = [["last"]], []
    sidecar.score_each(lambda: waiting.pop() if waiting else [], scored.append)
    assert scored == ["last"]


def test_outside_a_cluster_existing_checkpoints_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mailbox.VARIABLE, raising=False)
    waiting, scored = [["one"]], []
    sidecar.score_each(lambda: waiting.pop() if waiting else [], scored.append)
    assert scored == ["one"]
