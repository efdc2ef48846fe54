"""Checkpoints by name: `checkpoints/ckpt-<epoch>`, complete once its `.index` is there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from trainer.programs.training.checkpoints.directory import checkpoint_directory

INDEX = re.compile(r"ckpt-(\d+)\.index")


@dataclass(frozen=True, order=True)
class Checkpoint:
    """The weights after `epoch` (from 1); `written` (ns) tells a rewritten one from the first."""

    epoch: int
    path: str
    written: int

    @property
    def name(self) -> str:
        return f"ckpt-{self.epoch}"


def find(output: Path) -> list[Checkpoint]:
    """All complete checkpoints, by epoch."""
    complete = []
    for file in checkpoint_directory(output).glob("ckpt-*.index"):
        match = INDEX.fullmatch(file.name)
        if match:
            path = str(file.with_suffix(""))
            complete.append(Checkpoint(int(match[1]), path, file.stat().st_mtime_ns))
    return sorted(complete)
