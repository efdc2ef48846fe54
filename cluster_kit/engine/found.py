"""By which labels the engine finds what belongs to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_kit import labels

Filters = dict[str, str | list[str]]


def of_cluster(cluster: str, run: str = "") -> Filters:
    """The engine's filter for containers and networks of a cluster, or only of this run."""
    return {"label": [f"{labels.CLUSTER}={cluster}", *([f"{labels.RUN}={run}"] if run else [])]}


def board_of(cluster: str, run: str = "") -> Filters:
    """The same for the TensorBoard that began with it."""
    return {"label": [f"{labels.BOARD_OF}={cluster}", *([f"{labels.RUN}={run}"] if run else [])]}


def of_a_swarm(attributes: Mapping[str, Any]) -> bool:
    """Whether a swarm runs the container: only by its service may it be ended or removed."""
    tags = (attributes.get("Config") or {}).get("Labels") or {}
    return "com.docker.swarm.service.id" in tags
