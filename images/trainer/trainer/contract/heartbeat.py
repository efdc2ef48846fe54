"""When a task is silent, and what is said of it: the same rule and words on both sides.

Tasks give a sign of life every BEAT_S: a leader and its followers each other, by the beacon; a
leader and an evaluator the host, by touching a file. `is_silent` decides when a task that gives
none is frozen or cut off.
"""

from __future__ import annotations

import time

from .times import BEAT_S

LONGEST_LOOK_S = 2.0 * BEAT_S
"""Of a longer time between two looks, the rest is the looking process's own silence."""
SERVER_PATIENCE = 2.0
"""How many times longer a TensorFlow server may be silent: its own threads answer, and they
compute."""


def limit_s(silent_s: float, *, server: bool = False) -> float:
    """Returns the seconds for which a task, or its TensorFlow server, may be silent; 0: forever.

    Args:
        silent_s: the manifest's `deadline.silent`.
    """
    return silent_s * SERVER_PATIENCE if server else silent_s


def is_silent(seconds: float, silent_s: float, *, server: bool = False) -> bool:
    """Returns whether a task that has given no sign of life for these seconds is frozen or cut off.

    Args:
        silent_s: the manifest's `deadline.silent`; with 0 a task never is.
        server: it is its TensorFlow server that does not answer.
    """
    return bool(silent_s) and seconds > limit_s(silent_s, server=server)


def passed(looked_at: float, now: float) -> float:
    """Returns the seconds between two looks that count as the silence of others.

    A process that is frozen or starved itself hears nobody, and nobody else is to blame for that.
    """
    return min(now - looked_at, LONGEST_LOOK_S)


def sentence(
    task: str, seconds: float, last_heard: float, *, server: bool = False, gone: bool = False
) -> str:
    """Returns what is said of a silent task.

    Args:
        last_heard: Unix seconds, shown as the time of day here.
        server: it is its TensorFlow server that does not answer.
        gone: its process has ended, and none has come in its place.
    """
    at = time.strftime("%H:%M:%S", time.localtime(last_heard))
    if server:
        process = "its process is gone" if gone else "its process lives"
        return f"{task}'s server has not answered for {seconds:.0f} s ({process}; last answer {at})"
    return f"{task} has been silent for {seconds:.0f} s (frozen or cut off; last heard {at})"
