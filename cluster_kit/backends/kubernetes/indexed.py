"""What the tasks of a role differ in, said once for their Indexed Job. Pure.

A Job has one template for all its pods. Kubernetes writes `$(NAME)` in it anew for each pod, if
NAME is a variable that is declared before; so the index may stand in any text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from cluster_kit.backends.by_index import parts_of
from cluster_kit.backends.container_spec import ContainerSpec
from cluster_kit.errors import UsageError

INDEX = "CK_INDEX"
"""The variable with a pod's index. Kubernetes declares its own, JOB_COMPLETION_INDEX, last of all,
where no other variable could use it (kubernetes#90466)."""
REFERENCE = f"$({INDEX})"


def escaped(text: str) -> str:
    """Returns the text such that Kubernetes makes this text of it again."""
    return text.replace("$", "$$")


def template(texts: Sequence[str]) -> str | None:
    """Returns what Kubernetes makes the texts of indexes 0, 1, … from; None if nothing does so."""
    found = parts_of(texts)
    return None if found is None else REFERENCE.join(map(escaped, found))


def command(role: Sequence[ContainerSpec]) -> list[str]:
    """Returns the arguments of all tasks of a role.

    Raises:
        UsageError: they differ otherwise than by their index.
    """
    found = []
    for texts in zip_longest(*(spec.command for spec in role)):
        made = None if None in texts else template(texts)
        if made is None:
            raise _differ(role, "arguments", next((t for t in texts if t), ""))
        found.append(made)
    return found


def environment(
    role: Sequence[ContainerSpec], tables: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Returns the variables of all tasks of a role, by name; `tables` has those of each task."""
    found = {}
    for name in sorted({name for table in tables for name in table}):
        made = None
        if all(name in table for table in tables):
            made = template([table[name] for table in tables])
        if made is None:
            raise _differ(role, "variables", name)
        found[name] = made
    return found


def _differ(role: Sequence[ContainerSpec], what: str, example: str) -> UsageError:
    first, last = role[0].hostname, role[-1].hostname
    return UsageError(
        f"{first} … {last}: their {what} differ by more than their index ({example}): "
        "Kubernetes gives all tasks of a role the same, with {{ index }} in it",
        "write the argument with {{ index }} alone, or let the program read TF_CONFIG",
    )
