"""Warnings about a user's program, found in its text before any container starts.

They are not errors: a text can be misread, and the image itself refuses the same mistakes once they
happen. A rule that is not certain gives no warning.
"""

from __future__ import annotations

from pathlib import Path

from cluster_kit.advice import (
    evaluator,
    flags,
    generators,
    job_flags,
    keras3,
    python2,
    secrets,
    sharding,
    strategies,
    tf1,
)
from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import read
from cluster_kit.manifest.schema import Manifest

__all__ = ["Hint", "advise"]


def advise(program: Path | None, manifest: Manifest) -> tuple[Hint, ...]:
    """Hints on the program (None for a built-in one) and on its arguments."""
    hints = [*flags.check(manifest), *secrets.check(manifest)]
    if program is not None:
        sources, unread = read(program)
        hints += unread
        hints += strategies.check(sources, manifest)
        hints += tf1.check(sources, manifest)
        hints += job_flags.check(sources, manifest)
        for rule in (keras3, generators, evaluator, sharding, python2):
            hints += rule.check(sources)
    return tuple(hints)
