"""`doctor` on a real swarm of three nodes: a container on each node finds what the node lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.image.kit_image import image_tag
from tests.e2e import nodes
from tests.e2e.nodes import Swarm
from tests.e2e.on_swarm import wait_for
from tests.kit import Kit, new_kit

pytestmark = [
    pytest.mark.more,
    pytest.mark.xdist_group("swarm-doctor"),
    pytest.mark.skipif(bool(nodes.why_not()), reason=nodes.why_not() or "-"),
]
TAG = image_tag("cpu")


@pytest.fixture(scope="module")
def three() -> Iterator[Swarm]:
    with nodes.swarm({TAG: TAG}) as made:
        yield made


@pytest.fixture
def kit(three: Swarm, tmp_path: Path) -> Kit:
    return new_kit(tmp_path / "ws", "doctor", DOCKER_HOST=three.manager.host)


def checks(kit: Kit, *more: str) -> dict[str, dict[str, str]]:
    told = kit.run("doctor", "quickstart", "--engine", "swarm", "--json", *more)
    found = {check["name"]: check for check in json.loads(told.stdout)}
    assert {"image on nodes", "shared storage"} <= found.keys(), found
    return found


def test_nodes_that_have_everything(three: Swarm, kit: Kit) -> None:
    found = checks(kit)
    assert found["swarm"]["found"].startswith("3 nodes (1 manager): ")
    assert {found[name]["state"] for name in ("image on nodes", "shared storage")} == {"ok"}, found
    assert three.manager.said("service", "ls", "-q") == ""
    assert not list(kit.root.glob("**/.cluster-kit-probe-*"))
    wait_for(lambda: all(node.said("ps", "-aq") == "" for node in three.nodes))


def test_a_node_without_the_image_and_one_with_a_different_folder(three: Swarm, kit: Kit) -> None:
    _, without_image, without_folder = three.nodes
    without_image.said("tag", TAG, "kept:1")
    without_image.said("rmi", TAG)
    without_folder.inside("mount", "-t", "tmpfs", "none", str(kit.root))
    try:
        found = checks(kit)
        up = kit.run("up", "quickstart", "--engine", "swarm", "--name", kit.name)
    finally:
        without_image.said("tag", "kept:1", TAG)
        without_folder.inside("umount", str(kit.root))
    image, storage = found["image on nodes"], found["shared storage"]
    assert image["state"] == "fail" and "is not on node-1" in image["found"]
    assert "image push" in image["cure"]
    assert storage["state"] == "fail" and f"node-2 does not have {kit.root}" in storage["found"]
    # The swarm chooses on which of the two a task was tried last.
    why = {"(node node-1)": "image push", "(node node-2)": "does not exist"}
    told = [reason for node, reason in why.items() if node in up.stderr]
    assert up.returncode == 4 and told and all(reason in up.stderr for reason in told), up.stderr
    assert three.manager.said("service", "ls", "-q") == ""


def test_a_drained_node_and_a_label_that_no_node_has(three: Swarm, kit: Kit) -> None:
    manager = three.manager
    manager.said("node", "update", "--availability", "drain", "node-2")
    try:
        manifest = kit.root / "compose" / "quickstart.toml"
        manifest.write_text(manifest.read_text() + '\n[role.ps]\nnodes = "disk==ssd"\n')
        found = checks(kit)
        assert "without tasks: node-2 (drain)" in found["swarm"]["found"]
        assert found["nodes"]["state"] == "fail" and "ps-0" in found["nodes"]["found"]
        refused = kit.run("up", "quickstart", "--engine", "swarm")
        assert refused.returncode == 3 and "disk" in refused.stderr
        manager.said("node", "update", "--label-add", "disk=ssd", "node-1")
        assert "nodes" not in checks(kit)
    finally:
        manager.said("node", "update", "--availability", "active", "node-2")
