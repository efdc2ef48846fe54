"""Which checkpoints of epochs stay: the newest, the best, and those that have yet to be scored."""

from __future__ import annotations

import json
import time
from pathlib import Path

from trainer.programs.classifier.model import checkpoints
from trainer.programs.classifier.model.checkpoints import Checkpoint
from trainer.programs.training.checkpoints.files import remove

MEMORY = "evaluator.json"
"""The evaluator's scores, in the output directory (see evaluate.Scores)."""
BEAT = "progress/evaluator-0.beat"
GONE_S = 30.0
"""An evaluator shows once a second that it is alive; after so long none is waited for."""


def prune(output: Path, keep: int) -> list[str]:
    """Remove all but the newest `keep` checkpoints; the names of those removed.

    The evaluator's best stays, and as long as there is an evaluator, what it has not scored.
    """
    memory = output / MEMORY
    scores = json.loads(memory.read_text()) if memory.exists() else {}
    removed = []
    for checkpoint in checkpoints.find(output)[:-keep]:
        awaited = not is_scored(checkpoint, scores) and evaluator_lives(output)
        if checkpoint.name != scores.get("best") and not awaited:
            remove(Path(checkpoint.path))
            removed.append(checkpoint.name)
    return removed


def is_scored(checkpoint: Checkpoint, scores: dict) -> bool:
    """Whether the evaluator has scored it as it is now."""
    return scores.get("written", {}).get(checkpoint.name) == checkpoint.written


def evaluator_lives(output: Path) -> bool:
    """Whether there is an evaluator that may want to read checkpoints."""
    try:
        return time.time() - (output / BEAT).stat().st_mtime < GONE_S
    except OSError:
        return False
