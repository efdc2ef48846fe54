"""Secrets of a run: whether they are there, their values, and what is saved without them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Container
from cluster_kit.engine.secret_files import secret_in
from cluster_kit.run.judging.verdict import Verdict
from cluster_kit.util.masking import MASK, looks_secret, masked
from cluster_kit.workspace import write_atomically


def values_of(cluster: Cluster, containers: Iterable[Container]) -> set[str]:
    """The values of a run's secrets: of its containers, and as far as this process knows them."""
    found = {value for container in containers for value in container.secrets}
    for task in cluster.tasks:
        found |= {value for name, value in task.environment if looks_secret(name)}
        found |= {os.environ.get(name, "") for name in task.from_caller}
    for one in cluster.sidecars:
        found |= {value for name, value in one.environment if looks_secret(name)}
        found |= {os.environ.get(name, "") for name in one.secrets}
    for mount in cluster.all_mounts:
        found |= secret_in(mount.source, mount.target)
    return found - {"", MASK}


def mask_verdict(verdict: Verdict, values: Iterable[str]) -> Verdict:
    """The verdict with MASK for these values in its message and cure."""
    values = set(values)
    return replace(
        verdict, message=masked(verdict.message, values), cure=masked(verdict.cure, values)
    )


def mask_files(folder: Path, values: Iterable[str]) -> None:
    """Replace these values in the files of a folder that have them; raises OSError."""
    values = set(values)
    for file in sorted(folder.glob("*.jsonl")) if values else []:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        if (shown := masked(text, values)) != text:
            write_atomically(file, shown)
