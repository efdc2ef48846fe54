"""The evaluator's loop: scores each new checkpoint, until the job has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from trainer.agent.injected import mailbox
from trainer.agent.progress_file import Progress

POLL_S = 0.2
Checkpoint = TypeVar("Checkpoint")


def score_each(
    waiting: Callable[[], Sequence[Checkpoint]],
    score: Callable[[Checkpoint], None],
    progress: Progress | None = None,
) -> None:
    """Call `score` for every checkpoint that `waiting` returns, in order, and report when this
    begins and ends.

    Returns when the job has ended and no checkpoint was waiting after that. The last checkpoint is
    written before the job ends, so none is missed.
    """
    scores: bool | None = None
    while True:
        ended = mailbox.job_has_ended()
        pending = waiting()
        if progress and scores != bool(pending):
            scores = bool(pending)
            progress.write("scoring", pending=len(pending))
        for checkpoint in pending:
            score(checkpoint)
        if ended and not pending:
            return
        if not pending:
            time.sleep(POLL_S)
