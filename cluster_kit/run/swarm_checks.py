"""Checks whether a swarm can run clusters, or this one. Pure but for what it asks the manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.engine.swarm.client import SwarmEngine
from cluster_kit.errors import HostError
from cluster_kit.plan.nodes import CONSTRAINT
from cluster_kit.run.check import Check


def check_swarm(cluster: Cluster | None) -> list[Check]:
    """The checks of the swarm whose manager is reached from here."""
    try:
        records = SwarmEngine().node_records()
    except HostError as error:
        return [Check("swarm", "fail", error.message, error.cure)]
    return [*check_nodes(records), *check_constraints(records, cluster)]


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
        fits = [one for one in records if is_usable(one) and fulfils(one, chosen)]
        if not fits and chosen:
            tasks = [t.name for t in (cluster.tasks if cluster else ()) if t.nodes == chosen]
            found = f"no node for {', '.join(tasks)}: {', '.join(chosen)}"
            cure = "`docker node update --label-add NAME=VALUE NODE`, or mend `nodes`"
            yield Check("nodes", "fail", found, cure)


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


def is_usable(record: Mapping[str, Any]) -> bool:
    """Whether a node is given tasks."""
    return bool(record["Status"]["State"] == "ready" and record["Spec"]["Availability"] == "active")


def _name(record: Mapping[str, Any]) -> str:
    return str(record["Description"]["Hostname"])


def _state(record: Mapping[str, Any]) -> str:
    state = str(record["Status"]["State"])
    return state if state != "ready" else str(record["Spec"]["Availability"])
