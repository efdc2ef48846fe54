"""The lines of `doctor` about what kind of engine it is: what differs there from the usual one."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.cluster import Cluster
from cluster_kit.facts import EngineKind
from cluster_kit.run.check import Check

SEE = "see docs/elsewhere.md"
PROCESSORS = ("x86_64", "amd64", "")
"""For which the kit's own image can be built; "" if the engine does not tell."""


def check_kind(kind: EngineKind, cluster: Cluster | None) -> Iterator[Check]:
    """A line for each thing that differs; none for an engine of this host that runs as root."""
    if kind.rootless:
        found = "rootless: tasks are root in their containers, which is this user on the host"
        yield Check("rootless", "ok", found)
    if kind.desktop:
        found = "Docker Desktop: a virtual machine; this host has no route to the tasks' addresses"
        yield Check("desktop", "warn", found, f"share the project's folder with it; {SEE}")
    if kind.remote:
        found = f"the engine is on another machine ({kind.remote}): it must see the same folders"
        yield Check("remote", "warn", found, f"run the kit there, or share the folder; {SEE}")
    if kind.machine not in PROCESSORS and (cluster is None or cluster.variant is not None):
        found = f"{kind.machine}: the packages of the kit's own image are locked for x86_64"
        cure = f'name an image with TensorFlow for it (`image = "…"`); {SEE}'
        yield Check("processor", "warn" if cluster is None else "fail", found, cure)
    if kind.unlimited:
        yield _limits(kind, cluster)


def _limits(kind: EngineKind, cluster: Cluster | None) -> Check:
    """Which limits the engine cannot hold, and which of them the cluster asks for."""
    asked = {
        f"{task.name}: {limit}"
        for limit in kind.unlimited
        for task in (cluster.tasks if cluster else ())
        if getattr(task, limit) is not None
    }
    found = f"this engine cannot limit {' or '.join(kind.unlimited)}"
    cure = "give it cgroups (rootless: cgroup v2 with delegation by systemd)"
    if not asked:
        return Check("limits", "warn", found, cure)
    listed = ", ".join(sorted(asked))
    return Check("limits", "fail", f"{found} ({listed})", f"{cure}, or take the limits out")
