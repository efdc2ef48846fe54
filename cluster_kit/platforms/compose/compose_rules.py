"""Rules: what Docker Compose can keep of a manifest. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.schema import Manifest
from cluster_kit.platforms import refusals
from cluster_kit.platforms.refusals import refused

_BY_COMPOSE: dict[str, tuple[str, HintText]] = {
    "nodes": (
        "Docker Compose runs all tasks on this host",
        ("take it out, or write ", Setting("engine", "swarm")),
    ),
}


def check_compose(manifest: Manifest) -> Iterator[Problem]:
    """Yields what Docker Compose cannot keep: it runs all tasks on this host."""
    for table, limits in manifest.limits_by_table():
        yield from refusals.in_limits(table, limits, _BY_COMPOSE)
    if manifest.network.encrypted:
        rule, hint = _BY_COMPOSE["nodes"]
        yield refused("network.encrypted", "true", f"{rule}: nothing leaves it", hint)
