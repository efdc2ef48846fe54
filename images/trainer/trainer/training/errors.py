"""What can go wrong with a graph-mode job and is not the program's own fault in the code."""

from __future__ import annotations

import itertools

from trainer.errors import TrainerError

EXIT_TRAINING_FAILED = 5


class PeerLost(TrainerError):
    """A task that this one cannot do without went away and did not come back."""

    exit_code = EXIT_TRAINING_FAILED


class Diverged(TrainerError):
    """The loss is no number any more."""

    exit_code = EXIT_TRAINING_FAILED


class CheckpointError(TrainerError):
    """The checkpoints that are there cannot be used, or a new one cannot be written."""

    exit_code = EXIT_TRAINING_FAILED


def in_short(problem: BaseException) -> str:
    """What an error of TensorFlow's says, in one line of the many."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    for before, line in itertools.pairwise(lines):
        if before.startswith("Node: "):
            return line[:200]
    return lines[0][:200] if lines else type(problem).__name__
