"""Finds the checkpoints of epochs, `checkpoints/ckpt-<epoch>`, and removes old ones.

A checkpoint is complete when its `.index` exists. The newest, the best, and those that are not
scored yet are kept.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

from trainer.programs.training.program import checkpoint_directory

INDEX = re.compile(r"ckpt-(\d+)\.index")


@dataclass(frozen=True, order=True)
class Checkpoint:
    """The weights after `epoch` (from 1); `written` (ns) distinguishes a rewritten file from the
    first."""

    epoch: int
    path: str
    written: int

    @property
    def name(self) -> str:
        return f"ckpt-{self.epoch}"


def find(output: Path) -> list[Checkpoint]:
    """Returns all complete checkpoints, by epoch."""
    complete = []
    for file in checkpoint_directory(output).glob("ckpt-*.index"):
        match = INDEX.fullmatch(file.name)
        if match:
            try:
                written = file.stat().st_mtime_ns
            except FileNotFoundError:
                continue  # the chief has removed it
            complete.append(Checkpoint(int(match[1]), str(file.with_suffix("")), written))
    return sorted(complete)


MEMORY = "evaluator.json"
"""The evaluator's scores, in the output directory (see evaluate.Scores)."""
BEAT = "progress/evaluator-0.beat"
GONE_S = 30.0
"""After this many seconds without a heartbeat (one is sent per second), checkpoints are no longer
kept for the evaluator."""


def prune(output: Path, keep: int) -> list[str]:
    """Remove all but the newest `keep` checkpoints; return the names of the removed ones.

    The evaluator's best checkpoint stays. While an evaluator runs, those that it has not scored
    stay, too.
    """
    from trainer.programs.training.checkpoint_files import remove_checkpoint  # imports TensorFlow

    memory = output / MEMORY
    scores = json.loads(memory.read_text()) if memory.exists() else {}
    removed = []
    for checkpoint in find(output)[:-keep]:
        awaited = not is_scored(checkpoint, scores) and evaluator_lives(output)
        if checkpoint.name != scores.get("best") and not awaited:
            remove_checkpoint(Path(checkpoint.path))
            removed.append(checkpoint.name)
    return removed


def is_scored(checkpoint: Checkpoint, scores: dict) -> bool:
    """Whether the evaluator has scored the present version of the checkpoint."""
    return scores.get("written", {}).get(checkpoint.name) == checkpoint.written


def evaluator_lives(output: Path) -> bool:
    """Returns whether an evaluator is running that may still read checkpoints."""
    try:
        return time.time() - (output / BEAT).stat().st_mtime < GONE_S
    except OSError:
        return False
