"""What failures leave of a training's time: closed forms, and a replay of given absences. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


def checkpoint_interval(mtbf: float, checkpoint: float) -> float:
    """The best seconds between checkpoints: Young 1974, sqrt(2 C M), with Daly's correction 2006.

    Args:
        mtbf: mean seconds between failures of all machines that stop the training.
        checkpoint: seconds that saving takes.
    """
    if checkpoint >= 2 * mtbf:
        return mtbf
    ratio = checkpoint / (2 * mtbf)
    return math.sqrt(2 * checkpoint * mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - checkpoint


def useful_share(mtbf: float, checkpoint: float, restart: float, every: float) -> float:
    """The useful part of the time: Daly's expression for exponential failures."""
    exponent = (every + checkpoint) / mtbf
    if exponent > 500 or restart / mtbf > 200:
        return 0.0
    return every / (mtbf * math.exp(restart / mtbf) * math.expm1(exponent))


@dataclass(frozen=True)
class Away:
    """A task without its machine, in seconds since the first step; `back` is None if for good.

    `stops` says whether the whole training stops meanwhile.
    """

    task: str
    left: float
    back: float | None
    stops: bool


@dataclass(frozen=True)
class Replay:
    """The useful part of the time, and the seconds of work that were done twice."""

    share: float
    redone_s: float


def replay(
    absences: Sequence[Away],
    seconds: float,
    workers: int,
    restart: float,
    save_every: float | None,
) -> Replay:
    """The useful part of a training with these absences.

    While a task is away that stops the training, and for `restart` seconds after its return,
    nothing is done, and the work since the last checkpoint is done again. While another task is
    away, and for `restart` seconds after its return, its share of the work is missing.

    Args:
        seconds: the length of the training.
        workers: tasks that share the work.
        restart: seconds from a return until the task works again.
        save_every: seconds of work between two checkpoints; None if unknown: nothing is lost then.
    """
    spans = [
        (one, max(0.0, one.left), seconds if one.back is None else min(seconds, one.back + restart))
        for one in absences
        if one.left < seconds
    ]
    moments = sorted({0.0, seconds, *(m for _, left, until in spans for m in (left, until))})
    done = redone = 0.0
    was_stopped = False
    for begin, end in pairwise(moments):
        now = [one for one, left, until in spans if left <= begin < until]
        stopped = any(one.stops for one in now)
        begins = any(one.stops and left == begin for one, left, _ in spans)
        if begins and not was_stopped and save_every:
            lost = math.fmod(done, save_every)
            done, redone = done - lost, redone + lost
        was_stopped = stopped
        if not stopped:
            missing = len({one.task for one in now})
            done += (end - begin) * max(0.0, 1 - missing / workers)
    return Replay(done / seconds if seconds else 0.0, redone)
