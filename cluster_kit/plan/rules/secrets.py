"""Rules: names and sources of secrets that containers have as files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.rules.limits import check_name
from cluster_kit.plan.rules.mounts import check_roles
from cluster_kit.problem import Problem
from cluster_kit.util.toml_text import to_toml

FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


def check_secret_files(manifest: Manifest) -> Iterator[Problem]:
    """Yields names that no file can have, and values that come from nowhere or from two places."""
    for name, secret in manifest.secret.items():
        place = f"secret.{name}"
        if not FILE.fullmatch(name):
            rule = "not a valid name of a file in /run/secrets"
            yield Problem(place, "", rule, "letters, digits, `_`, `-` and `.` only")
        if bool(secret.file) == bool(secret.environment):
            rule = "its value comes from nowhere" if not secret.file else "its value has two places"
            cure = (
                f'write `{_key(name)} = "PATH"`, or `{_key(name)} = {{ environment = "VARIABLE" }}`'
            )
            yield Problem(place, "", rule, cure)
        elif secret.environment:
            key = f"{place}.environment"
            yield from check_name(key, to_toml(secret.environment), secret.environment)
        yield from check_roles(f"{place}.roles", secret.roles)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else to_toml(name)
