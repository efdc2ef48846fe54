"""Secrets that a manifest has in clear. Pure."""

from __future__ import annotations

from cluster_kit.advice.hint import Hint
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.portable import limits_by_table
from cluster_kit.util.masking import looks_secret


def check(manifest: Manifest) -> list[Hint]:
    """The warnings about values in `environment` whose names look like those of secrets."""
    return [
        Hint(
            f"{table}.environment.{key}",
            "it looks like a secret",
            "its value is in clear in the manifest, and in the Compose file made from it",
            f'write `secrets = ["{key}"]` there instead, and export the variable',
        )
        for table, limits in limits_by_table(manifest)
        for key in filter(looks_secret, limits.environment)
    ]
