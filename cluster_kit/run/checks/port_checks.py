"""Whether the ports that a cluster publishes are free on this host."""

from __future__ import annotations

import errno
import os
import socket

from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import LOOPBACK, Cluster


def check_ports(cluster: Cluster | None) -> list[Check]:
    """Whether nothing else listens on the ports that tasks publish; [] if none does."""
    ports = cluster.ports if cluster else ()
    if not ports or _is_elsewhere():
        return []
    told = ", ".join(f"{LOOPBACK}:{port.host}" for _, port in ports)
    taken = [f"{LOOPBACK}:{port.host} ({name})" for name, port in ports if is_taken(port.host)]
    if taken:
        hint = "end what listens there, or publish another port of this host in `ports`"
        return [Check("ports", "fail", f"taken: {', '.join(taken)}", hint)]
    return [Check("ports", "ok", f"free: {told}")]


def _is_elsewhere() -> bool:
    """Whether the engine publishes ports on another machine."""
    return os.environ.get("DOCKER_HOST", "").startswith(("tcp:", "ssh:"))


def is_taken(port: int) -> bool:
    """Whether something listens on a port of this host; False if that cannot be known."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        # As the engine does: connections that are about to end do not count.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
