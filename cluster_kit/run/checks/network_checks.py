"""The lines of `doctor` about networks: a free subnet, and proxies that would break gRPC."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cluster_kit.facts import CLOSED, HostFacts, is_closed
from cluster_kit.host import Host
from cluster_kit.plan import addresses
from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import Cluster

OWN_EXCEPTIONS = "no_grpc_proxy"
"""Hosts that gRPC reaches without a proxy; it looks into `no_proxy` only if this is not set."""
USERS = Path("/etc/passwd")
FIRST_USER, NOBODY = 1000, 65534
"""Ids of people's users: from the first to below the second."""
NO_SHELLS = ("nologin", "false")
MOST_NAMED = 5
NO_CLUSTER = "."
"""The name of no cluster: none begins with a dot."""


def check_subnet(facts: HostFacts, cluster: Cluster | None) -> Check:
    """Whether the cluster's subnet is still free; without a cluster, whether any is."""
    if cluster is None:
        subnet = addresses.pick_subnet(NO_CLUSTER, addresses.WHOLE, facts.networks)
        if subnet is not None:
            return Check("subnet", "ok", "there is a free one; it is chosen for each manifest")
        pools = ", ".join(map(str, addresses.POOLS))
        found = f"every part of {pools} is taken by a Docker network or a route of this host"
        hint = "remove unused networks (`docker network prune`), or state a `subnet` in manifests"
        return Check("subnet", "fail", found, hint)
    for network in facts.networks:
        if network.cluster != cluster.name and network.subnet.overlaps(cluster.subnet):
            found = f"{cluster.subnet} overlaps {network.subnet} of {network.owner}"
            hint = 'remove that network, or write another `subnet` or `subnet = "auto"`'
            return Check("subnet", "fail", found, hint)
    return Check("subnet", "ok", f"{cluster.subnet} is free")


def check_proxy(cluster: Cluster | None) -> Check:
    """Whether proxies that containers get leave the cluster's own connections alone.

    Docker's client passes those of its configuration to containers. The kit exempts the subnet by
    `no_proxy`, but gRPC prefers a `no_grpc_proxy` if a manifest sets one.
    """
    for task in cluster.tasks if cluster else ():
        given = {name.lower(): value for name, value in task.environment}
        exceptions = given.get(OWN_EXCEPTIONS, "")
        if cluster and exceptions and str(cluster.subnet) not in exceptions.split(","):
            found = f"{task.name} sets {OWN_EXCEPTIONS} without {cluster.subnet}: its connections "
            hint = f"take {OWN_EXCEPTIONS} out of `environment`: the kit sets no_proxy"
            return Check("proxy", "fail", f"{found}to other tasks go through the proxy", hint)
    file = Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker")) / "config.json"
    try:
        proxies = _proxies(file)
    except (OSError, ValueError, AttributeError) as error:
        return Check(
            "proxy",
            "warn",
            f"{file} cannot be read: {error}",
            "mend it: Docker's client takes registries' passwords and proxies from it",
        )
    local = {name: url for name, url in proxies.items() if _is_loopback(url)}
    if local:
        listed = ", ".join(f"{name} = {url}" for name, url in local.items())
        return Check(
            "proxy",
            "warn",
            f"{file} passes {listed} to containers, where that is the container itself",
            "name the proxy by an address that containers reach, e.g. the host's on its network",
        )
    if proxies:
        return Check("proxy", "ok", f"set in {file}; the cluster's subnet is exempted by no_proxy")
    return Check("proxy", "ok", "none handed to containers")


def check_strangers(
    host: Host, facts: HostFacts, users: Path = USERS, this: Collection[int] = ()
) -> Iterator[Check]:
    """Yields who can reach the tasks' servers, which ask nobody who they are.

    Args:
        users: the list of users, as /etc/passwd.
        this: ids of users who are this one; by default the one who calls, also by sudo.
    """
    if facts.kind.remote or facts.kind.desktop or facts.kind.podman:
        return
    yield _check_users(users, this or {os.getuid(), int(os.environ.get("SUDO_UID") or 0)})
    newer = f"install Docker Engine {CLOSED} or newer: https://docs.docker.com/engine/install"
    if is_closed(facts.engine):
        yield Check("isolation", "ok", "the engine keeps other machines from unpublished ports")
    else:
        found = f"Docker Engine {facts.engine} is older than {CLOSED}: only the policy of the "
        found += "firewall's chain FORWARD keeps other machines from unpublished ports"
        yield Check("isolation", "warn", found, newer)
    yield _check_forward(host)


def _check_users(users: Path, this: Collection[int]) -> Check:
    try:
        rows = [line.split(":") for line in users.read_text(errors="replace").splitlines()]
    except OSError as error:
        found = f"not known: {users} cannot be read ({error.strerror})"
        return Check("users", "warn", found, "look who else can log in to this host")
    others = sorted(
        row[0]
        for row in rows
        if len(row) > 6 and row[2].isdecimal() and FIRST_USER <= int(row[2]) < NOBODY
        if int(row[2]) not in this and not row[6].endswith(NO_SHELLS)
    )
    if not others:
        return Check("users", "ok", f"nobody else can log in, by {users}")
    listed = ", ".join(others[:MOST_NAMED]) + (", …" if len(others) > MOST_NAMED else "")
    return Check(
        "users",
        "warn",
        f"{listed} can log in, and reach the tasks' servers, which run code for anyone",
        "see docs/how-it-works.md#confinement: run what they must not see on another host",
    )


def _check_forward(host: Host) -> Check:
    """The policy of the firewall's chain FORWARD, which takes root and iptables to read."""
    done = host.processes.run(["iptables", "--wait", "2", "--list-rules", "FORWARD"], timeout_s=10)
    first = done.output.partition("\n")[0].split()
    if not done.ok or first[:2] != ["-P", "FORWARD"]:
        found = "not known: reading the firewall's chain FORWARD takes root and iptables"
        return Check("forward", "warn", found, "`sudo iptables -S FORWARD` must begin with DROP")
    if first[2:] == ["DROP"]:
        return Check("forward", "ok", "the firewall drops what nobody allows through this host")
    found = f"the policy of the firewall's chain FORWARD is {' '.join(first[2:])}"
    return Check(
        "forward", "warn", found, "`iptables -P FORWARD DROP`, unless this host is a router"
    )


def _proxies(file: Path) -> dict[str, str]:
    """The URLs of proxies in Docker's client configuration, by name; {} without a file.

    Raises:
        OSError, ValueError, AttributeError: it cannot be read, or is not what Docker writes.
    """
    if not file.exists():
        return {}
    of_hosts: Mapping[str, Mapping[str, str]] = json.loads(file.read_text()).get("proxies") or {}
    return {
        name: str(url)
        for proxies in of_hosts.values()
        for name, url in proxies.items()
        if name.endswith("Proxy") and name != "noProxy"
    }


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
