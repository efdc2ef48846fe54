"""Rules: valid, free addresses of tasks that pin one. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import addresses
from cluster_kit.plan.rules.counts import last_indexes
from cluster_kit.problem import Problem, Setting
from cluster_kit.roles import ROLES


def find_pins(
    manifest: Manifest, subnet: IPv4Network | None
) -> tuple[dict[str, IPv4Address], list[Problem]]:
    """The pinned addresses by task name, and the problems of those that are invalid or taken."""
    pins: dict[str, IPv4Address] = {}
    problems: list[Problem] = []
    for name, limits in manifest.task.items():
        if limits.ip is None:
            continue
        place, value = f"task.{name}.ip", f'"{limits.ip}"'
        try:
            pins[name] = IPv4Address(limits.ip)
        except ValueError:
            cure = 'write one like "172.28.0.5"'
            problems.append(Problem(place, value, "not a valid IPv4 address", cure))
            continue
        if manifest.subnet == "auto":
            rule = "a pinned address needs a fixed subnet"
            example = ("for example ", Setting("subnet", "172.28.0.0/24"))
            problems.append(Problem(place, value, rule, example, ("subnet",)))
    if subnet is not None:
        problems += _misplaced(manifest, subnet, pins)
    return pins, problems


def _misplaced(
    manifest: Manifest, subnet: IPv4Network, pins: dict[str, IPv4Address]
) -> list[Problem]:
    """The problems of pins outside the subnet, or on an address that is taken."""
    if not pins or manifest.subnet == "auto":
        return []
    problems = []
    cure = f"choose a free address of {subnet}"
    taken = {
        addresses.gateway(subnet): "the gateway",
        subnet.network_address: "the network's own address",
        subnet.broadcast_address: "the broadcast address",
    }
    for role, last in last_indexes(manifest):
        for index in range(last + 1):
            if f"{role}-{index}" not in pins:
                taken[addresses.of(subnet, role, index)] = f"{role}-{index}"
    for name, number in zip(manifest.sidecar, range(len(addresses.SIDECARS)), strict=False):
        taken[addresses.of_sidecar(subnet, number)] = f"the sidecar {name}"
    for name, address in pins.items():
        place, value = f"task.{name}.ip", f'"{address}"'
        if address not in subnet:
            rule = f"outside the subnet {subnet}"
            problems.append(Problem(place, value, rule, cure, ("subnet",)))
        elif address in taken:
            rule = f"taken by {taken[address]}"
            problems.append(
                Problem(place, value, rule, cure, (*ROLES, "subnet", "task", "sidecar"))
            )
        taken.setdefault(address, name)
    return problems
