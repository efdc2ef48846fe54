"""How many closures of a coordinator each worker has finished: TensorFlow does not tell.

A thread puts the counts into the mailbox once a second, for the supervisor.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from types import ModuleType

SAY_S = 1.0


def count(mailbox: ModuleType) -> bool:
    """Count from now on; False if this TensorFlow does not have the class any more."""
    try:
        from tensorflow.python.distribute.coordinator import cluster_coordinator
    except ModuleNotFoundError:
        return False
    closures = cluster_coordinator.Closure
    execute, finished = getattr(closures, "execute_on", None), Counter()
    if execute is None:
        return False

    def execute_on(self: object, worker: object) -> None:
        execute(self, worker)
        if not isinstance(self, cluster_coordinator.ResourceClosure):
            # Each worker has one thread, and a key of its own.
            finished[worker.worker_index] += 1

    closures.execute_on = execute_on
    threading.Thread(target=say, args=(finished, mailbox), name="closures", daemon=True).start()
    return True


def say(finished: Counter[int], mailbox: ModuleType) -> None:
    """For ever: write down what has changed."""
    said = 0
    while True:
        time.sleep(SAY_S)
        if (now := finished.total()) != said:
            said = now
            counts = {f"worker-{index}": count for index, count in list(finished.items())}
            mailbox.leave_last_words(json.dumps(counts), mailbox.FINISHED)
