"""The values of a cluster's secrets as this host has them, which no file made of it may have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from cluster_kit.cluster import Cluster
from cluster_kit.engine.secret_files import secret_in, secret_variables
from cluster_kit.errors import UsageError
from cluster_kit.util.masking import MASK, looks_secret, option_values, parts

LEAST_MIXED, LEAST = 8, 12
"""Characters of a part that is found in a file by nothing but a secret: with digits and letters,
and of any kind. `postgres` is also the name of an image."""
_PLACE = re.compile(r"(/|~|[a-z+]+://)[^\s@]*")
"""A path or an address without a password, which other keys may have for good."""


def known_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """Where each value comes from, by the value.

    Args:
        options: whether to add those that are arguments of a program (`--token VALUE`).
    """
    found = dict[str, str]()
    for task in cluster.tasks:
        found |= {value: name for name, value in task.environment if looks_secret(name)}
        found |= {os.environ.get(name, ""): name for name in task.from_caller}
        found |= dict.fromkeys(secret_variables(task.env_file), task.env_file)
        if options:
            found |= dict.fromkeys(option_values(task.arguments), f"an argument of {task.role}")
    for one in cluster.sidecars:
        found |= {value: name for name, value in one.environment if looks_secret(name)}
        found |= {os.environ.get(name, ""): name for name in one.secrets}
    for mount in cluster.all_mounts:
        found |= dict.fromkeys(secret_in(mount.source, mount.target), mount.source)
    return {value: name for value, name in found.items() if value not in ("", MASK)}


def refuse_in_text(text: str, file: str, cluster: Cluster, *, options: bool = True) -> str:
    """Returns the text of a file that is made of a cluster.

    Raises:
        UsageError: it has the value of a secret.
    """
    if name := secret_of(text, known_secrets(cluster, options=options)):
        raise UsageError(
            f"{file} would have the value of a secret in clear: {name}",
            'hand it over as a secret only: `[secret]`, or `secrets = ["NAME"]`; take it out of '
            "arguments, commands and other variables",
        )
    return text


def secret_of(text: str, known: Mapping[str, str]) -> str:
    """Where the first value comes from that a text has, whole or by a telling part; "" if none.

    Quotes and dollars are found as YAML, Compose and a shell escape them, too.
    """
    plain = text.replace("'\"'\"'", "'").replace("''", "'").replace("$$", "$")
    for value, name in known.items():
        if any(part in text or part in plain for part in _unmistakable(value)):
            return name
    return ""


def _unmistakable(value: str) -> Iterator[str]:
    """Yields what of a value stands in no file by chance."""
    if _PLACE.fullmatch(value):
        return
    for part in parts(value):
        is_mixed = any(map(str.isdigit, part)) and any(map(str.isalpha, part))
        if not part.startswith("-----") and len(part) >= (LEAST_MIXED if is_mixed else LEAST):
            yield part
