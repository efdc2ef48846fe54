"""The lines of `doctor` about what kind of engine it is: what differs there from the usual one."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.facts import EngineKind
from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import Cluster

SEE = "see docs/elsewhere.md"
TRIED = ("x86_64", "amd64", "")
"""On which the kit's own image is tried; "" if the engine does not tell."""
LOCKED = (*TRIED, "aarch64", "arm64")
"""For which its packages are locked."""


MINIMUM_PODMAN = (4, 3)
"""The oldest that was tried."""


def podman(version: str) -> Check:
    """The line about Podman in the place of a Docker engine."""
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers < MINIMUM_PODMAN:
        return Check("engine", "fail", f"Podman {version}", "needs 4.3 or newer: upgrade")
    found = f"Podman {version}, by its interface for Docker's clients"
    return Check("engine", "warn", found, f"what does not work there: {SEE}")


def podman_builds(lacks: str) -> Check:
    """The line about building there; `lacks` is the tag of the image to be built, "" if none."""
    found = "Podman builds no images for the kit: `docker buildx` needs BuildKit in the engine"
    image = lacks or "IMAGE"
    hint = f"build it with a Docker engine, and bring it: `docker save {image} | podman load`"
    return Check("buildx", "fail" if lacks else "warn", found, hint)


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
    if kind.machine not in TRIED and (cluster is None or cluster.variant is not None):
        yield _processor(kind.machine, cluster)
    if kind.unlimited:
        yield _limits(kind, cluster)


def _processor(machine: str, cluster: Cluster | None) -> Check:
    """Whether the kit's own image can be built for it: its packages are locked, if not tried."""
    own = f'name an image with TensorFlow for it (`image = "…"`); {SEE}'
    if machine not in LOCKED:
        found = f"{machine}: the packages of the kit's own image are locked for x86_64 and aarch64"
        return Check("processor", "warn" if cluster is None else "fail", found, own)
    if cluster is not None and cluster.variant == "gpu":
        found = f"{machine}: the TensorFlow that is published for it has no support of GPUs"
        return Check("processor", "fail", found, f'write `gpus = "none"`, or {own}')
    found = f"{machine}: the packages of the kit's own image are locked for it; it was not tried"
    return Check("processor", "warn", found, f"if the image does not build, {own}")


def _limits(kind: EngineKind, cluster: Cluster | None) -> Check:
    """Which limits the engine cannot hold, and which of them the cluster asks for."""
    asked = {
        f"{task.name}: {limit}"
        for limit in kind.unlimited
        for task in (cluster.tasks if cluster else ())
        if getattr(task, limit) is not None
    }
    found = f"this engine cannot limit {' or '.join(kind.unlimited)}"
    hint = "give it cgroups (rootless: cgroup v2 with delegation by systemd)"
    if not asked:
        return Check("limits", "warn", found, hint)
    listed = ", ".join(sorted(asked))
    return Check("limits", "fail", f"{found} ({listed})", f"{hint}, or take the limits out")
