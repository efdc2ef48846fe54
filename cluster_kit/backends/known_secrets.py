"""The values of a cluster's secrets as this host has them, which no file made of it may have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from cluster_kit.cluster import SECRETS, Cluster
from cluster_kit.engine.secret_files import secret_in, secret_variables
from cluster_kit.errors import UsageError
from cluster_kit.util.masking import MASK, looks_secret, option_values, parts

LEAST_MIXED, LEAST = 8, 12
"""Characters of a part that is found in a file by nothing but a secret: with digits and letters,
and of any kind. `postgres` is also the name of an image."""
_PLACE = re.compile(r"(/|~|[a-z][a-z0-9+]*://)[^\s@]*")
"""A path or an address without a password, which other keys may have for good."""
LEAST_RANDOM = 16
"""Characters of a segment of an address that is a key if it has letters and digits: webhooks."""


def known_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """Where each value comes from, by the value.

    Args:
        options: whether to add those that are arguments of a program (`--token VALUE`).
    """
    found = dict[str, str]()
    for task in cluster.tasks:
        found |= {value: name for name, value in task.environment if looks_secret(name)}
        found |= dict.fromkeys(secret_variables(task.env_file), task.env_file)
        if options:
            found |= dict.fromkeys(option_values(task.arguments), f"an argument of {task.role}")
    for one in cluster.sidecars:
        found |= {value: name for name, value in one.environment if looks_secret(name)}
    return _values(found) | _declared(cluster)


def refused_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """Those of `known_secrets` that no file may have.

    What a variable has that only looks like a secret's by its name may be a path or an address,
    which other keys may have for good. What is declared as a secret is one, unless it is a path:
    that of a file with credentials, say, which is mounted as well.
    """
    declared = _declared(cluster)
    return {
        value: name
        for value, name in known_secrets(cluster, options=options).items()
        if not (_is_path(value, cluster) or (value not in declared and _is_address(value)))
    }


def _declared(cluster: Cluster) -> dict[str, str]:
    """Where the values of `secrets` and `[secret]` come from, by the value."""
    found = {os.environ.get(name, ""): name for name in cluster.from_caller}
    for mount in cluster.all_mounts:
        found |= dict.fromkeys(secret_in(mount.source, mount.target), mount.source)
    return _values(found)


def _values(found: Mapping[str, str]) -> dict[str, str]:
    return {value: name for value, name in found.items() if value not in ("", MASK)}


def _is_address(value: str) -> bool:
    """Whether a value is an address without a password or a key."""
    if "://" not in value or not _PLACE.fullmatch(value):
        return False
    _host, *segments = re.split(r"[/?&=;#]", value.partition("://")[2])
    return not any(len(one) >= LEAST_RANDOM and _is_mixed(one) for one in segments)


def _is_path(value: str, cluster: Cluster) -> bool:
    """Whether a value is a path that is there, on this host or in a container."""
    if "://" in value or not _PLACE.fullmatch(value):
        return False
    targets = (SECRETS, *(mount.target for mount in cluster.all_mounts))
    in_container = any(PurePosixPath(value).is_relative_to(target) for target in targets)
    return in_container or os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111


def refuse_in_text(text: str, file: str, cluster: Cluster, *, options: bool = True) -> str:
    """Returns the text of a file that is made of a cluster.

    Raises:
        UsageError: it has the value of a secret.
    """
    if name := secret_of(text, refused_secrets(cluster, options=options)):
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
    for part in parts(value):
        least = LEAST_MIXED if _is_mixed(part) else LEAST
        if not part.startswith("-----") and len(part) >= least:
            yield part


def _is_mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))
