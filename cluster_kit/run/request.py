"""The request of a command line, and the default cluster of a command that names none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.manifest.command_line import Caller
from cluster_kit.roles import ROLES

DEFAULT_MANIFEST = "quickstart"
"""The manifest and the cluster of a command that names none."""


@dataclass(frozen=True)
class Request:
    """A user's request: a manifest, by path or name, and its overrides.

    `by_set` are the keys of the overrides that come from `--set` instead of their own option.
    """

    manifest: str
    overrides: Mapping[str, Any]
    debug: str = ""
    """The task whose program waits for a debugger, with an optional `:PORT`."""
    by_set: frozenset[str] = frozenset()
    caller: Caller = Caller.SHELL


def unnamed(up: Sequence[str], local: Sequence[str], *, changes: bool = False) -> str:
    """The default cluster of a command: the only one that is up, else quickstart.

    Args:
        up: the names of all clusters that are up.
        local: the clusters whose runs are below the current directory. If there are any, only they
            are considered.
        changes: whether the command ends or changes the cluster. If so, only `local` clusters are
            considered.

    Raises:
        UsageError: several clusters are up and none is quickstart, or all belong to other
            directories.
    """
    if changes and not local and up:
        raise UsageError(
            f"no cluster of this directory is up, only those of others: {', '.join(up)}",
            f"name the cluster: `--name {up[0]}`",
        )
    candidates = local or up
    if not candidates or DEFAULT_MANIFEST in candidates:
        return DEFAULT_MANIFEST
    if len(candidates) > 1:
        names = ", ".join(candidates)
        raise UsageError(f"{len(candidates)} clusters are up", f"name one by `--name`: {names}")
    return candidates[0]


_TASK = re.compile(rf"({'|'.join(ROLES)})-[0-9]+")


def name_where_expected(
    words: list[str], arguments: Sequence[str], *, takes_option: bool
) -> list[str]:
    """The words after a verb, with the cluster's name in the form that the verb takes.

    Args:
        arguments: the names of the verb's arguments, in their order.
        takes_option: whether the verb has the option `--name`.
    """
    if takes_option and arguments[:1] == ["task"]:  # CLUSTER TASK means TASK --name CLUSTER
        named_first = len(words) > 1 and _TASK.fullmatch(words[1]) and not words[0].startswith("-")
        is_cluster = named_first and not _TASK.fullmatch(words[0])
        return ["--name", words[0], *words[1:]] if is_cluster else words
    if takes_option or arguments[:1] not in (["name"], ["run"], ["runs"]):
        return words
    ours = words.index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:ours]):
        option, equals, value = word.partition("=")
        if option == "--name" and (equals or place + 1 < ours):
            after = place + 1 if equals else place + 2
            return [value if equals else words[place + 1], *words[:place], *words[after:]]
    return words


def with_bare_values(words: Sequence[str], bare: Mapping[str, Sequence[str]]) -> list[str]:
    """The words after a verb; an option that is given without a value gets its default.

    Args:
        bare: options that may have no value, with their allowed values, the default first.
    """
    after = [*words[1:], ""][: len(words)]
    return [
        f"{word}={bare[word][0]}" if word in bare and following not in bare[word] else word
        for word, following in zip(words, after, strict=True)
    ]
