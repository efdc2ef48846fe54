"""What a user's program would stumble over, read from its text before any container starts.

Warnings, not errors: a text can be misread, and the image refuses the same things for certain once
they happen. So each rule here keeps quiet where it is not sure.
"""

from __future__ import annotations

from pathlib import Path

from cluster_kit.advice import evaluator, flags, generators, keras3, strategies
from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import read
from cluster_kit.manifest.schema import Manifest

__all__ = ["Hint", "advise"]


def advise(program: Path | None, manifest: Manifest) -> tuple[Hint, ...]:
    """Hints on the program (None where it is a built-in one) and on how it is called."""
    found = list(flags.look(manifest))
    if program is not None:
        sources, unread = read(program)
        found += unread
        found += strategies.look(sources, manifest)
        for rule in (keras3, generators, evaluator):
            found += rule.look(sources)
    return tuple(found)
