"""Secrets that a manifest has in clear. Pure."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.advice.hint import Hint
from cluster_kit.manifest.schema import Manifest
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.paths import seen_from


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


def check_roles(program: Path | None, manifest: Manifest, folder: Path) -> list[Hint]:
    """The warnings about secrets of some roles that every task can read beside the program.

    Args:
        folder: the manifest's, to which paths are relative.
    """
    return [
        Hint(
            f"secret.{name}.roles",
            f"{secret.file} is in the program's directory, which every task sees as /program",
            f"the file is no secret of {', '.join(secret.roles)} alone",
            "move it to another directory",
        )
        for name, secret in manifest.secret.items()
        if program and secret.roles and secret.file
        if seen_from(folder, secret.file).is_relative_to(program.resolve().parent)
    ]
