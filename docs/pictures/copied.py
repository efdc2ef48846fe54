"""Pictures that runs leave themselves: those of drills, detectors, comparisons and benchmarks."""

from __future__ import annotations

import shutil
from pathlib import Path

from PIL import Image

from cluster_kit.errors import UsageError
from cluster_kit.workspace import here

QUALITY = 85


def drill(picture: Path) -> None:
    """Of the newest drill of quickstart."""
    command = "cluster-kit drill quickstart --name quickstart-drill --seed 1"
    shutil.copyfile(newest("runs/quickstart-drill/*/drill.png", command), picture)


def detections(picture: Path) -> None:
    """What detection-async's best model has found, as a JPEG."""
    found = newest("runs/detection-async/*/output/detections/best.png",
                   "cluster-kit up detection-async")  # fmt: skip
    with Image.open(found) as drawn:
        drawn.convert("RGB").save(picture, format="JPEG", quality=QUALITY, optimize=True)


def comparison(picture: Path) -> None:
    """Of the newest comparison of all ways to train."""
    shutil.copyfile(newest("build/compare/compare.png", "cluster-kit compare"), picture)


def bench(picture: Path) -> None:
    """Of the newest benchmarks."""
    shutil.copyfile(newest("build/bench/bench.png", "make bench"), picture)


def growth(picture: Path) -> None:
    """Of the newest benchmark of larger clusters and models."""
    shutil.copyfile(newest("build/bench/growth.png", "make bench ARGS=growth"), picture)


def newest(pattern: str, command: str) -> Path:
    """The newest such file of this workspace; UsageError with the command that makes one."""
    found = sorted(here().root.glob(pattern), key=lambda file: file.stat().st_mtime)
    if not found:
        raise UsageError(f"no {pattern} yet", f"`{command}` makes one")
    return found[-1]
