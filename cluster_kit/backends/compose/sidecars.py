"""The services of sidecars in a compose file, as YAML text. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_kit.backends.service import from_caller, in_memory, logging
from cluster_kit.backends.sidecar_spec import SidecarSpec, sidecar_specs
from cluster_kit.backends.yaml import (
    Pair,
    Volume,
    boolean,
    flow,
    key,
    pairs,
    published,
    quote,
    volumes,
)
from cluster_kit.cluster import OWNER, Cluster

HIDDEN = "secrets.yaml"
"""The file beside it that has the values of secrets (see `hidden`)."""
ANY_USER = '"${UID:-0}:${GID:-${UID:-0}}"'
"""Whom UID and GID name; else root, which gives that up for the owner of the output directory."""


@dataclass(frozen=True)
class SidecarService:
    """One sidecar's values as YAML text; "" for a key that it does not have."""

    name: str
    container: str
    image: str
    pull_policy: str
    init: str
    entrypoint: str
    command: str
    user: str
    security_opt: str
    cap_drop: str
    read_only: str
    tmpfs: str
    pids: str
    logging: str
    stop_grace: str
    ip: str
    environment: tuple[Pair, ...]
    secrets: tuple[str, ...]
    hidden: str
    mounts: tuple[Volume, ...]
    ports: str
    labels: tuple[Pair, ...]


def services_of(cluster: Cluster) -> list[SidecarService]:
    """Returns the service of every sidecar, in their order."""
    return [_service(cluster, spec) for spec in sidecar_specs(cluster)]


def _service(cluster: Cluster, spec: SidecarSpec) -> SidecarService:
    user = ANY_USER if cluster.user == OWNER else quote(spec.user)
    return SidecarService(
        name=key(spec.hostname),
        container=spec.name,
        image=quote(spec.image),
        pull_policy="never" if spec.image_is_local else "missing",
        init=boolean(spec.init),
        entrypoint="" if spec.entrypoint is None else flow(spec.entrypoint),
        command=flow(spec.command) if spec.command else "",
        user=user if spec.user else "",
        security_opt=f'["no-new-privileges:{boolean(spec.no_new_privileges)}"]',
        cap_drop="[" + ", ".join(spec.cap_drop) + "]" if spec.cap_drop else "",
        read_only=boolean(spec.read_only) if spec.read_only else "",
        tmpfs=in_memory(spec.tmpfs, spec.bounds) if spec.tmpfs else "",
        pids="" if spec.bounds.pids is None else str(spec.bounds.pids),
        logging=logging(spec.bounds),
        stop_grace=f"{spec.stop_grace_s}s",
        ip=str(spec.ip),
        environment=pairs(spec.environment),
        secrets=from_caller(spec.secrets),
        hidden=HIDDEN if spec.hidden else "",
        mounts=volumes(spec.mounts),
        ports=published(spec.ports),
        labels=pairs(spec.labels),
    )
