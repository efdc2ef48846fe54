"""An engine that is asked only which clusters are up, and with which containers."""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster_kit.platforms.engine import SIDECAR, Container, ContainerSummary


@dataclass
class ClustersUp:
    """Clusters by name, each with its containers."""

    up: dict[str, list[Container]] = field(default_factory=dict)

    def clusters(self) -> list[str]:
        return sorted(self.up)

    def glance(self) -> list[ContainerSummary]:
        everyone = [one for containers in self.up.values() for one in containers]
        return [
            ContainerSummary(one.id, one.cluster, "", one.name, one.role, one.state, one.output)
            for one in everyone
        ]

    def containers(self, cluster: str) -> list[Container]:
        return [one for one in self.up.get(cluster, []) if one.role != SIDECAR]

    def sidecars(self, cluster: str) -> list[Container]:
        return [one for one in self.up.get(cluster, []) if one.role == SIDECAR]
