"""The evaluator's loop: scores each new checkpoint, until the job has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from trainer.agent.injected import mailbox

POLL_S = 0.2
Checkpoint = TypeVar("Checkpoint")


def score_each(
    waiting: Callable[[], Sequence[Checkpoint]], score: Callable[[Checkpoint], None]
) -> None:
    """Call `score` for every checkpoint that `waiting` returns, in order.

    Returns when the job has ended and no checkpoint was waiting after that. The last checkpoint is
    written before the job ends, so none is missed.
    """
    while True:
        ended = mailbox.job_has_ended()
        pending = waiting()
        for checkpoint in pending:
            score(checkpoint)
        if ended and not pending:
            return
        if not pending:
            time.sleep(POLL_S)
