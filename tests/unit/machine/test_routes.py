"""Routes of the host, which Docker itself never checks."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.machine.host_facts import routes_of
from tests.make import host, network, problems

HEAD = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"


def table(tmp_path: Path, *rows: tuple[str, str, str]) -> Path:
    file = tmp_path / "route"
    lines = [
        f"{device}\t{destination}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n"
        for device, destination, mask in rows
    ]
    file.write_text(HEAD + "".join(lines))
    return file


def test_destination_and_mask_are_little_endian(tmp_path: Path) -> None:
    file = table(tmp_path, ("eth0", "0001A8C0", "00FFFFFF"), ("br-1", "00101CAC", "00F0FFFF"))
    assert [(str(route.subnet), route.owner) for route in routes_of(file)] == [
        ("192.168.1.0/24", "a route of this host (eth0)"),
        ("172.28.16.0/20", "a route of this host (br-1)"),
    ]


def test_a_default_route_whole_or_in_halves_is_not_a_used_subnet(tmp_path: Path) -> None:
    whole = ("eth0", "00000000", "00000000")
    halves = (("tun0", "00000000", "00000080"), ("tun0", "00000080", "00000080"))
    assert routes_of(table(tmp_path, whole, *halves)) == []


def test_the_private_range_of_a_vpn_counts(tmp_path: Path) -> None:
    (route,) = routes_of(table(tmp_path, ("tun0", "0000000A", "000000FF")))
    assert str(route.subnet) == "10.0.0.0/8"


def test_without_a_table_there_are_no_routes(tmp_path: Path) -> None:
    assert routes_of(tmp_path / "absent") == []


def test_a_docker_network_and_the_route_of_its_bridge_count_once() -> None:
    bridge = network("172.17.0.0/16")
    route = network("172.17.0.0/16", "a route of this host (docker0)")
    (problem,) = problems(host(networks=(bridge, route)), subnet="172.17.5.0/24")
    assert problem.rule == "overlaps 172.17.0.0/16 of Docker network bridge"
