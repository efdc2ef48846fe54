"""Facts from the engine and from the routing table, combined into one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from cluster_kit.facts import ArpTable, Gpu
from cluster_kit.host import Host
from cluster_kit.machine import arp_table, host_facts
from cluster_kit.platforms.docker.docker_connection import engine_kind
from cluster_kit.platforms.engine import Engine
from tests.fakes.hosts import Machine, fake_host
from tests.make import gpus, network


class FakeEngine:
    def info(self) -> dict[str, Any]:
        return {"NCPU": 12, "MemTotal": 34}

    def networks(self) -> list[tuple[str, str, str]]:
        return [("bridge", "", "172.17.0.0/16"), ("mine_cluster", "mine", "172.28.0.0/24")]

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        return f"{driver} refuses {device_id}"

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        return (("0", "other"),)

    def gpus_reserved(self) -> tuple[tuple[str, str], ...]:
        return (("1", "somebody"),)


ENGINE = cast(Engine, FakeEngine())
ROUTES = [
    network("172.28.0.0/24", "a route of this host (br-1)"),
    network("192.168.1.0/24", "a route of this host (eth0)"),
]


def machine_with(inventory: Sequence[Gpu] = ()) -> Host:
    made = Machine(fake_host())
    made.has(inventory, ROUTES)
    return made.host


def test_a_running_cluster_owns_its_network_and_the_route_of_its_bridge() -> None:
    found = {(net.owner, net.cluster) for net in host_facts.gather(machine_with(), ENGINE).networks}
    assert found == {
        ("Docker network bridge", ""),
        ("Docker network mine_cluster", "mine"),
        ("a route of this host (br-1)", "mine"),
        ("a route of this host (eth0)", ""),
    }


def test_cpus_and_memory_are_those_of_the_engine() -> None:
    facts = host_facts.gather(machine_with(), ENGINE)
    assert (facts.cpus, facts.memory, facts.gpus, facts.gpu_refusal) == (12, 34, (), "")


def test_the_engine_is_asked_whether_it_supports_gpus() -> None:
    inventory: tuple[Gpu, ...] = gpus(2)
    facts = host_facts.gather(machine_with(inventory), ENGINE)
    assert (facts.gpus, facts.gpu_refusal) == (inventory, "nvidia refuses 0")
    assert facts.gpus_taken == (("0", "other"),)
    assert facts.gpus_reserved == (("1", "somebody"),)


class CdiEngine(FakeEngine):
    def info(self) -> dict[str, Any]:
        return {**super().info(), "CDISpecDirs": ["/etc/cdi"]}

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        return "" if (driver, device_id) == ("cdi", "nvidia.com/gpu=0") else "no such driver"


def test_an_engine_with_only_cdi_uses_cdi() -> None:
    facts = host_facts.gather(machine_with(gpus(1)), cast(Engine, CdiEngine()))
    assert (facts.gpu_driver, facts.gpu_refusal) == ("cdi", "")


def test_without_an_engine_the_operating_systems_facts_are_used() -> None:
    facts = host_facts.gather(machine_with(), None)
    assert facts.cpus >= 1
    assert facts.memory > 2**20
    assert facts.networks == tuple(ROUTES)


def test_the_arp_table_is_read_and_widened(tmp_path: Path) -> None:
    settings, statistics = tmp_path / "default", tmp_path / "arp_cache"
    assert arp_table.read(settings, statistics) is None, "as in a container"
    settings.mkdir()
    (settings / "gc_thresh3").write_text("1024\n")
    statistics.write_text("entries  allocs\n0000002a 00000100\n0000002a 00000200\n")
    assert arp_table.read(settings, statistics) == ArpTable(entries=42, limit=1024)
    arp_table.widen(4096, settings)
    written = {file.name: file.read_text() for file in settings.iterdir()}
    assert written == {"gc_thresh3": "4096", "gc_thresh2": "2048"}


@pytest.mark.parametrize("elsewhere", [{"OperatingSystem": "Docker Desktop"}, {}])
def test_only_the_kernel_of_the_containers_has_their_arp_table(elsewhere: dict[str, Any]) -> None:
    table = ArpTable(1, 1024)
    machine = replace(machine_with(), arp_table=lambda: table)
    kind = engine_kind(elsewhere, "")
    assert host_facts.arp_table(machine, kind) == (None if elsewhere else table)
