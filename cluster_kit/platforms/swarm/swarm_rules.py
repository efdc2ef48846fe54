"""Rules for a manifest that runs on a swarm. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.tasks import CONSTRAINT
from cluster_kit.platforms import refusals
from cluster_kit.platforms.refusals import HERE, REQUIRE, refused
from cluster_kit.util.toml_text import to_toml

LONGEST_NAME = 39
"""The longest name of a cluster on a swarm: a service's name has at most 63 characters."""
_ON_SWARM: dict[str, tuple[str, HintText]] = {
    "gpus": (
        "the nodes' GPUs are unknown here; workers get theirs by number",
        ("write ", REQUIRE),
    ),
    "ports": ("a swarm publishes ports at every address of its nodes, not only at 127.0.0.1", HERE),
}


def check_swarm_manifest(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of keys that a swarm does not support."""
    if len(manifest.name) > LONGEST_NAME:
        rule = f"a cluster's name has at most {LONGEST_NAME} characters on a swarm"
        example = Setting("name", manifest.name[:LONGEST_NAME].rstrip("-"))
        yield refused("name", to_toml(manifest.name), rule, ("for example ", example))
    rule = "on a swarm, a task gets a new address at each start"
    hint = "write {{ name }}: on a swarm, tasks find each other by name"
    yield from refusals.addresses(manifest, rule, hint)
    rule = "the nodes' GPUs are unknown here: a swarm chooses GPUs by number"
    yield from refusals.of_this_host(manifest, rule)
    if manifest.share_gpus and manifest.gpus != "none":
        rule = "a swarm cannot share a GPU between tasks"
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
