"""How this task shares the machine's CPUs with others: its threads for each op, and the policy by
which the kernel schedules them."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping, MutableMapping

from trainer.agent.errors import ContractError
from trainer.agent.task import number
from trainer.contract.scheduling import BATCH, NORMAL, RULE, is_valid

THREADS = "TF_NUM_INTRAOP_THREADS"
"""TensorFlow's variable: the threads that compute one op together, unless a program sets them by
`tf.config.threading` or in a session's configuration."""
TRAINERS = "CLUSTER_KIT_TRAINERS"


def set_threads(environment: MutableMapping[str, str], cpus: int, limit: float | None) -> None:
    """Set THREADS if this task's part of the machine's CPUs is smaller than TensorFlow assumes.

    TensorFlow starts one thread per CPU in each task. The threads of tasks that compute at the same
    time then displace each other, and an op waits for the last of its parts.

    Args:
        cpus: the CPUs on which this task may run.
        limit: its CPU limit, in CPUs; None: it has none.
    Raises:
        ContractError: TRAINERS is not a number.
    """
    trainers = max(1, int(number(environment, TRAINERS, 1)))
    threads = min(cpus // trainers, math.ceil(limit or cpus))
    if threads < cpus:
        environment.setdefault(THREADS, str(max(1, threads)))


SCHEDULING = "CLUSTER_KIT_SCHEDULING"


def set_scheduling(environment: Mapping[str, str]) -> None:
    """Let the threads of this process and of its children preempt no thread when they wake up, if
    the manifest asks for BATCH.

    They then wait until a thread blocks or its time slice ends. Between the tasks of one job this
    saves half of the preemptions; behind a busy process of something else each message waits for
    milliseconds, so it is not the default. Source: SCHED_BATCH in sched(7).

    Raises:
        ContractError: SCHEDULING is neither BATCH nor NORMAL.
    """
    wanted = environment.get(SCHEDULING) or NORMAL
    if not is_valid(wanted):
        raise ContractError(f"{SCHEDULING} = {wanted!r}: {RULE}")
    if wanted == BATCH:
        with contextlib.suppress(OSError):  # a sandbox that does not allow it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
