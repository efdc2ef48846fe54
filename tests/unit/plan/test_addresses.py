"""Stable address blocks: an address depends on role and index only."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.plan import addresses
from cluster_kit.resolved import Cluster
from cluster_kit.roles import ROLES
from tests.make import cluster, host, network

counts = st.fixed_dictionaries({"worker": st.integers(1, 700), "ps": st.integers(1, 300)})
small = st.fixed_dictionaries({"worker": st.integers(1, 40), "ps": st.integers(1, 20)})
names = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


def ips(of: Cluster) -> dict[str, object]:
    return {task.name: task.ip for task in of.tasks}


@given(counts)
def test_no_two_tasks_share_an_address_and_none_has_a_reserved_one(count: dict[str, int]) -> None:
    made = cluster(evaluator=1, **count)
    used = [task.ip for task in made.tasks]
    assert len(set(used)) == len(used) == count["worker"] + count["ps"] + 2
    assert all(ip in made.subnet for ip in used)
    reserved = {made.gateway, made.subnet.network_address, made.subnet.broadcast_address}
    assert not reserved & set(used)


@given(small, st.integers(1, 30), st.integers(1, 30))
def test_more_workers_and_ps_move_no_other_task(
    count: dict[str, int], workers: int, parameter_servers: int
) -> None:
    before = ips(cluster(evaluator=1, **count))
    more = {"worker": count["worker"] + workers, "ps": count["ps"] + parameter_servers}
    after = ips(cluster(evaluator=1, **more))
    assert before.items() <= after.items()


def test_sidecars_have_addresses_that_no_task_can_have() -> None:
    most = {"image": "redis:7"}
    names = [f"s{number}" for number in range(8)]
    made = cluster(evaluator=1, ps=200, worker=500, sidecar=dict.fromkeys(names, most))
    beside = [one.ip for one in made.sidecars]
    assert [int(ip) - int(made.subnet.network_address) for ip in beside] == list(range(12, 20))
    assert not {task.ip for task in made.tasks} & set(beside)
    fewer = cluster(sidecar={"s0": most})
    assert fewer.sidecars[0].ip == cluster(sidecar={"s0": most, "s1": most}).sidecars[0].ip


def test_growth_beyond_a_slash_24_moves_no_other_task() -> None:
    before, after = cluster(worker=100), cluster(worker=500)
    assert (before.subnet.prefixlen, after.subnet.prefixlen) == (24, 22)
    assert ips(before).items() <= ips(after).items()


def test_without_evaluator_or_chief_the_others_keep_their_addresses() -> None:
    whole = ips(cluster(chief=1, evaluator=1, worker=2, ps=1))
    assert ips(cluster(chief=0, evaluator=0, worker=2, ps=0)).items() <= whole.items()


@given(names)
def test_the_same_name_gets_the_same_slot(name: str) -> None:
    assert cluster(name=name).subnet == cluster(name=name).subnet


def test_different_names_get_different_subnets() -> None:
    found = {cluster(name=f"cluster-{number}").subnet for number in range(20)}
    assert len(found) > 15


subnets = st.builds(
    lambda pool, prefix, place: _inside(pool, prefix, place),
    st.sampled_from(addresses.PRIVATE),
    st.integers(13, 28),
    st.integers(0, 2**24),
)


def _inside(pool: IPv4Network, prefix: int, place: int) -> IPv4Network:
    prefix = max(prefix, pool.prefixlen)
    size = 2 ** (32 - prefix)
    base = int(pool.network_address) + (place * size) % pool.num_addresses
    return IPv4Network((base, prefix))


@given(names, st.lists(subnets, max_size=40), st.integers(1, 400))
def test_a_chosen_subnet_overlaps_no_other_network(
    name: str, foreign: list[IPv4Network], workers: int
) -> None:
    facts = host(networks=tuple(network(str(subnet)) for subnet in foreign))
    picked = cluster(facts, name=name, worker=workers).subnet
    assert not any(picked.overlaps(subnet) for subnet in foreign)


@pytest.mark.parametrize("prefix", range(addresses.WIDEST, addresses.NARROWEST + 1))
def test_every_subnet_has_room_for_a_chief_an_evaluator_a_ps_and_two_workers(prefix: int) -> None:
    made = cluster(subnet=f"172.28.0.0/{prefix}", worker=2, ps=1, evaluator=1)
    assert len({task.ip for task in made.tasks}) == 5


@pytest.mark.parametrize("prefix", range(addresses.WIDEST, addresses.NARROWEST + 1))
def test_addresses_in_a_subnet_are_distinct_and_inside(prefix: int) -> None:
    size = 2 ** (32 - prefix)
    offsets = [
        addresses.offset(prefix, role, index) for role in ROLES for index in _fitting(prefix, role)
    ]
    assert len(offsets) == len(set(offsets))
    assert all(o is not None and addresses.GATEWAY_OFFSET < o < size - 1 for o in offsets)


def _fitting(prefix: int, role: str) -> Iterator[int]:
    limit = ROLES[role].most or 5000
    return (i for i in range(limit) if addresses.fits(prefix, [(role, i)]))


def test_whatever_fits_a_subnet_fits_the_next_larger_one() -> None:
    last = [("worker", 400), ("ps", 100)]
    fitting = [addresses.fits(prefix, last) for prefix in range(29, 15, -1)]
    assert all(not smaller or larger for smaller, larger in pairwise(fitting))
    assert fitting[-1]


@pytest.mark.parametrize(
    ("keys", "entries"),
    [
        ({"chief": 0, "worker": 3, "ps": 2, "style": "all-tasks"}, 5 * 4),
        ({"chief": 0, "worker": 3, "ps": 0, "style": "all-tasks", "evaluator": 1}, 3 * 2 + 2),
        ({"chief": 1, "worker": 4, "ps": 2, "style": "coordinator"}, 7 * 6 - 4 * 3),
    ],
)
def test_each_end_of_a_connection_takes_an_entry_of_the_arp_table(
    keys: dict[str, Any], entries: int
) -> None:
    assert addresses.arp_entries(cluster(**keys)) == entries
