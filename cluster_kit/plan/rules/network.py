"""Rules: a usable port, and a subnet that is private, large enough and free here. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from cluster_kit.facts import HostFacts
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import addresses
from cluster_kit.plan.rules.counts import last_indexes, too_many
from cluster_kit.problem import Problem, Setting
from cluster_kit.roles import ROLES

READS = (*ROLES, "name")
"""The keys that decide how large a subnet must be, and which one is free."""


def check_port(manifest: Manifest) -> Iterator[Problem]:
    """Yields a port that no task could listen on."""
    if not 1024 <= manifest.port <= 65534:
        rule = "must be 1024 to 65534 (unprivileged; the next port is the beacon's)"
        yield Problem("port", str(manifest.port), rule, ("write ", Setting("port", 2222)))


def find_subnet(manifest: Manifest, facts: HostFacts) -> tuple[IPv4Network | None, list[Problem]]:
    """The subnet that the manifest gives, or a free one; None if there are problems."""
    if manifest.subnet != "auto":
        return _given_subnet(manifest, facts)
    prefix = addresses.prefix_needed(last_indexes(manifest))
    if prefix is None:
        return None, []
    subnet = addresses.pick_subnet(manifest.name, prefix, facts.networks)
    if subnet is None:
        pools = ", ".join(str(pool) for pool in addresses.POOLS)
        rule = f"every slot of {pools} is taken by a Docker network or a route of this host"
        cure = "remove unused networks (docker network prune), or state a `subnet` of your own"
        return None, [Problem("subnet", '"auto"', rule, cure, READS)]
    return subnet, []


def _given_subnet(manifest: Manifest, facts: HostFacts) -> tuple[IPv4Network | None, list[Problem]]:
    """The subnet that the manifest gives, or None and all its problems.

    Docker itself notices an overlap with another Docker network only when the cluster starts, and
    never one with a route of the host.
    """
    text, last = manifest.subnet, last_indexes(manifest)
    try:
        subnet = IPv4Network(text)
    except ValueError as error:
        cure = 'write a CIDR like "172.28.0.0/24", or "auto"'
        return None, [Problem("subnet", f'"{text}"', str(error), cure)]
    problems = []
    if not any(subnet.subnet_of(block) for block in addresses.PRIVATE):
        rule = "not private (RFC 1918): 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16"
        cure = 'choose one inside these, e.g. "172.28.0.0/24", or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, cure))
    widest, narrowest = addresses.WIDEST, addresses.NARROWEST
    if not widest <= subnet.prefixlen <= narrowest:
        rule = f"the prefix must be /{widest} to /{narrowest}"
        problems.append(Problem("subnet", f'"{text}"', rule, "e.g. a /24"))
    elif not too_many(manifest) and not addresses.fits(subnet.prefixlen, last):
        needed = addresses.prefix_needed(last, smallest=narrowest)
        rule = "too small for its tasks' address blocks"
        cure = f'use a /{needed} or larger, or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, cure, READS))
    # A Docker network is in the facts twice: under its name, and then as its bridge's route.
    first = {network.subnet: network for network in reversed(facts.networks)}
    for network in reversed(first.values()):
        if network.cluster != manifest.name and network.subnet.overlaps(subnet):
            rule = f"overlaps {network.subnet} of {network.owner}"
            cure = 'choose another, or "auto"'
            problems.append(Problem("subnet", f'"{text}"', rule, cure, ("name",)))
    usable = not problems and not too_many(manifest)
    return (subnet if usable else None), problems
