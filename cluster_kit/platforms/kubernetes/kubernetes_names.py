"""Names of a cluster's objects on Kubernetes. Pure."""

from __future__ import annotations

GROUP = "jobset.x-k8s.io/v1alpha2"
"""The API group of JobSets, with its version."""


def kubernetes_name(cluster: str) -> str:
    """The Service of a cluster on Kubernetes, and the beginning of all other names of it there.

    A Service's name begins with a letter. With the longest name of a cluster each one derived from
    it has at most 63 characters.
    """
    return f"ck-{cluster}"


def kubernetes_secrets(cluster: str) -> tuple[str, str]:
    """The Secrets of a cluster: of its variables, and of its files."""
    return f"{kubernetes_name(cluster)}-env", f"{kubernetes_name(cluster)}-files"


def kubernetes_job(cluster: str, role: str, *, in_set: bool) -> str:
    """The Job of a role: in a JobSet the first, and only, one of its role."""
    return f"{kubernetes_name(cluster)}-{role}{'-0' if in_set else ''}"


def kubernetes_host(cluster: str, role: str, index: int, *, in_set: bool) -> str:
    """The name by which a pod is found: its Job's, its index, and the Service."""
    return f"{kubernetes_job(cluster, role, in_set=in_set)}-{index}.{kubernetes_name(cluster)}"
