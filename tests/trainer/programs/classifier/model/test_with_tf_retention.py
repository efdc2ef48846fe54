"""With TensorFlow, whose files they are: which checkpoints of epochs are removed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.classifier import checkpoints, evaluate
from trainer.programs.classifier.checkpoints import GONE_S, Checkpoint, prune


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "checkpoints").mkdir()
    for epoch in range(1, 7):
        for ending in ("index", "data-00000-of-00002", "data-00001-of-00002"):
            (tmp_path / "checkpoints" / f"ckpt-{epoch}.{ending}").touch()
    (tmp_path / "checkpoints" / "model.ckpt-40.index").touch()
    return tmp_path


def left(output: Path) -> list[int]:
    return [checkpoint.epoch for checkpoint in checkpoints.find(output)]


def remember(output: Path, *scored: int, best: int) -> None:
    written = {c.name: c.written for c in checkpoints.find(output) if c.epoch in scored}
    scores = {"written": written, "best": f"ckpt-{best}"}
    (output / "evaluator.json").write_text(json.dumps(scores))


def alive(output: Path, age_s: float = 0) -> None:
    beat = output / "progress" / "evaluator-0.beat"
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    os.utime(beat, times=(time.time() - age_s,) * 2)


def test_without_an_evaluator_only_the_newest_stay(output: Path) -> None:
    assert prune(output, 2) == ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4"]
    assert left(output) == [5, 6]
    assert len(list((output / "checkpoints").iterdir())) == 7
    assert prune(output, 2) == prune(output, 9) == []


def test_checkpoints_that_an_evaluator_has_not_scored_stay(output: Path) -> None:
    alive(output)
    assert prune(output, 1) == []
    remember(output, 1, 2, 4, best=2)
    assert prune(output, 1) == ["ckpt-1", "ckpt-4"]
    assert left(output) == [2, 3, 5, 6]
    alive(output, age_s=GONE_S + 1)
    prune(output, 1)
    assert left(output) == [2, 6], "the best and the newest"


def test_a_checkpoint_that_was_rewritten_is_scored_again(output: Path) -> None:
    alive(output)
    remember(output, 1, 2, best=2)
    os.utime(output / "checkpoints" / "ckpt-1.index", times=(1, 1))
    prune(output, 4)
    assert left(output) == [1, 2, 3, 4, 5, 6]


def test_a_checkpoint_that_is_being_replaced_is_read_later(output: Path) -> None:
    found = checkpoints.find(output)[0]  # its index is empty, as while it is written
    unreadable: dict[Checkpoint, float] = {}
    assert evaluate.load(found, None, unreadable) is None
    unreadable[found] -= evaluate.REPLACED_S + 1
    with pytest.raises(evaluate.DAMAGED):
        evaluate.load(found, None, unreadable)
