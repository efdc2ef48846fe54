"""Texts as bash reads them, with what is known only when the job runs in variables of it. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from cluster_kit.backends.container_spec import container_specs
from cluster_kit.cluster import OUTPUT, Cluster
from cluster_kit.errors import UsageError
from cluster_kit.programs.catalog import DATA_SETS_IN_IMAGE

PRIVATE = "\ue000{}\ue001"
_HELD = re.compile("\ue000(.*?)\ue001")
HOSTS = PRIVATE.format("$hosts")
BEACON = PRIVATE.format("$beacon")
INDEX = PRIVATE.format("$index")


class Texts:
    """Writes the texts of a cluster's tasks.

    `worker-1:2222` stands in them for an address that the script finds out. Without an image the
    paths of a container stand for directories of the nodes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._addresses = {cluster.address(task): task.name for task in cluster.tasks}
        self._beacon = cluster.beacon
        self._lists = {
            ",".join(map(cluster.address, tasks)): role
            for role in {task.role: None for task in cluster.tasks}
            if len(tasks := cluster.of(role)) > 1
        }
        roles = "|".join({task.role: "" for task in cluster.tasks})
        self._address = re.compile(
            rf"(?<![\w.-])(?:{roles})-\d+:(?:{cluster.port}|{cluster.port + 1})(?!\d)"
        )
        self._paths = {} if cluster.slurm is None or cluster.slurm.image else _paths(cluster)
        targets = "|".join(sorted(map(re.escape, self._paths), key=len, reverse=True))
        self._path = re.compile(rf"(?<![^\s=,:\"'])(?:{targets})(?=[/,:\"'\s]|$)")

    def held(self, text: str, task: str = "") -> str:
        """Returns a text of a task with marks for what the script puts into it."""
        if {"\ue000", "\ue001"} & {*text}:
            raise UsageError(
                f"{text!r}: the characters U+E000 and U+E001 are for the script's own use",
                "take them out, or run it on this host: `--engine compose`",
            )
        for addresses, role in self._lists.items():
            text = text.replace(addresses, PRIVATE.format(f"${{listed[{role}]}}"))
        text = self._address.sub(lambda match: self._found(match[0], task), text)
        if self._paths:
            text = self._path.sub(lambda match: self._paths[match[0]], text)
        return text

    def _found(self, address: str, own: str) -> str:
        if address == self._beacon:
            return BEACON
        task = self._addresses.get(address)
        if task is None:
            return address
        return PRIVATE.format("${address[$task]}" if task == own else f"${{address[{task}]}}")


def _paths(cluster: Cluster) -> dict[str, str]:
    """Where the nodes have a container's directories."""
    on = cluster.slurm
    assert on is not None
    found = {mount.target: mount.source for mount in container_specs(cluster)[0].shared.mounts}
    if on.datasets:
        found[DATA_SETS_IN_IMAGE] = on.datasets
    return {**found, OUTPUT: PRIVATE.format("$run") + "/output"}


def word(text: str) -> str:
    """Returns a text that may have marks as one word of bash."""
    parts = _HELD.split(text)
    found = [
        f'"{part}"' if number % 2 else shlex.quote(part)
        for number, part in enumerate(parts)
        if part
    ]
    return "".join(found) or "''"


def names(tasks: Iterable[str]) -> str:
    """Returns names of tasks, each a word, with a braced range for those that follow each other."""
    runs: list[tuple[str, int, int]] = []
    for name in tasks:
        role, _, number = name.rpartition("-")
        index = int(number)
        if runs and runs[-1][0] == role and runs[-1][2] == index - 1:
            runs[-1] = (role, runs[-1][1], index)
        else:
            runs.append((role, index, index))
    return " ".join(
        f"{role}-{first}" if first == last else f"{role}-{{{first}..{last}}}"
        for role, first, last in runs
    )
