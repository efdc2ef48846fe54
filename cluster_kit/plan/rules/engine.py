"""Rules: what the chosen engine can say; what it cannot is refused by its key. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.nodes import CONSTRAINT
from cluster_kit.plan.rules import refusals
from cluster_kit.plan.rules.kubernetes import check_kubernetes
from cluster_kit.plan.rules.refusals import HERE, REQUIRE, refused
from cluster_kit.plan.rules.slurm import check_slurm
from cluster_kit.problem import HintText, Problem, Setting
from cluster_kit.util.toml_text import to_toml

LONGEST_NAME = 39
"""Of a cluster on a swarm: the name of a service there has at most 63 characters."""
_ON_SWARM: dict[str, tuple[str, HintText]] = {
    "gpus": (
        "which GPUs the nodes have is not known here; workers get theirs by their number",
        ("write ", REQUIRE),
    ),
    "ports": ("a swarm publishes ports at every address of its nodes, not at 127.0.0.1", HERE),
}
_BY_COMPOSE: dict[str, tuple[str, HintText]] = {
    "nodes": (
        "Docker Compose runs all tasks on this host",
        ("take it out, or write ", Setting("engine", "swarm")),
    ),
}


def check_engine(manifest: Manifest) -> Iterator[Problem]:
    """Yields what the manifest's engine cannot do."""
    if manifest.engine == "swarm":
        yield from _on_swarm(manifest)
    elif manifest.engine == "kubernetes":
        yield from check_kubernetes(manifest)
    elif manifest.engine == "slurm":
        yield from check_slurm(manifest)
    else:
        yield from _on_one_host(manifest)


def _on_one_host(manifest: Manifest) -> Iterator[Problem]:
    for table, limits in manifest.limits_by_table():
        yield from refusals.in_limits(table, limits, _BY_COMPOSE)
    if manifest.network.encrypted:
        rule, hint = _BY_COMPOSE["nodes"]
        yield refused("network.encrypted", "true", f"{rule}: nothing leaves it", hint)


def _on_swarm(manifest: Manifest) -> Iterator[Problem]:
    if len(manifest.name) > LONGEST_NAME:
        rule = f"a cluster's name has at most {LONGEST_NAME} characters on a swarm"
        example = Setting("name", manifest.name[:LONGEST_NAME].rstrip("-"))
        yield refused("name", to_toml(manifest.name), rule, ("for example ", example))
    rule = "a swarm gives a task another address at each start"
    hint = "write {{ name }}: a task is found by its name there"
    yield from refusals.addresses(manifest, rule, hint)
    rule = "which GPUs the nodes have is not known here: a swarm chooses them by their number"
    yield from refusals.of_this_host(manifest, rule)
    if manifest.share_gpus and manifest.gpus != "none":
        rule = "a swarm gives a GPU to one task at a time"
        yield refused("share_gpus", "true", rule, ("write ", Setting("share_gpus", False)))
    for table, limits in manifest.limits_by_table():
        yield from refusals.in_limits(table, limits, _ON_SWARM)
        yield from refusals.in_clear(table, limits, "stack.yaml", ", and export the variable")
        yield from _nodes(f"{table}.nodes", limits.nodes)


def _nodes(key_path: str, nodes: str | None) -> Iterator[Problem]:
    parts = [] if nodes is None else nodes.split(",")
    if not all(CONSTRAINT.fullmatch(part.strip()) for part in parts):
        hint = ("for example ", Setting(key_path, "disk==ssd"))
        yield refused(key_path, to_toml(nodes), "not `label==value` or `label!=value`", hint)
