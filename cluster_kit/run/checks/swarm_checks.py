"""Checks whether a swarm can run clusters, or this one. Pure but for what it asks the manager."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster_kit.backends.swarm.render import GPU_KIND
from cluster_kit.cluster import Cluster
from cluster_kit.engine.swarm.client import SwarmEngine
from cluster_kit.errors import HostError
from cluster_kit.plan.nodes import CONSTRAINT
from cluster_kit.run.checks.check import Check
from cluster_kit.util.process import run

DEFAULT_MTU = 1500
"""What an overlay takes the nodes' network to carry; its own packets are 50 bytes smaller."""


def check_swarm(cluster: Cluster | None) -> list[Check]:
    """The checks of the swarm whose manager is reached from here."""
    try:
        engine = SwarmEngine()
        records, swarm = engine.node_records(), engine.info().get("Swarm") or {}
    except HostError as error:
        return [Check("swarm", "fail", error.message, error.cure)]
    return [
        *check_nodes(records),
        *check_managers(records),
        *check_constraints(records, cluster),
        *check_cpus(records, cluster),
        *check_gpus(records, cluster),
        *check_mtu(cluster, mtu_at(str(swarm.get("NodeAddr", "")))),
    ]


def check_nodes(records: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Which nodes can be given tasks, and which not."""
    usable = [_name(one) for one in records if is_usable(one)]
    others = [f"{_name(one)} ({_state(one)})" for one in records if not is_usable(one)]
    managers = sum(one["Spec"]["Role"] == "manager" for one in records)
    count = f"{len(usable)} node{'s' if len(usable) != 1 else ''}"
    text = f"{count} ({managers} manager{'s' if managers != 1 else ''}): {', '.join(usable)}"
    if not usable:
        cure = "`docker node ls`; `docker node update --availability active NODE`"
        return [Check("swarm", "fail", f"no node is ready: {', '.join(others)}", cure)]
    if others:
        text += f"; without tasks: {', '.join(others)}"
        return [Check("swarm", "warn", text, "`docker node ls` shows why")]
    return [Check("swarm", "ok", text)]


def check_constraints(
    records: Sequence[Mapping[str, Any]], cluster: Cluster | None
) -> Iterator[Check]:
    """Yields a failed check for each choice of nodes (`nodes`) that no usable node fulfils."""
    for chosen in dict.fromkeys(task.nodes for task in (cluster.tasks if cluster else ())):
        if chosen and not usable_for(chosen, records):
            tasks = [t.name for t in (cluster.tasks if cluster else ()) if t.nodes == chosen]
            found = f"no node for {', '.join(tasks)}: {', '.join(chosen)}"
            cure = "`docker node update --label-add NAME=VALUE NODE`, or mend `nodes`"
            yield Check("nodes", "fail", found, cure)


def check_cpus(records: Sequence[Mapping[str, Any]], cluster: Cluster | None) -> Iterator[Check]:
    """Yields a failed check for tasks with more `cpus` than any node has that they may be on.

    An engine refuses to make such a container; a swarm would try it on one node after the other.
    """
    asking = [task for task in (cluster.tasks if cluster else ()) if task.cpus]
    nodes = {chosen: usable_for(chosen, records) for chosen in {task.nodes for task in asking}}
    for task in asking:
        have = {_name(one): cpus_of(one) for one in nodes[task.nodes]}
        if task.cpus and have and task.cpus > max(have.values()):
            each = ", ".join(f"{name} {count:g}" for name, count in have.items())
            found = f"{task.name} is given {task.cpus:g} CPUs, its nodes have fewer: {each}"
            cure = f"give it `cpus = {max(have.values()):g}` or less, or other `nodes`"
            yield Check("CPUs of nodes", "fail", found, cure)


def check_managers(records: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Yields a warning unless there is exactly one manager, which answers."""
    managers = [one for one in records if one["Spec"]["Role"] == "manager"]
    away = [
        _name(one)
        for one in managers
        if (one.get("ManagerStatus") or {}).get("Reachability", "reachable") != "reachable"
    ]
    if len(managers) > 1:
        found = f"{len(managers)} managers: {', '.join(map(_name, managers))}"
        if away:
            found += f"; not reachable: {', '.join(away)}"
        cure = "keep one while a cluster runs (`docker node demote NODE`): the kit was tried so"
        yield Check("managers", "warn", found, cure)


def check_gpus(records: Sequence[Mapping[str, Any]], cluster: Cluster | None) -> Iterator[Check]:
    """Yields a check of the GPUs that nodes announce, if a cluster asks for some."""
    asking = [task for task in (cluster.tasks if cluster else ()) if task.gpus]
    if not asking:
        return
    usable = [one for one in records if is_usable(one)]
    have = {_name(one): gpus_of(one) for one in usable if gpus_of(one)}
    each = ", ".join(f"{name} {count}" for name, count in have.items())
    total = sum(have.values())
    found = f"the nodes announce {total} GPU{'s' if total != 1 else ''}" + (each and f": {each}")
    free = {str(one["ID"]): gpus_of(one) for one in usable}
    without = []
    for task in asking:  # a swarm chooses, too: the first that fits is good enough to count
        fits = (str(one["ID"]) for one in usable_for(task.nodes, usable))
        chosen = next((node for node in fits if free[node] >= len(task.gpus)), None)
        if chosen is None:
            without.append(task.name)
        else:
            free[chosen] -= len(task.gpus)
    if without:
        text = f"{found}; not enough for {', '.join(without)} ({len(asking[0].gpus)} each)"
        cure = (
            "announce them in each node's daemon.json: "
            '"node-generic-resources": ["GPU=GPU-<uuid>", …]; or ask for fewer'
        )
        yield Check("GPUs of nodes", "fail", text, cure)
    else:
        yield Check("GPUs of nodes", "ok", found)


def cpus_of(record: Mapping[str, Any]) -> float:
    """How many CPUs a node has; without end if it does not say so."""
    return int(_resources(record).get("NanoCPUs") or 0) / 1e9 or math.inf


def gpus_of(record: Mapping[str, Any]) -> int:
    """How many GPUs a node announces as generic resources of the kind `GPU`."""
    found = 0
    for one in _resources(record).get("GenericResources") or ():
        named, counted = one.get("NamedResourceSpec"), one.get("DiscreteResourceSpec")
        if named and named.get("Kind") == GPU_KIND:
            found += 1
        elif counted and counted.get("Kind") == GPU_KIND:
            found += int(counted.get("Value", 0))
    return found


def check_mtu(cluster: Cluster | None, underlay: int | None) -> Iterator[Check]:
    """Yields a failed check if the overlay is made for larger packets than the nodes' network.

    Args:
        underlay: the MTU of the interface by which this node is in the swarm, None if not known.
    """
    made_for = DEFAULT_MTU if cluster is None or cluster.mtu is None else cluster.mtu
    if underlay is not None and made_for > underlay:
        found = f"the overlay is made for packets of {made_for} bytes, the nodes send {underlay}"
        yield Check("MTU", "fail", found, f"write `[network]` `mtu = {underlay}` in the manifest")


def mtu_at(address: str) -> int | None:
    """The MTU of this host's interface with this address; None if it has none."""
    done = run(["ip", "-json", "address"])
    with contextlib.suppress(ValueError):
        for link in json.loads(done.output or "[]"):
            if any(one.get("local") == address for one in link.get("addr_info", ())):
                return int(link["mtu"]) if link.get("mtu") else None
    return None


def fulfils(record: Mapping[str, Any], constraints: Sequence[str]) -> bool:
    """Whether a node fulfils these constraints; one that is not known here counts as fulfilled."""
    values = {
        "node.id": record["ID"],
        "node.hostname": _name(record),
        "node.role": record["Spec"]["Role"],
        "node.platform.os": record["Description"]["Platform"]["OS"],
        "node.platform.arch": record["Description"]["Platform"]["Architecture"],
    }
    tags = record["Spec"].get("Labels") or {}
    for text in constraints:
        match = CONSTRAINT.fullmatch(text)
        if match is None:
            continue
        key, sign, wanted = match.groups()
        label = key.removeprefix("node.labels.")
        if key in values or label != key:
            found = values[key] if key in values else tags.get(label, "")
            if (found == wanted) != (sign == "=="):
                return False
    return True


def usable_for(
    constraints: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The nodes that are given tasks, and fulfil these constraints."""
    return [one for one in records if is_usable(one) and fulfils(one, constraints)]


def is_usable(record: Mapping[str, Any]) -> bool:
    """Whether a node is given tasks."""
    return bool(record["Status"]["State"] == "ready" and record["Spec"]["Availability"] == "active")


def _resources(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return record["Description"].get("Resources") or {}


def _name(record: Mapping[str, Any]) -> str:
    return str(record["Description"]["Hostname"])


def _state(record: Mapping[str, Any]) -> str:
    state = str(record["Status"]["State"])
    return state if state != "ready" else str(record["Spec"]["Availability"])
