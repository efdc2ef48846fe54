"""Texts of tasks as bash reads them, with what is known only when the job runs. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster_kit.errors import UsageError
from cluster_kit.platforms.container import ContainerSpec, container_specs
from cluster_kit.platforms.rendered_file import parts_of
from cluster_kit.platforms.slurm.slurm_table import settings_of
from cluster_kit.platforms.variables import SHARED, TRAINING, no_proxy
from cluster_kit.programs.catalog import DATA_SETS_IN_IMAGE
from cluster_kit.resolved import OUTPUT, Cluster
from cluster_kit.roles import ROLES

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
        self._paths = {} if settings_of(cluster).image else _paths(cluster)
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
    on = settings_of(cluster)
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


NO_PROXY = ("NO_PROXY", "no_proxy")
DESCRIPTION = "cluster.json"
"""TF_CONFIG's cluster: in the output, the one directory of a run that Apptainer shows to tasks."""
FOUND = ("CLUSTER_KIT_TASK",)
"""Variables that the script finds out for each task."""


@dataclass(frozen=True)
class Pair:
    """A key and its value as a file's text."""

    name: str
    value: str


@dataclass(frozen=True)
class Block:
    """A branch of `case`: the tasks that it is for, and their variables or their command."""

    pattern: str
    variables: tuple[Pair, ...] = ()
    command: str = ""


def shared(cluster: Cluster, texts: Texts, spec: ContainerSpec) -> tuple[Pair, ...]:
    """Returns the variables of all tasks."""
    found = {
        name: _with_hosts(cluster, value) if name in NO_PROXY else texts.held(value)
        for name, value in spec.shared.environment.items()
    }
    if settings_of(cluster).image:
        found[SHARED] = f"{spec.shared.output}/{DESCRIPTION}"
    else:
        found["CLUSTER_KIT_OUTPUT"] = PRIVATE.format("$run") + "/output"
        found[SHARED] = f"{found['CLUSTER_KIT_OUTPUT']}/{DESCRIPTION}"
    return _pairs(found)


def own(
    cluster: Cluster, texts: Texts, specs: Mapping[str, ContainerSpec]
) -> Iterator[tuple[Block, ...]]:
    """Yields the branches for roles whose tasks have the same variables, and those for tasks."""
    tables = {name: dict(_own(cluster, texts, name, spec)) for name, spec in specs.items()}
    by_role, by_task = [], []
    for role in ROLES:
        names = [task.name for task in cluster.of(role)]
        if not names:
            continue
        first = tables[names[0]]
        same = {k: v for k, v in first.items() if all(tables[n].get(k) == v for n in names)}
        if same:
            by_role.append(Block(f"{role}-*", _pairs(same)))
        for name in names:
            rest = {k: v for k, v in tables[name].items() if k not in same}
            if rest:
                by_task.append(Block(name, _pairs(rest)))
    yield from (_merged(blocks) for blocks in (by_role, by_task) if blocks)


def _merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The branches, with those that say the same as one."""
    patterns: dict[tuple[tuple[Pair, ...], str], list[str]] = {}
    for block in blocks:
        patterns.setdefault((block.variables, block.command), []).append(block.pattern)
    return tuple(
        Block(" | ".join(found), variables, command)
        for (variables, command), found in patterns.items()
    )


def _own(
    cluster: Cluster, texts: Texts, task: str, spec: ContainerSpec
) -> Iterator[tuple[str, str]]:
    evaluates = task in {one.name for one in cluster.evaluators}
    for name, value in {**spec.own_environment, **spec.hidden}.items():
        if name in (*FOUND, TRAINING) or (name == "TF_CONFIG" and not evaluates):
            continue
        held = texts.held(value, task)
        yield name, _with_hosts(cluster, value) if name in NO_PROXY else held


def _with_hosts(cluster: Cluster, value: str) -> str:
    """The value of NO_PROXY with the nodes in place of the tasks' names, which nobody asks for."""
    return value.replace(no_proxy(cluster), f"localhost,127.0.0.1,{HOSTS}")


def commands(
    cluster: Cluster, texts: Texts, specs: Mapping[str, ContainerSpec]
) -> tuple[Block, ...]:
    """Returns the command of each role whose tasks differ at most by their index, else of each."""
    found = []
    for role in ROLES:
        names = [task.name for task in cluster.of(role)]
        held = [[texts.held(text, name) for text in specs[name].command] for name in names]
        if held and (one := _one(held)) is not None:
            found.append(Block(f"{role}-*", command=" ".join(map(word, one))))
        else:
            found += [
                Block(name, command=" ".join(map(word, words)))
                for name, words in zip(names, held, strict=True)
            ]
    return _merged(found)


def _one(commands_: Sequence[Sequence[str]]) -> list[str] | None:
    """The words of which those of all tasks are made; None if there are none."""
    if len({len(words) for words in commands_}) > 1:
        return None
    found = [parts_of(words) for words in zip(*commands_, strict=True)]
    if any(parts is None or any(_cut(part) for part in parts) for parts in found):
        return None
    return [INDEX.join(parts) for parts in found if parts is not None]


def _cut(part: str) -> bool:
    """Whether a mark begins or ends outside of a part: the index would stand in it."""
    return part.count("\ue000") != part.count("\ue001")


def cluster_json(cluster: Cluster) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """Returns the format of TF_CONFIG's cluster for `printf`, and each job's tasks."""
    jobs = {
        cluster.job(role): tuple(task.name for task in cluster.of(role))
        for role, row in ROLES.items()
        if not row.sidecar and cluster.of(role)
    }
    return ", ".join(f"{json.dumps(job)}: %s" for job in jobs), tuple(jobs.items())


def mounts(cluster: Cluster, specs: Mapping[str, ContainerSpec]) -> tuple[Block, ...]:
    """Returns what is mounted into the image for each role besides the output."""
    found = []
    for role in ROLES:
        tasks = cluster.of(role)
        if tasks and (own := _binds(specs[tasks[0].name])):
            found.append(Block(f"{role}-*", command=own))
    return _merged(found)


def _binds(spec: ContainerSpec) -> str:
    binds = [
        f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")
        for mount in (*spec.shared.mounts, *spec.mounts)
    ]
    return " ".join(f"--bind {shlex.quote(bind)}" for bind in binds)


def _pairs(values: Mapping[str, str]) -> tuple[Pair, ...]:
    return tuple(Pair(name, word(value)) for name, value in sorted(values.items()))
