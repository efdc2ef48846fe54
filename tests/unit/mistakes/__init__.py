"""Mistakes in a manifest, by subject.

Each entry is the text below the head, then the key, the value, a part of the rule and a part of the
hint that the problem must have.
"""

from __future__ import annotations

from tests.unit.mistakes import inputs, limits, network, policies, shape, sidecars, tasks

Mistake = tuple[str, str, str, str, str]
MISTAKES: list[tuple[str, Mistake]] = [
    named
    for kind in (shape, tasks, network, limits, inputs, sidecars, policies)
    for named in kind.MISTAKES.items()
]
