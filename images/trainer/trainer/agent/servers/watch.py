"""Asks servers again and again: a process may live while its TensorFlow server does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from trainer.agent.beacon.heard import Silent
from trainer.agent.beacon.silence import Silence
from trainer.agent.servers.probe import Prober

ASK_EVERY_S = 2.0
PATIENCE = 2.0
"""Times the silence that a process may keep: TensorFlow's own threads answer, and they compute."""


def watch(
    servers: Mapping[str, str],
    silent_s: float,
    then: Callable[[Silent], None],
    over: threading.Event,
) -> None:
    """Call `then` about every server (name to address) that has not answered for too long.

    Ends with `over`. A server whose process is being started again is silent as well, for a short
    time: `silent_s` times PATIENCE is longer than a start takes.
    """
    patience_s = silent_s * PATIENCE
    silence = Silence(time.monotonic())
    for task in servers:
        silence.heard(task)
    with Prober(servers) as prober:
        while not over.wait(ASK_EVERY_S):
            for task in prober.answered(patience_s):
                silence.heard(task)
            silence.look(time.monotonic())
            for task, seconds in silence.longer_than(patience_s).items():
                then(Silent(task, seconds, server=True))
