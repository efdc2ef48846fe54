"""How one training goes, worked out before TensorFlow is asked for anything. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainer.programs.classifier import mode
from trainer.programs.classifier.options import Options
from trainer.task import Task


@dataclass(frozen=True)
class Plan:
    """How one training goes: the way, and how many images a step (one update) takes."""

    how: str
    """One of mode's strategies, never `auto`."""
    images_per_step: int
    steps: int
    """Steps of an epoch."""
    first_epoch: int


def plan_of(how: str, task: Task, options: Options, images: int, first_epoch: int) -> Plan:
    """Where all trainers take part in each update, a step takes a batch of each."""
    if how == mode.ALL_REDUCE:
        batches = mode.trainers(task.cluster)
    elif how == mode.PARAMETER_SERVER and options.update == mode.SYNC:
        batches = len(task.cluster["worker"])
    else:
        batches = 1
    images_per_step = options.batch_size * batches
    steps = options.steps_per_epoch or math.ceil(images / images_per_step)
    return Plan(how, images_per_step, steps, first_epoch)
