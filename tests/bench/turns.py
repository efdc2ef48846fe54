"""Two jobs that are up at the same time and train in turns, so that a slow machine affects both."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.bench import BenchError

FIRST_TURN_S, TURN_S = 120.0, 60.0


@dataclass(frozen=True)
class Turns:
    """The folder in which a job (job.py --turns) waits for its turn and writes how long it took."""

    folder: Path
    steps: int
    """The number of steps in one turn."""

    @classmethod
    def under(cls, output: Path, steps: int) -> Turns:
        folder = output / "turns"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return cls(folder, steps)

    def take(self, number: int) -> float:
        """Let the job train one epoch; returns its steps per second.

        Raises:
            BenchError: it did not finish the epoch in time.
        """
        (self.folder / f"go-{number}").touch()
        done = self.folder / f"done-{number}"
        until = time.monotonic() + (TURN_S if number else FIRST_TURN_S)
        while not done.exists():
            if time.monotonic() > until:
                raise BenchError(f"turn {number} of a training job did not end")
            time.sleep(0.01)
        return self.steps / float(done.read_text())


@dataclass(frozen=True)
class Training:
    """A training that runs in turns."""

    model: str
    turns: int
    steps: int
    workers: int = 2
    ps: int = 2
    batch: int = 32
    """The number of images of a step."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the job inside the container: /output is the same directory."""
        return (
            *(f"--model={self.model}", f"--batch={self.batch}", f"--epochs={self.turns}"),
            *(f"--steps-per-epoch={self.steps}", "--turns=/output/turns"),
        )
