"""Mistakes in a manifest, by what they are about.

Each is what is written below the head, then the place, the value, a part of the rule and a part of
the hint that the problem must name.
"""

from __future__ import annotations

from tests.unit.mistakes import inputs, limits, network, shape, sidecars, tasks

Mistake = tuple[str, str, str, str, str]
MISTAKES: list[tuple[str, Mistake]] = [
    named
    for kind in (shape, tasks, network, limits, inputs, sidecars)
    for named in kind.MISTAKES.items()
]
