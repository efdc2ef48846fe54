"""`tf.distribute.Server.join()` returns when the job has ended, instead of never.

Programs that run on every task end with it in workers and ps; each would otherwise have to be
stopped when its grace is over.
"""

from __future__ import annotations

import time
from types import ModuleType

LOOK_S = 0.05


def prepare(mailbox: ModuleType) -> bool:
    """Let `join` watch the mailbox; False if this TensorFlow does not have the class any more."""
    try:
        from tensorflow.python.training import server_lib
    except ModuleNotFoundError:
        return False

    def join(self: object) -> None:
        """Block until the job has ended."""
        while not mailbox.job_has_ended():
            time.sleep(LOOK_S)

    server_lib.Server.join = join
    return True
