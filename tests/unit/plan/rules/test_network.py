"""A subnet is free: as given, or found by the cluster's name."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from cluster_kit.plan import addresses
from cluster_kit.plan.cluster_rules import check_port, find_subnet
from tests.make import cluster, host, manifest, network, problems


def test_a_clusters_own_network_is_no_obstacle() -> None:
    first = cluster(name="mine").subnet
    own = network(str(first), "Docker network cluster-kit-mine_cluster", "mine")
    route = network(str(first), "a route of this host (br-1)", "mine")
    assert cluster(host(networks=(own, route)), name="mine").subnet == first


def test_if_a_slot_is_in_use_the_cluster_gets_the_next_one() -> None:
    first = cluster(name="mine").subnet
    second = cluster(host(networks=(network(str(first)),)), name="mine").subnet
    assert not second.overlaps(first)


def test_no_free_subnet_is_reported_with_a_hint() -> None:
    taken = host(networks=tuple(network(str(pool)) for pool in addresses.POOLS))
    (problem,) = problems(taken)
    assert problem.key_path == "subnet"
    assert "use all of" in problem.rule
    assert "docker network prune" in problem.hint_text()


def test_a_given_subnet_is_used_unchanged() -> None:
    subnet, found = find_subnet(manifest(subnet="172.28.0.0/24"), host())
    assert (subnet, found) == (IPv4Network("172.28.0.0/24"), [])


def test_all_problems_of_a_given_subnet_are_reported_together() -> None:
    facts = host(networks=(network("8.8.8.0/24", "a route"), network("8.8.8.0/25", "a bridge")))
    subnet, found = find_subnet(manifest(subnet="8.8.8.0/30"), facts)
    assert subnet is None
    rules = [problem.rule for problem in found]
    assert [rule.split()[0] for rule in rules] == ["not", "the", "overlaps", "overlaps"]


@pytest.mark.parametrize(("port", "valid"), [(1023, 0), (1024, 1), (65534, 1), (65535, 0)])
def test_the_port_and_the_one_after_it_are_unprivileged(port: int, valid: int) -> None:
    assert (not list(check_port(manifest(port=port)))) is bool(valid)
