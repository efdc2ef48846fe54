"""Values of secrets: which ones there are, and which files may have them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from cluster_kit.errors import UsageError
from cluster_kit.resolved import SECRETS, Cluster, Task
from cluster_kit.util.masking import MASK, looks_secret, option_values, parts, without_option_values


def hides(name: str, value: str) -> bool:
    """Whether a variable's value is one to hide; a masked one is not."""
    return looks_secret(name) and value not in ("", MASK)


def mode_of(cluster: Cluster) -> int | None:
    """The permissions of a file that has all that a cluster's tasks have, None for the usual."""
    return 0o600 if any(option_values(task.arguments) for task in cluster.tasks) else None


def without_secrets(cluster: Cluster) -> Cluster:
    """The cluster with MASK for every value of a variable or an option that looks like a secret."""
    beside = (replace(one, environment=shown(one.environment)) for one in cluster.sidecars)
    return replace(cluster, tasks=tuple(map(_task_without, cluster.tasks)), sidecars=tuple(beside))


def _task_without(task: Task) -> Task:
    return replace(
        task,
        environment=shown(task.environment),
        command=(*task.command[:2], *without_option_values(task.arguments)),
    )


def shown(environment: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The variables, with MASK for every value of one that looks like a secret."""
    return tuple((name, MASK if looks_secret(name) else value) for name, value in environment)


MOST_BYTES = 64 * 1024
_VARIABLE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*"""
    r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\n]*)""",
    re.MULTILINE,
)
"""A line of an `env_file`; a value between quotes may have several."""


def secret_in(source: str, target: str) -> set[str]:
    """The text of a file that is mounted at `target`; nothing if it is no secret.

    It is as much as can be read: a run that has ended is not to fail for a file that is gone.
    """
    if not source or PurePosixPath(target).parent != PurePosixPath(SECRETS):
        return set()
    with contextlib.suppress(OSError, ValueError), Path(source).open("rb") as file:
        return {file.read(MOST_BYTES).decode("utf-8", errors="replace")} - {""}
    return set()


def secret_variables(env_file: str) -> set[str]:
    """The values in an `env_file` whose names look like secrets; nothing of one that is gone."""
    found = set()
    with contextlib.suppress(OSError, ValueError), Path(env_file).open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8-sig", errors="replace")
        for name, written in _VARIABLE.findall(text):
            value = written.strip()
            if looks_secret(name) and value[:1] in ("'", '"') and value[-1] == value[0]:
                found.add(value[1:-1])
            elif looks_secret(name):
                found |= {value, value.partition(" #")[0].rstrip()}
    return found - {""}


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
