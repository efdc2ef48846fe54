"""Tries on every node of a swarm what tasks need there: the image, and folders that all share."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster_kit.cluster import Cluster
from cluster_kit.engine.swarm.client import SwarmEngine
from cluster_kit.engine.swarm.probe import NodeSaid, Probe
from cluster_kit.errors import EngineError
from cluster_kit.parts import Mount
from cluster_kit.run.checks.check import Check

WITHIN_S = 30.0
FOLDER = "/cluster-kit-probe"
SCRIPT = f'cat {FOLDER}/token > "{FOLDER}/$NODE"'
NO_IMAGE = "No such image"
NO_FOLDER = "bind source path does not exist: "
AGAIN = "ask again: a node that pulls the image takes longer; `docker node ls` shows which answer"
SHARE = "mount one network file system (NFS) at that path on every node and on this host"


def probe_nodes(engine: SwarmEngine, cluster: Cluster, beside: Path) -> list[Check]:
    """The checks of what every node has, by a container that writes what it has read.

    Args:
        beside: the directory in which runs are.
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
        what = f"{beside} cannot be written: {error.strerror}"
        return [Check("shared storage", "fail", what, "make it writable for this user")]
    try:
        (folder / "token").write_text(token)
        told = engine.run_on_each_node(_probe(cluster, folder, token), WITHIN_S)
        written = {one.name: one.read_text() for one in folder.iterdir()}
    except EngineError as error:
        return [Check("shared storage", "fail", error.message, error.cure)]
    except OSError as error:
        return [Check("shared storage", "fail", str(error), SHARE)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seen = [node for node, text in written.items() if text == token]
    return [image_check(cluster, nodes, told), storage_check(beside, nodes, told, seen)]


def image_check(cluster: Cluster, nodes: Mapping[str, str], told: Sequence[NodeSaid]) -> Check:
    """Whether every node has the image."""
    lacking = [nodes.get(one.node, one.node) for one in told if NO_IMAGE in one.error]
    if not lacking:
        if len(told) < len(nodes):
            on = f"{cluster.image} on {len(told)} of {_count(len(nodes))}: the others say nothing"
            return Check("image on nodes", "warn", on, AGAIN)
        return Check("image on nodes", "ok", f"{cluster.image} on {_count(len(nodes))}")
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
    """Whether what every node writes where runs are is there for this host, and the other way.

    Args:
        seen: ids of the nodes whose writing is there.
    """
    said = {one.node: one for one in told}
    wrong = {}
    for node, name in nodes.items():
        one = said.get(node)
        if one is None:
            wrong[name] = f"has said nothing for {WITHIN_S:.0f} s"
        elif NO_FOLDER in one.error:
            path = Path(one.error.partition(NO_FOLDER)[2])
            hidden = path.name.startswith(".cluster-kit-probe-")
            wrong[name] = f"does not have {path.parent if hidden else path}"
        elif one.exit_code is None and NO_IMAGE not in one.error:
            wrong[name] = one.error or "has not started it"
        elif one.exit_code:
            wrong[name] = f"may not write there (exit code {one.exit_code})"
        elif one.exit_code == 0 and node not in seen:
            wrong[name] = "has a folder of its own there: what it writes is not seen here"
    if not wrong:
        return Check("shared storage", "ok", f"{_existing(beside)} is one for all nodes")
    found = "; ".join(f"{name} {what}" for name, what in wrong.items())
    all_silent = not said.keys() & {node for node, name in nodes.items() if name in wrong}
    cure = AGAIN if all_silent else SHARE
    return Check("shared storage", "fail", f"{_existing(beside)}: {found}", cure)


def _probe(cluster: Cluster, folder: Path, token: str) -> Probe:
    """With the folders and files of the manifest: a node that lacks one says so."""
    others = dict.fromkeys(mount.source for mount in cluster.all_mounts)
    mounts = [
        Mount(source, f"{FOLDER}-{number}", read_only=True) for number, source in enumerate(others)
    ]
    own = Mount(str(folder), FOLDER, read_only=False)
    return Probe(f"cluster-kit-probe-{token}", cluster.image, cluster.user, SCRIPT, (own, *mounts))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())


def _count(number: int) -> str:
    return f"{number} node{'s' if number != 1 else ''}"
