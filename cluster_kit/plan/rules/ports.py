"""Rules: every published port is one task's alone, on a network that publishes ports. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.manifest.names import TASK
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem
from cluster_kit.roles import ROLES


def check_ports(manifest: Manifest) -> Iterator[Problem]:
    """Yields ports that two tasks would share, or that an internal network cannot publish."""
    taken: dict[int, str] = {}
    for place, ports in published(manifest):
        for host, _ in ports:
            if host in taken:
                rule = f"127.0.0.1:{host} is that of {taken[host]} already"
                cure = 'give it another port of this host, e.g. "8081:80"'
                yield Problem(place, str(host), rule, cure, (*ROLES, "role", "task", "sidecar"))
            taken.setdefault(host, place)
    yield from _shared(manifest)
    if manifest.network.internal and taken:
        rule = f"an internal network publishes no ports: {', '.join(map(str, sorted(taken)))}"
        cure = "take this out, or the `ports`"
        yield Problem("network.internal", "true", rule, cure, ("role", "task", "sidecar"))


def published(manifest: Manifest) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yields every key that publishes ports, with its pairs: this host's, the container's."""
    for role in ROLES:
        if ports := manifest.limits(role).ports:
            yield f"role.{role}.ports", ports
    for name, limits in manifest.task.items():
        if limits.ports:
            yield f"task.{name}.ports", limits.ports
    for name, sidecar in manifest.sidecar.items():
        if sidecar.ports:
            yield f"sidecar.{name}.ports", sidecar.ports


def _shared(manifest: Manifest) -> Iterator[Problem]:
    """Yields the ports of a role that several of its tasks would publish."""
    for role in ROLES:
        ports, count = manifest.limits(role).ports, manifest.count(role)
        for name, limits in manifest.task.items():
            match = TASK.fullmatch(name)
            if match and match[1] == role and int(match[2]) < manifest.count(role):
                count -= limits.ports is not None
        if ports and count > 1:
            rule = f"{count} tasks cannot share a port of this host"
            cure = f"write it for one of them: `ports` under [task.{role}-0]"
            yield Problem(f"role.{role}.ports", str(ports[0][0]), rule, cure, (role, "task"))
