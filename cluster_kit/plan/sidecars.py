"""The sidecars of a cluster, from the tables of a manifest. Pure."""

from __future__ import annotations

from ipaddress import IPv4Network

from cluster_kit.cluster import OWNER
from cluster_kit.manifest.names import OWN_IMAGE
from cluster_kit.manifest.schema import Manifest
from cluster_kit.manifest.sidecars import SidecarTable
from cluster_kit.parts import Port, Sidecar
from cluster_kit.plan import addresses
from cluster_kit.programs.resolve import Inputs

OWNERS = "0:0"
"""Whom a portable file names, unless UID and GID do."""


def shares_image(table: SidecarTable) -> bool:
    """Whether a sidecar runs the image of the tasks."""
    return table.image in ("", OWN_IMAGE)


def sidecars_of(
    manifest: Manifest, inputs: Inputs, subnet: IPv4Network, image: str, user: str
) -> tuple[Sidecar, ...]:
    """All sidecars, in the manifest's order.

    One on the tasks' image is not a task: it runs its command alone, as their user. Any other image
    runs as it was made to.

    Args:
        image: that of the tasks.
        user: that of the tasks.
    """
    whom = OWNERS if user == OWNER else user
    runs = [_run(table) for table in manifest.sidecar.values()]
    return tuple(
        Sidecar(
            name=name,
            ip=addresses.of_sidecar(subnet, number),
            image=image if shares_image(table) else table.image,
            entrypoint=runs[number][0],
            command=runs[number][1],
            user=whom if shares_image(table) else "",
            environment=tuple(sorted(table.environment.items())),
            secrets=tuple(sorted(set(table.secrets))),
            mounts=inputs.sidecar_mounts[name],
            ports=tuple(Port(*pair) for pair in sorted(set(table.ports))),
            required=table.required,
        )
        for number, (name, table) in enumerate(manifest.sidecar.items())
    )


def _run(table: SidecarTable) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """(entry point or None for the image's own, its arguments): the command itself without one."""
    command = tuple(table.command)
    if table.entrypoint:
        return tuple(table.entrypoint), command
    alone = table.entrypoint == [] or shares_image(table)
    return (command, ()) if alone else (None, command)
