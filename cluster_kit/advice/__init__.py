"""What a user's program says about itself, found in its text before any container starts.

Most of it becomes warnings, not errors: a text can be misread, and the image itself refuses the
same mistakes once they happen. A rule that is not certain gives no warning. Only what is certain to
fail is a problem of the manifest, and only what is certain about a program changes its cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from cluster_kit.advice.sources import Source, read
from cluster_kit.manifest.loaded import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem

__all__ = ["Fitted", "Hint", "advise", "fit"]


@dataclass(frozen=True)
class Fitted:
    """A manifest whose cluster fits its program, the hints on both, and what cannot be run."""

    loaded: Loaded
    hints: tuple[Hint, ...]
    problems: tuple[Problem, ...]


def fit(program: Path | None, loaded: Loaded) -> Fitted:
    """Returns the manifest, fitted to the program (None for a built-in one)."""
    sources, unread = read(program) if program is not None else ([], [])
    shape = strategies.shape(sources, loaded)
    fitted = loaded.manifest.model_copy(update=shape.changes)
    loaded = replace(loaded, manifest=fitted, values={**loaded.values, **shape.changes})
    roles = secrets.check_roles(program, loaded.manifest, loaded.path.parent)
    hints = (*shape.hints, *_hints(sources, unread, loaded.manifest), *roles)
    refused = job_flags.refuse(sources, loaded.manifest)
    return Fitted(loaded, hints, (*shape.problems, *refused))


def advise(program: Path | None, manifest: Manifest) -> tuple[Hint, ...]:
    """Returns hints on the program (None for a built-in one) and on its arguments."""
    sources, unread = read(program) if program is not None else ([], [])
    return _hints(sources, unread, manifest)


def _hints(sources: list[Source], unread: list[Hint], manifest: Manifest) -> tuple[Hint, ...]:
    hints = [*flags.check(manifest), *secrets.check(manifest), *unread]
    hints += strategies.check(sources, manifest)
    hints += tf1.check(sources, manifest)
    hints += job_flags.check(sources, manifest)
    for rule in (keras3, generators, evaluator, sharding, python2):
        hints += rule.check(sources)
    return tuple(hints)
