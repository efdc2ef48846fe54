"""What doctor says of a swarm's nodes."""

from __future__ import annotations

from typing import Any

from cluster_kit.run.swarm_checks import check_constraints, check_nodes, fulfils
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


def test_a_choice_that_no_node_fulfils_is_a_failure() -> None:
    made = cluster(engine="swarm", role={"ps": {"nodes": "disk==ssd"}})
    assert list(check_constraints([node("a"), node("b", disk="ssd")], made)) == []
    (failed,) = check_constraints([node("a"), node("b", "down", disk="ssd")], made)
    assert (failed.state, "ps-0" in failed.found) == ("fail", True)
    assert "label-add" in failed.cure
    assert list(check_constraints([node("a")], None)) == []


def test_constraints_are_read_as_a_swarm_reads_them() -> None:
    one = node("a", rack="7")
    assert fulfils(one, ("node.labels.rack == 7", "node.hostname != b"))
    assert fulfils(one, ("node.labels.disk != ssd", "engine.labels.unknown == 1"))
    assert not fulfils(one, ("node.labels.disk == ssd",))
    assert not fulfils(one, ("node.role == manager",))
