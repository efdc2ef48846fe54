"""Sessions of the oldest style find out within a second that the chief has initialised the model.

`MonitoredTrainingSession` and `Supervisor` look every 30 seconds. A worker that is a moment too
early then sleeps while the others train, and of a short job it may not make a single step.
"""

from __future__ import annotations

import functools

LOOK_S = 1


def prepare() -> bool:
    """Let them look every LOOK_S; False if this TensorFlow does not have the class any more."""
    try:
        from tensorflow.python.training import session_manager
    except ModuleNotFoundError:
        return False
    plain = session_manager.SessionManager.__init__

    @functools.wraps(plain)
    def looking_often(self: object, *arguments: object, **keys: object) -> None:
        plain(self, *arguments, **keys)
        self._recovery_wait_secs = min(self._recovery_wait_secs, LOOK_S)

    session_manager.SessionManager.__init__ = looking_often
    return True
