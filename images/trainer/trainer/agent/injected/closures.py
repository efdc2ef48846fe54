"""Counts the closures that a coordinator has scheduled and that each worker has finished.

A closure counts as one, or as the number of steps that its function says it makes: the attribute
`cluster_kit_steps` of the `tf.function`, a number or a function of the closure's arguments. Keras's
`fit` passes `steps_per_execution` to its function. Functions of Keras's `evaluate`, which is also
`fit`'s validation, are counted apart: they train nothing. If the program has started the servers
itself, in its process, it has made all steps itself.

TensorFlow does not report these. A thread writes the counts into the mailbox once a second, for the
supervisor, and once more when the program ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import threading
import time
from collections import Counter
from types import ModuleType

SAY_S, FIRST_S = 1.0, 0.2
"""Seconds between two looks at the counts, and until a first closure has finished."""
READ_S = 2.0
WRITES = threading.Lock()
SCHEDULED, JOINED, FAILED = NOT_FINISHED = ("scheduled", "joined", "failed")
SCORED, OF_TASKS, OF_PROGRAM = "scored ", "worker-", "in the program "


def count(mailbox: ModuleType) -> bool:
    """Start to count; returns False if this TensorFlow no longer has the classes."""
    try:
        from tensorflow.python.distribute.coordinator import cluster_coordinator
    except ModuleNotFoundError:
        return False
    closures = cluster_coordinator.Closure
    coordinators = cluster_coordinator.ClusterCoordinator
    execute = getattr(closures, "execute_on", None)
    schedule, join = coordinators.schedule, coordinators.join
    if execute is None:
        return False
    counts: Counter[str] = Counter()
    make, made = closures.__init__, threading.local()

    def execute_on(self: object, worker: object) -> None:
        try:
            execute(self, worker)
        except BaseException:
            counts[FAILED] += 1
            raise
        if not isinstance(self, cluster_coordinator.ResourceClosure):
            # Each worker has one thread and two keys.
            counts[f"{self.kind}{self.workers}{worker.worker_index}"] += self.steps

    def make_one(self: object, fn: object, manager: object, args: object = None,
                 kwargs: object = None) -> None:  # fmt: skip
        self.steps, self.kind = steps_of(fn, args), SCORED if scores(fn) else ""
        self.workers = getattr(made, "workers", OF_TASKS)
        if not isinstance(self, cluster_coordinator.ResourceClosure):
            # Here, since a worker may have finished it before `schedule` returns.
            made.steps = self.steps
            counts[SCHEDULED] += self.steps
        make(self, fn, manager, args=args, kwargs=kwargs)

    def schedule_one(
        self: object, fn: object, args: object = None, kwargs: object = None
    ) -> object:
        elsewhere = getattr(self.strategy, "cluster_kit_elsewhere", False)
        made.steps, made.workers = 0, OF_PROGRAM if elsewhere else OF_TASKS
        try:
            return schedule(self, fn, args=args, kwargs=kwargs)
        except BaseException:
            counts[SCHEDULED] -= made.steps
            raise

    def join_all(self: object) -> None:
        join(self)
        counts[JOINED] = counts[SCHEDULED]

    closures.execute_on = execute_on
    closures.__init__ = make_one
    coordinators.join = join_all
    coordinators.schedule = schedule_one
    threading.Thread(target=say, args=(counts, mailbox), name="closures", daemon=True).start()
    atexit.register(leave, counts, mailbox)
    return True


def steps_of(function: object, args: object) -> int:
    """Return the number of steps that a call of a function makes; 1 if the function does not
    say."""
    said = getattr(function, "cluster_kit_steps", 1)
    try:
        if said == 1 and args and of_keras(function):
            return steps_of_keras(function, args[-1])
        return max(1, int(said(*(args or ())) if callable(said) else said))
    except Exception:  # noqa: BLE001 - a wrong attribute must not end the training
        return 1


def of_keras(function: object) -> bool:
    """Whether `fit` or `evaluate` of Keras has made this function, for several steps."""
    code = getattr(getattr(function, "python_function", None), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    return names == ("iterator", "steps_per_execution")


def scores(function: object) -> bool:
    """Whether `evaluate` of Keras has made this function."""
    made_by = getattr(getattr(function, "python_function", function), "__qualname__", "")
    return "make_test_function" in str(made_by)


def steps_of_keras(function: object, variable: object) -> int:
    """Return Keras's `steps_per_execution`, read at most once in READ_S seconds: it is on a ps."""
    read_at, steps = getattr(function, "cluster_kit_read", (-math.inf, 1))
    if time.monotonic() - read_at > READ_S:
        steps = max(1, int(variable))
        function.cluster_kit_read = time.monotonic(), steps
    return steps


def say(counts: Counter[str], mailbox: ModuleType) -> None:
    """Write the counts whenever they have changed; never returns."""
    counted = 0
    while True:
        finished = counts.total() - sum(counts[key] for key in NOT_FINISHED)
        time.sleep(SAY_S if finished else FIRST_S)
        # Counts only grow, so the same sum means the same counts.
        if (now := counts.total()) != counted:
            counted = now
            leave(counts, mailbox)


def leave(counts: Counter[str], mailbox: ModuleType) -> None:
    """Write the counts; also called when the program ends."""
    now = dict(list(counts.items()))
    all_of_them = {key: now.pop(key, 0) for key in NOT_FINISHED}
    finished, scored = Counter(), Counter()
    for key, count in now.items():
        worker = key.removeprefix(SCORED)
        task = os.environ["CLUSTER_KIT_TASK"] if worker.startswith(OF_PROGRAM) else worker
        finished[task] += count
        scored[task] += count * (worker != key)
    text = json.dumps({**all_of_them, "finished": finished, "scored": +scored})
    with WRITES, contextlib.suppress(OSError):
        mailbox.leave_last_words(text, mailbox.CLOSURES)
