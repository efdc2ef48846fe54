"""The IP address of every task: stable blocks per role inside a private subnet.

An address depends on role and index only, not on the counts: adding a worker changes no address.
Offsets from the subnet's base, in a /24 or larger:

    .1 gateway        .2 data dispatcher  .3-.9 data workers  .10 chief  .11 evaluator
    .12-.19 sidecars  .20-.99 ps          .100-.254 workers

Further tasks get addresses in the following /24s: workers in the 1st, 3rd, 5th, …, ps in the 2nd,
6th, 10th, …, data workers in the 4th, 8th, 12th, …. Smaller subnets have smaller blocks, and none
for data workers. The blocks are in the table of `roles`. `auto` gives every cluster a /20 slot that
its name selects, and uses as much of the slot's start as the counts need: a cluster keeps its
addresses when it grows and when others start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Address, IPv4Network

from cluster_kit.facts import ArpTable, Network
from cluster_kit.resolved import Cluster
from cluster_kit.roles import PS, ROLES

PRIVATE = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
POOLS = tuple(IPv4Network(cidr) for cidr in ("172.28.0.0/14", "10.200.0.0/13", "192.168.0.0/16"))
SLOT_PREFIX = 20
WIDEST, WHOLE, NARROWEST = 16, 24, 29
"""Prefix lengths of the largest subnet, the smallest with the blocks above, and the smallest."""
GATEWAY_OFFSET = 1
SIDECARS = range(12, 20)
"""Offsets of the sidecars; subnets smaller than WHOLE have no addresses for sidecars."""


def offset(prefix: int, role: str, index: int) -> int | None:
    """Offset of a task from the base of a subnet with this prefix length, 16 to 29.

    Returns None if the role's block is full.
    """
    block = ROLES[role].block
    first = block.wide if prefix <= WHOLE else block.narrow(2 ** (32 - prefix))
    if index < len(first):
        return first[index]
    if prefix > WHOLE or block.grows is None:
        return None
    turn, place = divmod(index - len(first), 256)
    first_of_all, step = block.grows
    return (first_of_all + step * turn) * 256 + place


def of(subnet: IPv4Network, role: str, index: int) -> IPv4Address:
    """The address of a task without a pinned one; the subnet must have an address for it."""
    return subnet.network_address + (offset(subnet.prefixlen, role, index) or 0)


def fits(prefix: int, last: Iterable[tuple[str, int]]) -> bool:
    """Whether a subnet of this prefix length has an address for each (role, highest index)."""
    offsets = [offset(prefix, role, index) for role, index in last]
    top = 2 ** (32 - prefix) - 1
    return all(place is not None and place < top for place in offsets)


def prefix_needed(last: Iterable[tuple[str, int]], smallest: int = WHOLE) -> int | None:
    """The longest prefix (smallest subnet) with addresses for all; None if a /16 is too small.

    Args:
        last: (role, highest index) of each role that has a task.
        smallest: prefix length of the smallest subnet allowed.
    """
    indexes = tuple(last)
    return next((p for p in range(smallest, WIDEST - 1, -1) if fits(p, indexes)), None)


def pick_subnet(name: str, prefix: int, networks: Iterable[Network]) -> IPv4Network | None:
    """A free subnet for the cluster `name`; None if every slot of every pool is taken.

    It is the same one each time if the slot that the name selects is free.
    """
    taken = [network.subnet for network in networks if network.cluster != name]
    slot_prefix = min(prefix, SLOT_PREFIX)
    slots = _slots(slot_prefix)
    start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    for step in range(len(slots)):
        slot = IPv4Network((slots[(start + step) % len(slots)], slot_prefix))
        if not any(slot.overlaps(other) for other in taken):
            return IPv4Network((slot.network_address, prefix))
    return None


@cache
def _slots(prefix: int) -> tuple[int, ...]:
    """The base addresses, as numbers, of all subnets of this prefix length in the pools."""
    return tuple(
        base
        for pool in POOLS
        if pool.prefixlen <= prefix
        for base in range(
            int(pool.network_address), int(pool.broadcast_address), 2 ** (32 - prefix)
        )
    )


def of_sidecar(subnet: IPv4Network, number: int) -> IPv4Address:
    """The address of a sidecar, by its place in the manifest; the subnet is a /24 or larger."""
    return subnet.network_address + SIDECARS[number]


def gateway(subnet: IPv4Network) -> IPv4Address:
    """The gateway's address: the first one, as Docker chooses by default."""
    return subnet.network_address + GATEWAY_OFFSET


def arp_entries(cluster: Cluster) -> int:
    """The number of entries that a cluster's tasks may have together in the kernel's ARP table.

    Each end of a connection has one for the other end. In graph mode and in an all-reduce each task
    connects to every other one; a coordinator and the ps connect to every task.
    """
    training = [task for task in cluster.tasks if ROLES[task.role].trains]
    pairs = len(training) * (len(training) - 1) // 2
    if cluster.style == "coordinator":
        servers = sum(task is cluster.leader or task.role == PS.name for task in training)
        others = len(training) - servers
        pairs -= others * (others - 1) // 2
    return 2 * (pairs + len(cluster.tasks) - len(training))


def arp_limit(cluster: Cluster, table: ArpTable) -> int | None:
    """The limit with which the table holds the addresses of all tasks, too; None if it does."""
    needed = table.entries + arp_entries(cluster)
    return None if needed <= table.limit else 2 ** (2 * needed).bit_length()
