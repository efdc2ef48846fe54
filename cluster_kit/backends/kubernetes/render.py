"""Renders a cluster's Kubernetes file, for `kubectl apply`. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from cluster_kit.backends.container_spec import container_specs
from cluster_kit.backends.header import header
from cluster_kit.backends.kubernetes.files import Carried, secret_files
from cluster_kit.backends.kubernetes.objects import objects
from cluster_kit.backends.yaml import comment, scalar
from cluster_kit.cluster import Cluster
from cluster_kit.labels import CLUSTER, PLAN, kubernetes_job, kubernetes_name


def render(cluster: Cluster, files: Sequence[Carried]) -> str:
    """Returns the file: the same cluster and the same files give the same text."""
    plan = container_specs(cluster)[0].shared.labels[PLAN]
    head = [f"# {line}" for line in header(cluster, plan, own_lines(cluster))]
    documents = ["\n".join(block(one)) for one in objects(cluster, files)]
    return "\n".join(head) + "\n---\n" + "\n---\n".join(documents) + "\n"


def own_lines(cluster: Cluster) -> list[str]:
    """What the file says of itself in its first lines."""
    name = kubernetes_name(cluster.name)
    on = cluster.kubernetes
    assert on is not None
    kubectl = f"kubectl -n {on.namespace}" if on.namespace else "kubectl"
    leader = kubernetes_job(cluster.name, cluster.leader.role, in_set=on.jobset)
    jobs = "jobset" if on.jobset else "job"
    return [
        f"`{kubectl} apply -f kubernetes.yaml` starts it. Nodes need its image:",
        f"{cluster.image}",
        *_secrets(cluster, f"{kubectl} create secret generic {name}"),
        f"`{kubectl} logs -f job/{leader}` shows its leader, whose end decides the job.",
        f"`{kubectl} delete {jobs},svc,cm,netpol -l {CLUSTER}={cluster.name}` removes it; the "
        "results stay in its claim.",
    ]


def _secrets(cluster: Cluster, create: str) -> Iterator[str]:
    """Yields how the Secrets are made: the file has no values."""
    if names := cluster.from_caller:
        # No value is an argument, which every user of the host could read.
        values = " ".join(f'--from-file={one}=<(printf %s "${one}")' for one in names)
        yield f"First, in Bash: `{create}-env {values}`"
    if files := secret_files(cluster):
        values = " ".join(shlex.quote(f"--from-file={key}={path}") for key, path in files.items())
        yield comment(f"First: `{create}-files {values}`")


def block(value: Any, indent: str = "") -> Iterator[str]:
    """Yields the lines of a value as YAML in block style: texts are quoted, numbers are not."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _entry(f"{indent}{_key(key)}:", inner, indent + "  ")
    elif isinstance(value, list):
        for inner in value:
            lines = list(block(inner, indent + "  ")) if inner else [_plain(inner)]
            yield f"{indent}- {lines[0].lstrip(' ')}"
            yield from lines[1:]
    else:
        yield indent + _plain(value)


def _entry(start: str, inner: Any, indent: str) -> Iterator[str]:
    if isinstance(inner, dict | list) and inner:
        yield start
        yield from block(inner, indent if isinstance(inner, dict) else indent[:-2])
    else:
        yield f"{start} {_plain(inner)}"


def _key(text: str) -> str:
    return (
        text if text.replace(".", "").replace("/", "").replace("-", "").isalnum() else scalar(text)
    )


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return str(value) if isinstance(value, int) else scalar(str(value))
