"""The systems of the matrix, and how long each trains there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESTARTS = 40
"""One run has a restart for each of its faults, and attempts of its program beside."""
JOB_S = 1800


@dataclass(frozen=True)
class System:
    """A manifest by its name or path, and what is different about it in the matrix.

    `length` is the argument that says how long it trains: so many units for the start and the end,
    and so many for each fault, whose end it has to outlast. "" for a program that is not known.
    """

    manifest: str
    length: str = ""
    least: int = 0
    for_each: int = 0
    args: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.manifest).stem

    def overrides(self, faults: int) -> Mapping[str, Any]:
        """What goes before the manifest in a run with so many faults."""
        length = [self.length, str(self.least + self.for_each * faults)] if self.length else []
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
SYSTEMS = (
    System("quickstart", "--epochs", least=6, for_each=8),
    System("linear-regression", "--steps", least=1500, for_each=650),
    System("detection-sync", "--steps", least=60, for_each=100, args=SMALL_DETECTION),
    System("all-reduce", "--epochs", least=6, for_each=8),
    System("clones", "--epochs", least=6, for_each=8),
)
"""Lengths for two cores; on a faster machine a run ends earlier, and another one does the rest."""
