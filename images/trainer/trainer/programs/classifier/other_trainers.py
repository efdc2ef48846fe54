"""Checks that the other trainers of an all-reduce start in time, and names those that are lost.

Collectives wait for every trainer, and TensorFlow's messages name tasks that are healthy.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping

from trainer.agent.errors import TrainerError
from trainer.agent.injected import mailbox
from trainer.agent.servers import probe
from trainer.agent.task import Task, addresses_by_task
from trainer.contract.endings import EXIT_DEADLINE

ASK_S = 2.0
TRAINERS = ("chief-", "worker-")


def others(task: Task) -> dict[str, str]:
    """Returns the name and address of every other trainer: chief (or master) and workers."""
    return {
        name: address
        for name, address in addresses_by_task(task.cluster).items()
        if name.startswith(TRAINERS) and name != task.name
    }


@contextlib.contextmanager
def all_here_within(task: Task) -> Iterator[None]:
    """End this process with EXIT_DEADLINE if the block is still running at the start deadline."""
    arrived = threading.Event()

    def watch() -> None:
        if arrived.wait(task.start_deadline_s):
            return
        with probe.Prober(others(task)) as prober:
            absent = [str(answer) for answer in prober.ask(ASK_S) if not answer.right]
        if arrived.is_set():
            return
        why = "; ".join(absent) or "all answer, but are not connected to each other"
        message = f"not all trainers were ready after {task.start_deadline_s:g} s: {why}"
        mailbox.leave_last_words(message)
        print(f"error: {message}", file=sys.stderr, flush=True)
        os._exit(EXIT_DEADLINE)

    threading.Thread(target=watch, name="peers", daemon=True).start()
    try:
        yield
    finally:
        arrived.set()


class OtherTrainers:
    """The other trainers, and their incarnations when training began."""

    def __init__(self, task: Task) -> None:
        self._others = others(task)
        with probe.Prober(self._others) as prober:
            self._began = {a.task: a.incarnation for a in prober.ask(ASK_S)}

    @contextlib.contextmanager
    def may_be_lost(self) -> Iterator[None]:
        """Replace TensorFlow's long error by one line that names the lost trainers.

        Raises:
            TrainerError: a collective operation failed, and a trainer was lost or restarted.
        """
        import tensorflow as tf

        try:
            yield
        except tf.errors.OpError as problem:
            with probe.Prober(self._others) as prober:
                lost = missing(prober.ask(ASK_S), self._began)
            connection = (tf.errors.UnavailableError, tf.errors.AbortedError,
                          tf.errors.DeadlineExceededError, tf.errors.CancelledError)  # fmt: skip
            if not lost and not isinstance(problem, connection):
                raise
            names = ", ".join(lost) or "another trainer"
            raise TrainerError(f"the connection to {names} was lost") from problem


def missing(answers: list[probe.Answer], began: Mapping[str, int]) -> list[str]:
    """Returns the names of tasks that do not answer, or were restarted since `began` (name →
    incarnation)."""
    return [a.task for a in answers if not a.right or a.incarnation != began.get(a.task)]
