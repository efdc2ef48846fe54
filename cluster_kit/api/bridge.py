"""Whether this host reaches the containers by their addresses, and by which one they reach it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.errors import HostError

CONNECT_S = 3.0
ELSEWHERE = ("ssh://", "tcp://", "http://", "https://")
LOOPBACK = ("127.", "localhost", "[::1]")
CURE = 'leave the chief in its container: without chief="host"'


def refuse_without_route(info: Mapping[str, Any]) -> None:
    """Raise HostError if an engine of this kind gives its host no route to containers.

    Args:
        info: what `docker info` shows.
    """
    if reason := no_route(info, os.environ.get("DOCKER_HOST", "")):
        raise HostError(f"a chief on this host cannot reach the other tasks: {reason}", CURE)


def no_route(info: Mapping[str, Any], docker_host: str) -> str:
    """Why this host has no route to the engine's bridge networks; "" if it should have one."""
    if str(info.get("OperatingSystem", "")).startswith("Docker Desktop"):
        return "Docker Desktop runs containers in a virtual machine, without a route from here"
    if any("rootless" in str(option) for option in info.get("SecurityOptions") or ()):
        return "rootless Docker runs containers in a network namespace, without a route from here"
    address = docker_host.partition("://")[2]
    if docker_host.startswith(ELSEWHERE) and not address.startswith(LOOPBACK):
        return f"the engine is on another machine (DOCKER_HOST={docker_host})"
    return ""


def refuse_unreachable(cluster: Cluster) -> None:
    """Raise HostError if this host cannot connect to a server of the cluster that answers."""
    if cluster.isolated:
        raise HostError(
            f"this host has no address in the network of {cluster.name}, which is internal",
            f"set network.internal=false, or {CURE}",
        )
    for task in cluster.tasks:
        if task.serves and (error := connect(str(task.ip), cluster.port)):
            raise HostError(
                f"{task.name} answers inside {cluster.name}, but not from this host at "
                f"{task.ip}:{cluster.port}: {error}",
                f"look for a firewall, or a virtual machine around the engine; or {CURE}",
            )


def connect(host: str, port: int) -> str:
    """Why no connection can be made, "" if one can."""
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def own_address(cluster: Cluster) -> str:
    """`IP:port` at which containers reach a server of this host.

    The port is the cluster's if it is free here, else another.
    """
    for port in (cluster.port, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))  # as TensorFlow does, whose servers listen on all addresses
            except OSError:
                continue
            return f"{cluster.gateway}:{probe.getsockname()[1]}"
    raise HostError("no TCP port is free on this host", "end what holds them: `ss -tln` shows it")
