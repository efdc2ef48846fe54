"""The length of a training in steps and epochs, computed before TensorFlow is imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainer.agent.task import Task
from trainer.programs.classifier import mode
from trainer.programs.classifier.options import Options
from trainer.programs.training.graph_mode.replica import gradients_per_round


@dataclass(frozen=True)
class Schedule:
    """The length of a training. A step is one update of the variables."""

    strategy: str
    """One of mode.STRATEGIES, never `auto`."""
    images_per_step: int
    steps_per_epoch: int
    epochs: int
    first_epoch: int = 0
    """The first epoch that is not yet trained, from 0."""

    @property
    def steps(self) -> int:
        """The number of steps of all epochs together."""
        return self.epochs * self.steps_per_epoch


SHORT_S, LONG_S, LONG_IF_EVEN_S = 0.05, 0.5, 1.5
"""The minimum length of a call in seconds, for each worker, and its usual maxima. A call takes the
chief 5 ms of CPU time, a ps 10 ms, and its worker 10 ms. Longer calls would keep the others waiting
at the end of an epoch."""
SHARES = 3
"""Each worker gets about so many calls before the calls become shorter."""


def calls_of(
    count: int,
    workers: int,
    steps_per_s: float,
    exactly: int | None = None,
    *,
    even: bool = False,
) -> list[int]:
    """Returns the steps of each call that a chief sends to its workers; their sum is `count`.

    The calls become shorter towards the end, so that no worker has much left when the others have
    finished.

    Args:
        steps_per_s: the speed of one worker; 0 if it is unknown: then each call makes one step.
        exactly: the steps of each call but the last, instead.
        even: the workers are equally fast, so each gets as many steps in few, equal calls.
    """
    if even and not exactly:
        rounds = math.ceil(count / (workers * max(1, int(LONG_IF_EVEN_S * steps_per_s))))
        parts = min(count, rounds * workers)
        return [count * (n + 1) // parts - count * n // parts for n in range(parts)]
    least = exactly or max(1, round(SHORT_S * workers * steps_per_s))
    most = exactly or max(least, int(LONG_S * steps_per_s))
    calls = []
    while count > 0:
        calls.append(min(count, most, max(least, count // (SHARES * workers))))
        count -= calls[-1]
    return calls


EVEN = 1.5


def are_even(calls: Sequence[tuple[float, float]]) -> bool:
    """Returns whether no worker takes EVEN times as long for a step as another.

    Args:
        calls: the steps that were made in each call, and their seconds. Only the longer calls
            count; a single one says nothing.
    """
    longest = max((steps for steps, _ in calls), default=0)
    per_step = [seconds / steps for steps, seconds in calls if steps and 2 * steps >= longest]
    return len(per_step) > 1 and max(per_step) <= EVEN * min(per_step)


def schedule_of(
    strategy: str, task: Task, options: Options, images: int, first_epoch: int = 0
) -> Schedule:
    """Returns the schedule for `images` training images.

    If all trainers take part in each update, a step uses one batch of each trainer.

    Raises:
        ContractError: there are more backup workers than replicas.
    """
    images_per_step = options.batch_size * batches_per_step(strategy, task, options)
    steps = options.steps_per_epoch or math.ceil(images / images_per_step)
    return Schedule(strategy, images_per_step, steps, options.epochs, first_epoch)


def batches_per_step(strategy: str, task: Task, options: Options) -> int:
    """Returns the number of batches that one update uses."""
    if strategy == mode.ALL_REDUCE:
        return mode.trainers(task.cluster)
    if strategy == mode.PARAMETER_SERVER and options.update == mode.SYNC:
        return len(task.cluster["worker"])
    if strategy == mode.GRAPH:
        graph = replace(options.graph, update=options.update)
        return gradients_per_round(graph, max(1, mode.trainers(task.cluster))) or 1
    return 1
