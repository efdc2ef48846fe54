"""Expected failures of a training: the code is right, and yet it cannot go on."""

from __future__ import annotations

from trainer.agent.errors import TrainerError
from trainer.contract.endings import EXIT_TRAINING_FAILED


class PeerLost(TrainerError):
    """A task that this one depends on is gone, and did not come back in time."""

    exit_code = EXIT_TRAINING_FAILED


class Diverged(TrainerError):
    """The loss or a variable is not finite (NaN or infinite)."""

    exit_code = EXIT_TRAINING_FAILED


class CheckpointError(TrainerError):
    """Existing checkpoints cannot be used, or a new one cannot be written."""

    exit_code = EXIT_TRAINING_FAILED


def in_short(problem: BaseException) -> str:
    """The one telling line of TensorFlow's long messages, 200 characters at most."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    for before, line in zip(lines, lines[1:]):
        if before.startswith("Node: "):
            return line[:200]
    return lines[0][:200] if lines else type(problem).__name__
