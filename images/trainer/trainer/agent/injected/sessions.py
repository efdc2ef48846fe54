"""Sessions of the oldest style begin soon after the chief's, and end soon after the last step.

`MonitoredTrainingSession` and `Supervisor` look every 30 seconds whether the chief has initialised
the model. A worker that is a moment too early then sleeps while the others train, and of a short
job it may not make a single step. At their end they give threads 120 seconds, and leave them then:
the chief's thread of `SyncReplicasOptimizer` waits for gradients that nobody sends any more, and
never takes less.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

LOOK_S = 1
USUAL_GRACE_S = 120
GRACE_S = 5


def prepare() -> bool:
    """Let them look every LOOK_S, and wait GRACE_S unless the program says how long; False if this
    TensorFlow does not have the classes any more."""
    try:
        from tensorflow.python.training import coordinator, session_manager
    except ImportError:
        return False
    plain = session_manager.SessionManager.__init__

    @functools.wraps(plain)
    def looking_often(self: object, *arguments: object, **keys: object) -> None:
        plain(self, *arguments, **keys)
        self._recovery_wait_secs = min(self._recovery_wait_secs, LOOK_S)

    session_manager.SessionManager.__init__ = looking_often
    coordinator.Coordinator.join = less_patient(coordinator.Coordinator.join)
    return True


def less_patient(plain: Callable) -> Callable:
    """`Coordinator.join`, which waits GRACE_S for threads that it may leave running."""

    @functools.wraps(plain)
    def join(
        self: object,
        threads: object = None,
        stop_grace_period_secs: float = USUAL_GRACE_S,
        ignore_live_threads: bool = False,
    ) -> None:
        usual = ignore_live_threads and stop_grace_period_secs == USUAL_GRACE_S
        plain(self, threads, GRACE_S if usual else stop_grace_period_secs, ignore_live_threads)

    return join
