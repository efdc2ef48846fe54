"""Checks whether a swarm can run clusters, or this one: its nodes, images and storage."""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster_kit.errors import EngineError, HostError
from cluster_kit.host import Host
from cluster_kit.plan.tasks import CONSTRAINT
from cluster_kit.platforms.platform import Check
from cluster_kit.platforms.swarm.stack_file import GPU_KIND
from cluster_kit.platforms.swarm.swarm_engine import NodeSaid, Probe, SwarmEngine
from cluster_kit.resolved import Cluster, Mount
from cluster_kit.util.terminal import counted

DEFAULT_MTU = 1500
"""The MTU that an overlay assumes for the nodes' network; its own packets are 50 bytes smaller."""


def check_swarm(host: Host, cluster: Cluster | None) -> list[Check]:
    """The checks of the swarm whose manager is reached from here."""
    try:
        engine = SwarmEngine()
        records, swarm = engine.node_records(), engine.info().get("Swarm") or {}
    except HostError as error:
        return [Check("swarm", "fail", error.message, error.hint)]
    return [
        *check_nodes(records),
        *check_managers(records),
        *check_constraints(records, cluster),
        *check_cpus(records, cluster),
        *check_gpus(records, cluster),
        *check_mtu(cluster, mtu_at(host, str(swarm.get("NodeAddr", "")))),
    ]


def check_nodes(records: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Checks which nodes can get tasks, and which cannot."""
    usable = [_name(one) for one in records if is_usable(one)]
    others = [f"{_name(one)} ({_state(one)})" for one in records if not is_usable(one)]
    managers = sum(one["Spec"]["Role"] == "manager" for one in records)
    count = counted(len(usable), "node")
    text = f"{count} ({counted(managers, 'manager')}): {', '.join(usable)}"
    if not usable:
        hint = "`docker node ls`; `docker node update --availability active NODE`"
        return [Check("swarm", "fail", f"no node is ready: {', '.join(others)}", hint)]
    if others:
        text += f"; without tasks: {', '.join(others)}"
        return [Check("swarm", "warn", text, "`docker node ls` shows why")]
    return [Check("swarm", "ok", text)]


def check_constraints(
    records: Sequence[Mapping[str, Any]], cluster: Cluster | None
) -> Iterator[Check]:
    """Yields a failed check for each value of `nodes` that no usable node satisfies."""
    for chosen in dict.fromkeys(task.nodes for task in (cluster.tasks if cluster else ())):
        if chosen and not usable_for(chosen, records):
            tasks = [t.name for t in (cluster.tasks if cluster else ()) if t.nodes == chosen]
            problem = f"no node for {', '.join(tasks)}: {', '.join(chosen)}"
            hint = "`docker node update --label-add NAME=VALUE NODE`, or fix `nodes`"
            yield Check("nodes", "fail", problem, hint)


def check_cpus(records: Sequence[Mapping[str, Any]], cluster: Cluster | None) -> Iterator[Check]:
    """Yields a failed check for tasks with more `cpus` than any of their possible nodes has.

    An engine refuses to create such a container, and a swarm would try one node after the other.
    """
    asking = [task for task in (cluster.tasks if cluster else ()) if task.cpus]
    nodes = {chosen: usable_for(chosen, records) for chosen in {task.nodes for task in asking}}
    for task in asking:
        have = {_name(one): cpus_of(one) for one in nodes[task.nodes]}
        if task.cpus and have and task.cpus > max(have.values()):
            each = ", ".join(f"{name} {count:g}" for name, count in have.items())
            problem = f"{task.name} is given {task.cpus:g} CPUs, its nodes have fewer: {each}"
            hint = f"give it `cpus = {max(have.values()):g}` or less, or other `nodes`"
            yield Check("CPUs of nodes", "fail", problem, hint)


def check_managers(records: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Yields a warning unless there is exactly one manager, which answers."""
    managers = [one for one in records if one["Spec"]["Role"] == "manager"]
    away = [
        _name(one)
        for one in managers
        if (one.get("ManagerStatus") or {}).get("Reachability", "reachable") != "reachable"
    ]
    if len(managers) > 1:
        summary = f"{len(managers)} managers: {', '.join(map(_name, managers))}"
        if away:
            summary += f"; not reachable: {', '.join(away)}"
        hint = "keep one while a cluster runs (`docker node demote NODE`): the kit was tried so"
        yield Check("managers", "warn", summary, hint)


def check_gpus(records: Sequence[Mapping[str, Any]], cluster: Cluster | None) -> Iterator[Check]:
    """Yields a check of the GPUs that nodes announce, if a cluster asks for some."""
    asking = [task for task in (cluster.tasks if cluster else ()) if task.gpus]
    if not asking:
        return
    usable = [one for one in records if is_usable(one)]
    have = {_name(one): gpus_of(one) for one in usable if gpus_of(one)}
    each = ", ".join(f"{name} {count}" for name, count in have.items())
    total = sum(have.values())
    summary = f"the nodes announce {counted(total, 'GPU')}" + (each and f": {each}")
    free = {str(one["ID"]): gpus_of(one) for one in usable}
    without = []
    for task in asking:  # the swarm may choose differently
        fits = (str(one["ID"]) for one in usable_for(task.nodes, usable))
        chosen = next((node for node in fits if free[node] >= len(task.gpus)), None)
        if chosen is None:
            without.append(task.name)
        else:
            free[chosen] -= len(task.gpus)
    if without:
        text = f"{summary}; not enough for {', '.join(without)} ({len(asking[0].gpus)} each)"
        hint = (
            "announce them in each node's daemon.json: "
            '"node-generic-resources": ["GPU=GPU-<uuid>", …]; or ask for fewer'
        )
        yield Check("GPUs of nodes", "fail", text, hint)
    else:
        yield Check("GPUs of nodes", "ok", summary)


def cpus_of(record: Mapping[str, Any]) -> float:
    """The number of a node's CPUs; infinity if the node does not report it."""
    return int(_resources(record).get("NanoCPUs") or 0) / 1e9 or math.inf


def gpus_of(record: Mapping[str, Any]) -> int:
    """The number of GPUs that a node announces as generic resources of the kind `GPU`."""
    count = 0
    for one in _resources(record).get("GenericResources") or ():
        named, counted = one.get("NamedResourceSpec"), one.get("DiscreteResourceSpec")
        if named and named.get("Kind") == GPU_KIND:
            count += 1
        elif counted and counted.get("Kind") == GPU_KIND:
            count += int(counted.get("Value", 0))
    return count


def check_mtu(cluster: Cluster | None, underlay: int | None) -> Iterator[Check]:
    """Yields a failed check if the overlay is made for larger packets than the nodes' network.

    Args:
        underlay: the MTU of the interface by which this node is in the swarm; None if unknown.
    """
    made_for = DEFAULT_MTU if cluster is None or cluster.mtu is None else cluster.mtu
    if underlay is not None and made_for > underlay:
        summary = f"the overlay is made for packets of {made_for} bytes, the nodes send {underlay}"
        yield Check("MTU", "fail", summary, f"write `[network]` `mtu = {underlay}` in the manifest")


def mtu_at(host: Host, address: str) -> int | None:
    """The MTU of this host's interface with this address; None if it has none."""
    done = host.processes.run(["ip", "-json", "address"])
    with contextlib.suppress(ValueError):
        for link in json.loads(done.output or "[]"):
            if any(one.get("local") == address for one in link.get("addr_info", ())):
                return int(link["mtu"]) if link.get("mtu") else None
    return None


def fulfils(record: Mapping[str, Any], constraints: Sequence[str]) -> bool:
    """Whether a node satisfies these constraints; an unknown kind of constraint counts as
    satisfied."""
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
            actual = values[key] if key in values else tags.get(label, "")
            if (actual == wanted) != (sign == "=="):
                return False
    return True


def usable_for(
    constraints: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The nodes that accept tasks, and satisfy these constraints."""
    return [one for one in records if is_usable(one) and fulfils(one, constraints)]


def is_usable(record: Mapping[str, Any]) -> bool:
    """Whether a node accepts tasks."""
    return bool(record["Status"]["State"] == "ready" and record["Spec"]["Availability"] == "active")


def _resources(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return record["Description"].get("Resources") or {}


def _name(record: Mapping[str, Any]) -> str:
    return str(record["Description"]["Hostname"])


def _state(record: Mapping[str, Any]) -> str:
    state = str(record["Status"]["State"])
    return state if state != "ready" else str(record["Spec"]["Availability"])


WITHIN_S = 30.0
FOLDER = "/cluster-kit-probe"
SCRIPT = f'cat {FOLDER}/token > "{FOLDER}/$NODE"'
NO_IMAGE = "No such image"
NO_FOLDER = "bind source path does not exist: "
AGAIN = "ask again: a node that pulls the image takes longer; `docker node ls` shows which answer"
SHARE = "mount one network file system (NFS) at that path on every node and on this host"


def probe_nodes(engine: SwarmEngine, cluster: Cluster, beside: Path) -> list[Check]:
    """Checks every node by a container that reports what the node has.

    Args:
        beside: the directory of the runs.
    """
    nodes = {
        one["ID"]: str(one["Description"]["Hostname"])
        for one in engine.node_records()
        if one["Status"]["State"] == "ready" and one["Spec"]["Availability"] == "active"
    }
    token = secrets.token_hex(8)
    try:
        folder = Path(tempfile.mkdtemp(prefix=".cluster-kit-probe-", dir=_existing(beside)))
    except OSError as error:
        problem = f"{beside} cannot be written: {error.strerror}"
        return [Check("shared storage", "fail", problem, "make it writable for this user")]
    try:
        (folder / "token").write_text(token)
        answers = engine.run_on_each_node(_probe(cluster, folder, token), WITHIN_S)
        written = {one.name: one.read_text() for one in folder.iterdir()}
    except EngineError as error:
        return [Check("shared storage", "fail", error.message, error.hint)]
    except OSError as error:
        return [Check("shared storage", "fail", str(error), SHARE)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seen = [node for node, text in written.items() if text == token]
    return [image_check(cluster, nodes, answers), storage_check(beside, nodes, answers, seen)]


def image_check(cluster: Cluster, nodes: Mapping[str, str], told: Sequence[NodeSaid]) -> Check:
    """Checks that every node has the image."""
    lacking = [nodes.get(one.node, one.node) for one in told if NO_IMAGE in one.error]
    if not lacking:
        if len(told) < len(nodes):
            on = f"{cluster.image} on {len(told)} of {_nodes(len(nodes))}: the others do not answer"
            return Check("image on nodes", "warn", on, AGAIN)
        return Check("image on nodes", "ok", f"{cluster.image} on {_nodes(len(nodes))}")
    targets = " ".join(f"--to ssh://{name}" for name in lacking)
    return Check(
        "image on nodes",
        "fail",
        f"{cluster.image} is not on {', '.join(lacking)}",
        f"`cluster-kit image push {cluster.name} {targets}`, or a registry that they reach",
    )


def storage_check(
    beside: Path, nodes: Mapping[str, str], told: Sequence[NodeSaid], seen: Sequence[str]
) -> Check:
    """Checks that this host sees the files that each node writes into the runs' directory, and vice
    versa.

    Args:
        seen: ids of the nodes whose files this host sees.
    """
    by_node = {answer.node: answer for answer in told}
    wrong = {}
    for node, name in nodes.items():
        answer = by_node.get(node)
        if answer is None:
            wrong[name] = f"has not answered for {WITHIN_S:.0f} s"
        elif NO_FOLDER in answer.error:
            path = Path(answer.error.partition(NO_FOLDER)[2])
            hidden = path.name.startswith(".cluster-kit-probe-")
            wrong[name] = f"does not have {path.parent if hidden else path}"
        elif answer.exit_code is None and NO_IMAGE not in answer.error:
            wrong[name] = answer.error or "has not started it"
        elif answer.exit_code:
            wrong[name] = f"may not write there (exit code {answer.exit_code})"
        elif answer.exit_code == 0 and node not in seen:
            wrong[name] = "has a folder of its own there: what it writes is not seen here"
    if not wrong:
        return Check("shared storage", "ok", f"{_existing(beside)} is one for all nodes")
    summary = "; ".join(f"{name} {problem}" for name, problem in wrong.items())
    all_silent = not by_node.keys() & {node for node, name in nodes.items() if name in wrong}
    hint = AGAIN if all_silent else SHARE
    return Check("shared storage", "fail", f"{_existing(beside)}: {summary}", hint)


def _probe(cluster: Cluster, folder: Path, token: str) -> Probe:
    """The probe with the folders and files of the manifest mounted: a node that lacks one reports
    it."""
    others = dict.fromkeys(mount.source for mount in cluster.all_mounts)
    mounts = [
        Mount(source, f"{FOLDER}-{number}", read_only=True) for number, source in enumerate(others)
    ]
    shared = Mount(str(folder), FOLDER, read_only=False)
    return Probe(
        f"cluster-kit-probe-{token}", cluster.image, cluster.user, SCRIPT, (shared, *mounts)
    )


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())


def _nodes(number: int) -> str:
    return counted(number, "node")
