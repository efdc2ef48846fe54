"""Which pictures there are, and how each comes from a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from docs.pictures import copied, predicted, recorded, reported, served

DOCS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Picture:
    """A file in docs/. `draw` writes it, or raises UsageError if there is no run for it yet."""

    name: str
    draw: Callable[[Path], None]


_ALL = (
    Picture("quickstart.svg", recorded.draw),
    Picture("report.png", reported.draw),
    Picture("live.png", served.draw),
    Picture("drill.png", copied.drill),
    Picture("detections.jpg", copied.detections),
    Picture("compare.png", copied.comparison),
    Picture("bench.png", copied.bench),
    Picture("growth.png", copied.growth),
    Picture("predict.png", predicted.draw),
)
PICTURES: Mapping[str, Picture] = MappingProxyType({one.name: one for one in _ALL})
"""By the name of its file, in the order in which they are made."""
