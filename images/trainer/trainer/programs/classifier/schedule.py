"""The length of a training in steps and epochs, computed before TensorFlow is imported."""

from __future__ import annotations

import math
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


SHORT_S, LONG_S = 0.05, 0.5
"""The minimum length of a call in seconds, for each worker, and the usual maximum. A message takes
the chief 5 ms, so its messages to all workers need a tenth of its time. Longer calls would keep the
others waiting at the end of an epoch."""
SHARES = 3
"""Each worker gets about so many calls before the calls become shorter."""


def calls_of(count: int, workers: int, steps_per_s: float, exactly: int | None = None) -> list[int]:
    """Returns the steps of each call that a chief sends to its workers; their sum is `count`.

    The calls become shorter towards the end, so that no worker has much left when the others have
    finished.

    Args:
        steps_per_s: the speed of one worker; 0 if it is unknown: then each call makes one step.
        exactly: the steps of each call but the last, instead.
    """
    least = exactly or max(1, round(SHORT_S * workers * steps_per_s))
    most = exactly or max(least, int(LONG_S * steps_per_s))
    calls = []
    while count > 0:
        calls.append(min(count, most, max(least, count // (SHARES * workers))))
        count -= calls[-1]
    return calls


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
