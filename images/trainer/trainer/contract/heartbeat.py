"""The rule for silent tasks and its message, for the host and the image.

Tasks send a heartbeat every BEAT_S: a leader and its followers to each other, by the beacon; a
leader and an evaluator to the host, by touching a file. `is_silent` decides when a task that sends
none is frozen or cut off.
"""

from __future__ import annotations

import time

from .times import BEAT_S

LONGEST_LOOK_S = 2.0 * BEAT_S
"""The longest time between two checks that counts; the rest is the checking process's own pause."""
SERVER_PATIENCE = 2.0
"""The factor by which a TensorFlow server may be silent longer, since its threads also compute."""


def limit_s(silent_s: float, *, server: bool = False) -> float:
    """Returns the seconds for which a task, or its TensorFlow server, may be silent; 0: no limit.

    Args:
        silent_s: the manifest's `deadline.silent`.
    """
    return silent_s * SERVER_PATIENCE if server else silent_s


def is_silent(seconds: float, silent_s: float, *, server: bool = False) -> bool:
    """Returns whether a task without a heartbeat for these seconds is frozen or cut off.

    Args:
        silent_s: the manifest's `deadline.silent`; if 0, no task is.
        server: whether its TensorFlow server is what does not answer.
    """
    return bool(silent_s) and seconds > limit_s(silent_s, server=server)


def passed(looked_at: float, now: float) -> float:
    """Returns the seconds between two checks that count as the silence of other tasks.

    A process that is itself frozen or starved receives no heartbeats; other tasks are not to blame
    for that.
    """
    return min(now - looked_at, LONGEST_LOOK_S)


def sentence(
    task: str, seconds: float, last_heard: float, *, server: bool = False, gone: bool = False
) -> str:
    """Returns the message about a silent task.

    Args:
        last_heard: Unix seconds, shown as local time.
        server: whether its TensorFlow server is what does not answer.
        gone: whether its process has ended, and no new one has started.
    """
    at = time.strftime("%H:%M:%S", time.localtime(last_heard))
    if server:
        process = "its process has ended" if gone else "its process runs"
        return f"{task}'s server has not answered for {seconds:.0f} s ({process}; last answer {at})"
    return f"{task} has been silent for {seconds:.0f} s (frozen or cut off; last heard {at})"
