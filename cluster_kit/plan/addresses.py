"""Which address every task has: stable blocks per role inside a private subnet.

An address depends on role and index only, never on the counts, so adding a worker moves nobody.
Offsets from the subnet's base, in a /24 or larger:

    .1 gateway   .10 chief   .11 evaluator   .20-.99 ps   .100-.254 workers

and beyond these, whole further /24s in turn: odd ones for workers, even ones for ps. Smaller
subnets have smaller blocks. `auto` gives every cluster a /20 slot found from its name, and takes
from the slot's start as much as the counts need, so that neither growth nor a neighbour moves it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster_kit.cluster import Role
from cluster_kit.facts import Network

PRIVATE = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
POOLS = tuple(IPv4Network(cidr) for cidr in ("172.28.0.0/14", "10.200.0.0/13", "192.168.0.0/16"))
SLOT_PREFIX = 20
WIDEST, NARROWEST = 16, 29
GATEWAY_OFFSET = 1


@dataclass(frozen=True)
class Layout:
    """First offset and size of each role's first block."""

    chief: int
    evaluator: int
    ps: range
    worker: range
    extends: bool

    def offset(self, role: Role, index: int) -> int | None:
        """Offset of a task from the subnet's base, None where its block is full."""
        if role == "chief":
            return self.chief
        if role == "evaluator":
            return self.evaluator
        block = self.ps if role == "ps" else self.worker
        if index < len(block):
            return block[index]
        if not self.extends:
            return None
        turn, place = divmod(index - len(block), 256)
        return (2 * turn + (2 if role == "ps" else 1)) * 256 + place


def layout(prefix: int) -> Layout:
    """The blocks of a subnet with this prefix length, 16 to 29."""
    if prefix <= 24:
        return Layout(10, 11, range(20, 100), range(100, 255), extends=True)
    size = 2 ** (32 - prefix)
    middle = max(size // 2, 5)
    return Layout(2, 3, range(4, middle), range(middle, size - 1), extends=False)


def of(subnet: IPv4Network, role: Role, index: int) -> IPv4Address:
    """A task's own address, where none is pinned; the subnet has a place for it."""
    return subnet.network_address + (layout(subnet.prefixlen).offset(role, index) or 0)


def fits(prefix: int, last: Iterable[tuple[Role, int]]) -> bool:
    """Whether a subnet of this prefix has an address for each (role, highest index)."""
    blocks = layout(prefix)
    offsets = [blocks.offset(role, index) for role, index in last]
    top = 2 ** (32 - prefix) - 1
    return all(offset is not None and offset < top for offset in offsets)


def prefix_needed(last: Iterable[tuple[Role, int]], smallest: int = 24) -> int | None:
    """The longest prefix (smallest subnet) that holds them all, None beyond a /16."""
    wanted = tuple(last)
    return next((p for p in range(smallest, WIDEST - 1, -1) if fits(p, wanted)), None)


def pick_subnet(name: str, prefix: int, networks: Iterable[Network]) -> IPv4Network | None:
    """A free subnet for the cluster `name`, always the same one while its slot is free.

    Returns None when every pool is taken.
    """
    foreign = [network.subnet for network in networks if network.cluster != name]
    slots = list(_slots(min(prefix, SLOT_PREFIX)))
    start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    for step in range(len(slots)):
        slot = slots[(start + step) % len(slots)]
        if not any(slot.overlaps(other) for other in foreign):
            return IPv4Network((slot.network_address, prefix))
    return None


def _slots(prefix: int) -> Iterator[IPv4Network]:
    for pool in POOLS:
        if pool.prefixlen <= prefix:
            yield from pool.subnets(new_prefix=prefix)


def gateway(subnet: IPv4Network) -> IPv4Address:
    """Docker's default, stated all the same: the first address."""
    return subnet.network_address + GATEWAY_OFFSET
