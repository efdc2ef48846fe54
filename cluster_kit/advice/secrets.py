"""Secrets that a manifest has in clear. Pure."""

from __future__ import annotations

from cluster_kit.advice.hint import Hint
from cluster_kit.manifest.schema import Manifest
from cluster_kit.util.masking import looks_secret


def check(manifest: Manifest) -> list[Hint]:
    """The warnings about values in `environment` whose names look like those of secrets."""
    return [
        Hint(
            f"{table}.environment.{key}",
            "it looks like a secret",
            "its value is in clear in the manifest",
            f'write `secrets = ["{key}"]` there instead, and export the variable',
        )
        for table, limits in manifest.limits_by_table()
        for key in filter(looks_secret, limits.environment)
    ]
