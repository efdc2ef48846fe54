"""The systems of the matrix, and how long each trains there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.roles import EVALUATOR, WORKER

RESTARTS = 40
"""One run has a restart for each of its faults, and attempts of its program beside."""
JOB_S = 1800


@dataclass(frozen=True)
class System:
    """A manifest by its name or path, and what is different about it in the matrix.

    `length` is the argument that says how long it trains, "" for a program that is not known:
    `least` units for the start and the end, and so many for each fault, whose end it has to
    outlast: few if training waits for the task, more if it goes on without tasks of its role.
    """

    manifest: str
    length: str = ""
    least: int = 0
    for_each: int = 0
    for_each_beside: int = 0
    goes_on_without: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.manifest).stem

    def overrides(self, role: str, faults: int) -> Mapping[str, Any]:
        """What goes before the manifest in a run with so many faults of a role."""
        each = self.for_each_beside if role in self.goes_on_without else self.for_each
        length = [self.length, str(self.least + each * faults)] if self.length else []
        return {
            "name": f"{self.name[:33]}-matrix",
            "retries": RESTARTS,
            "deadline": {"job": JOB_S},
            "extra_args": [*length, *self.args],
        }


SMALL_DETECTION = (
    "--set", "model.image_size=32", "--set", "train_config.batch_size=8",
    "--set", "train_config.learning_rate.warmup_steps=0",
    "--set", "eval_config.num_examples=50", "--log-steps", "10", "--save-secs", "5",
    "--pause-ms", "50",
)  # fmt: skip
SAVES_OFTEN = ("--save-secs", "2")
"""Sooner than the next fault comes: so that there is a checkpoint to go back to."""
ASYNC, SYNC = (WORKER.name, EVALUATOR.name), (EVALUATOR.name,)
SYSTEMS = (
    System("quickstart", "--epochs", 5, 5, 9, ASYNC),
    System("linear-regression", "--steps", 1000, 350, 700, ASYNC, SAVES_OFTEN),
    System("detection-sync", "--steps", 30, 25, 60, SYNC, SMALL_DETECTION),
    System("all-reduce", "--epochs", 5, 4, 9, SYNC),
    System("clones", "--epochs", 5, 4, 9, SYNC, SAVES_OFTEN),
)
"""Lengths for two cores; on a faster machine a run ends earlier, and another one does the rest."""
