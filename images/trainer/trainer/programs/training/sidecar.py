"""The evaluator's loop: each checkpoint is scored as it appears, until the job has ended."""

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
    """Call `score` for every checkpoint that is `waiting`, in order.

    Returns when the job has ended and nothing was waiting after that: the last checkpoint is
    written before the job ends.
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
