"""What a user's program says about itself, found in its text before any container starts.

Most of it becomes warnings, not errors: a text can be misread, and the image itself refuses the
same mistakes once they happen. A rule that is not certain gives no warning. Only what is certain to
fail is a problem of the manifest, and only what is certain about a program changes its cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.advice.keras3 import check_keras3
from cluster_kit.advice.of_manifest import check_secret_roles, check_secrets
from cluster_kit.advice.sources import Hint, Source, read
from cluster_kit.advice.strategies import (
    check_generators,
    check_servers,
    check_sharding,
    check_strategies,
    check_tf_config,
    shape,
)
from cluster_kit.advice.tf1 import check_arguments, check_flags, check_python2, check_tf1, refuse
from cluster_kit.errors import TOML_STYLE, Problem
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import Manifest

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
    fitting = shape(sources, loaded)
    fitted = loaded.manifest.model_copy(update=fitting.changes)
    loaded = replace(loaded, manifest=fitted, values={**loaded.values, **fitting.changes})
    roles = check_secret_roles(program, loaded.manifest, loaded.path.parent)
    hints = (*fitting.hints, *_hints(sources, unread, loaded.manifest), *roles)
    refused = refuse(sources, loaded.manifest)
    told = tuple(hint.told_by(loaded.command_line) for hint in hints)
    return Fitted(loaded, told, (*fitting.problems, *refused))


def advise(program: Path | None, manifest: Manifest) -> tuple[Hint, ...]:
    """Returns hints on the program (None for a built-in one) and on its arguments."""
    sources, unread = read(program) if program is not None else ([], [])
    return tuple(hint.told_by(TOML_STYLE) for hint in _hints(sources, unread, manifest))


def _hints(sources: list[Source], unread: list[Hint], manifest: Manifest) -> tuple[Hint, ...]:
    hints = [*check_arguments(manifest), *check_secrets(manifest), *unread]
    for rule in (check_strategies, check_servers, check_tf1, check_flags):
        hints += rule(sources, manifest)
    for rule_of_text in (
        check_keras3,
        check_generators,
        check_tf_config,
        check_sharding,
        check_python2,
    ):
        hints += rule_of_text(sources)
    return tuple(hints)
