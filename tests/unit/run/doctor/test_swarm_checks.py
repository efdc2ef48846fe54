"""The lines of doctor about a swarm's nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from cluster_kit.platforms.swarm.swarm_checks import (
    check_constraints,
    check_cpus,
    check_gpus,
    check_managers,
    check_mtu,
    check_nodes,
    fulfils,
    mtu_at,
)
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.make import cluster


def node(name: str, state: str = "ready", availability: str = "active", **tags: str) -> Any:
    return {
        "ID": f"id-{name}",
        "Spec": {"Role": "worker", "Availability": availability, "Labels": tags},
        "Description": {
            "Hostname": name,
            "Platform": {"OS": "linux", "Architecture": "x86_64"},
        },
        "Status": {"State": state},
    }


def test_nodes_that_get_no_tasks_are_named() -> None:
    (fine,) = check_nodes([node("a"), node("b")])
    assert (fine.state, "2 nodes (0 managers): a, b" in fine.found) == ("ok", True)
    (warned,) = check_nodes([node("a"), node("b", "down"), node("c", availability="drain")])
    assert (warned.state, "b (down), c (drain)" in warned.found) == ("warn", True)
    (failed,) = check_nodes([node("b", "down")])
    assert failed.state == "fail"


def test_a_condition_that_no_node_fulfils_is_a_failure() -> None:
    made = cluster(engine="swarm", role={"ps": {"nodes": "disk==ssd"}})
    assert list(check_constraints([node("a"), node("b", disk="ssd")], made)) == []
    (failed,) = check_constraints([node("a"), node("b", "down", disk="ssd")], made)
    assert (failed.state, "ps-0" in failed.found) == ("fail", True)
    assert "label-add" in failed.hint
    assert list(check_constraints([node("a")], None)) == []


def test_more_cpus_than_any_possible_node_has_are_a_failure() -> None:
    one, two, unknown = node("a"), node("b", disk="ssd"), node("c", rack="9")
    for record, cpus in ((one, 4), (two, 2)):
        record["Description"]["Resources"] = {"NanoCPUs": cpus * 10**9}
    roles = {"ps": {"nodes": "disk==ssd", "cpus": 2}, "worker": {"cpus": 4}}
    assert list(check_cpus([one, two], cluster(engine="swarm", role=roles))) == []
    roles = {"ps": {"nodes": "disk==ssd", "cpus": 2.5}, "worker": {"cpus": 4.5}}
    made = cluster(engine="swarm", role=roles, worker=1, ps=1)
    ps, worker = sorted(check_cpus([one, two], made), key=lambda check: check.found)
    assert ps.found == "ps-0 is given 2.5 CPUs, its nodes have fewer: b 2"
    assert worker.found == "worker-0 is given 4.5 CPUs, its nodes have fewer: a 4, b 2"
    assert worker.hint == "give it `cpus = 4` or less, or other `nodes`"
    (ps,) = check_cpus([one, two, unknown], made)
    assert list(check_cpus([one], None)) == list(check_cpus([], made)) == []


def test_constraints_are_parsed_as_a_swarm_does() -> None:
    one = node("a", rack="7")
    assert fulfils(one, ("node.labels.rack == 7", "node.hostname != b"))
    assert fulfils(one, ("node.labels.disk != ssd", "engine.labels.unknown == 1"))
    assert not fulfils(one, ("node.labels.disk == ssd",))
    assert not fulfils(one, ("node.role == manager",))


def manager(name: str, reachability: str = "reachable") -> Any:
    return {
        **node(name),
        "Spec": {"Role": "manager", "Availability": "active", "Labels": {}},
        "ManagerStatus": {"Reachability": reachability},
    }


def test_more_than_one_manager_is_a_warning() -> None:
    assert list(check_managers([manager("a"), node("b")])) == []
    (warned,) = check_managers([manager("a"), manager("b", "unreachable")])
    assert (warned.state, "2 managers: a, b; not reachable: b" in warned.found) == ("warn", True)
    assert "demote" in warned.hint


def announcing(name: str, *gpus: str, count: int = 0, **more: Any) -> Any:
    one = node(name, **more)
    named = [{"NamedResourceSpec": {"Kind": "GPU", "Value": gpu}} for gpu in gpus]
    other = [{"NamedResourceSpec": {"Kind": "FPGA", "Value": "f"}}]
    counted = [{"DiscreteResourceSpec": {"Kind": "GPU", "Value": count}}] if count else []
    one["Description"]["Resources"] = {"GenericResources": [*named, *other, *counted]}
    return one


def test_gpus_are_counted_node_by_node() -> None:
    made = cluster(engine="swarm", gpus="require", gpus_per_worker=2)
    (fine,) = check_gpus([announcing("a", "g1", "g2"), announcing("b", count=2), node("c")], made)
    assert (fine.state, fine.found) == ("ok", "the nodes announce 4 GPUs: a 2, b 2")
    (split,) = check_gpus([announcing("a", "g1", "g2", "g3"), announcing("b", "g4")], made)
    assert split.state == "fail" and "not enough for worker-1 (2 each)" in split.found
    (down,) = check_gpus([announcing("a", count=4, state="down")], made)
    assert down.found.startswith("the nodes announce 0 GPUs; not enough for worker-0, worker-1")
    assert "node-generic-resources" in down.hint
    assert list(check_gpus([node("a")], cluster(engine="swarm"))) == []
    labelled = cluster(engine="swarm", gpus="require", role={"worker": {"nodes": "gpu==yes"}})
    assert [c.state for c in check_gpus([announcing("a", count=8)], labelled)] == ["fail"]
    assert [c.state for c in check_gpus([announcing("a", count=8, gpu="yes")], labelled)] == ["ok"]


def test_an_overlay_with_larger_packets_than_the_nodes_network_is_a_failure() -> None:
    made = cluster(engine="swarm")
    assert list(check_mtu(made, 1500)) == list(check_mtu(made, None)) == []
    (failed,) = check_mtu(made, 1460)
    assert (failed.state, "mtu = 1460" in failed.hint) == ("fail", True)
    assert list(check_mtu(replace(made, mtu=1400), 1460)) == []
    assert [check.state for check in check_mtu(None, 1400)] == ["fail"]


def test_the_mtu_is_that_of_the_interface_with_the_nodes_address(machine: Machine) -> None:
    links = [{"mtu": 9000, "addr_info": [{"local": "10.0.0.1"}]}, {"mtu": 1460, "addr_info": []}]
    answers = [json.dumps(links)]
    machine.starts(run=lambda _command: Completed((), 0 if answers[0] else 127, answers[0], ""))
    assert (mtu_at(machine.host, "10.0.0.1"), mtu_at(machine.host, "10.0.0.2")) == (9000, None)
    answers[0] = ""
    assert mtu_at(machine.host, "10.0.0.1") is None
