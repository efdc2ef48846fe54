"""Names of a cluster's objects on Kubernetes, and its settings from `[kubernetes]`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_kit.resolved import Cluster

GROUP = "jobset.x-k8s.io/v1alpha2"
"""The API group of JobSets, with its version."""


def kubernetes_name(cluster: str) -> str:
    """The name of a cluster's Service on Kubernetes, which is also the prefix of all its other
    names there.

    A Service's name begins with a letter. With the longest name of a cluster each one derived from
    it has at most 63 characters.
    """
    return f"ck-{cluster}"


def kubernetes_secrets(cluster: str) -> tuple[str, str]:
    """The Secrets of a cluster: of its variables, and of its files."""
    return f"{kubernetes_name(cluster)}-env", f"{kubernetes_name(cluster)}-files"


def kubernetes_role(role: str) -> str:
    """A role as a part of names on Kubernetes, which have no underscores."""
    return role.replace("_", "-")


def kubernetes_job(cluster: str, role: str, *, in_set: bool) -> str:
    """The Job of a role: in a JobSet the first, and only, one of its role."""
    return f"{kubernetes_name(cluster)}-{kubernetes_role(role)}{'-0' if in_set else ''}"


def kubernetes_host(cluster: str, role: str, index: int, *, in_set: bool) -> str:
    """A pod's host name: its Job's name, its index, and the Service."""
    return f"{kubernetes_job(cluster, role, in_set=in_set)}-{index}.{kubernetes_name(cluster)}"


@dataclass(frozen=True)
class KubernetesSettings:
    """Settings of a Kubernetes job, from the manifest's table `[kubernetes]`.

    `claim` is the claim at OUTPUT, "" for an emptyDir; `storage` is the size of a new claim in
    bytes, None for an existing one. `claims` are (path in containers, claim, folder in it).
    `jobset`: the Jobs are parts of one JobSet.
    """

    namespace: str
    pull_policy: str
    pull_secret: str
    claim: str
    storage: int | None
    storage_class: str
    claims: tuple[tuple[str, str, str], ...]
    egress: bool
    queue: str
    jobset: bool = False


def settings_of(cluster: Cluster) -> KubernetesSettings:
    """Returns the settings of a cluster that was planned for Kubernetes."""
    claims = tuple((target, claim, folder) for target, claim, folder in cluster.settings["claims"])
    return KubernetesSettings(**{**cluster.settings, "claims": claims})
