"""The lines of doctor about the image and about the folders that nodes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.platforms.platform import Check
from cluster_kit.platforms.swarm.swarm_checks import FOLDER, probe_nodes
from cluster_kit.platforms.swarm.swarm_engine import NodeSaid, Probe
from tests.make import cluster
from tests.unit.run.doctor.test_swarm_checks import node

CLUSTER = cluster(engine="swarm")
REFUSED = 'invalid mount config for type "bind": bind source path does not exist: '


class Nodes:
    """A swarm of a and b; a test sets the behaviour of b, and a is always correct."""

    def __init__(self, on_b: Callable[[Path, Probe], NodeSaid | None]) -> None:
        self.on_b = on_b
        self.probes: list[Probe] = []

    def node_records(self) -> list[Any]:
        return [node("a"), node("b"), node("gone", "down")]

    def run_on_each_node(self, probe: Probe, within_s: float) -> Sequence[NodeSaid]:
        self.probes.append(probe)
        folder = Path(next(m.source for m in probe.mounts if m.target == FOLDER))
        answers = [write(folder, "a"), self.on_b(folder, probe)]
        return [one for one in answers if one is not None]


def write(folder: Path, name: str) -> NodeSaid:
    (folder / f"id-{name}").write_text((folder / "token").read_text())
    return NodeSaid(f"id-{name}", 0)


def told(tmp_path: Path, on_b: Callable[[Path, Probe], NodeSaid | None]) -> dict[str, Check]:
    checks = probe_nodes(Nodes(on_b), CLUSTER, tmp_path / "runs" / "demo")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == [], "nothing is left there"
    return {check.name: check for check in checks}


def test_nodes_that_have_everything(tmp_path: Path) -> None:
    found = told(tmp_path, lambda folder, _probe: write(folder, "b"))
    assert [check.state for check in found.values()] == ["ok", "ok"]
    assert str(tmp_path) in found["shared storage"].found


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (NodeSaid("id-b", None, REFUSED + "/mine/data"), "b does not have /mine/data"),
        (NodeSaid("id-b", 1, "task: non-zero exit (1)"), "b may not write there (exit code 1)"),
        (NodeSaid("id-b", 0), "b has a folder of its own there"),
        (NodeSaid("id-b", None, "no room"), "b no room"),
    ],
)
def test_a_node_without_the_folders_is_named(tmp_path: Path, message: NodeSaid, words: str) -> None:
    check = told(tmp_path, lambda _folder, _probe: message)["shared storage"]
    assert (check.state, words in check.found, "NFS" in check.hint) == ("fail", True, True)


def test_a_node_that_does_not_answer_is_asked_again_and_not_counted(tmp_path: Path) -> None:
    image, storage = told(tmp_path, lambda _folder, _probe: None).values()
    assert storage.state == "fail" and "b has not answered for 30 s" in storage.found
    assert image.state == "warn" and "on 1 of 2 nodes" in image.found
    assert image.hint == storage.hint and image.hint.startswith("ask again")


def test_the_folder_of_runs_is_named_and_not_the_probes_own(tmp_path: Path) -> None:
    def lacks(folder: Path, _probe: Probe) -> NodeSaid:
        return NodeSaid("id-b", None, REFUSED + str(folder))

    assert f"b does not have {tmp_path}" in told(tmp_path, lacks)["shared storage"].found


def test_a_node_without_the_image_is_named_with_the_command_to_copy_it(tmp_path: Path) -> None:
    found = told(tmp_path, lambda _f, _p: NodeSaid("id-b", None, "No such image: demo:1"))
    image = found["image on nodes"]
    assert image.state == "fail" and image.found == f"{CLUSTER.image} is not on b"
    assert f"cluster-kit image push {CLUSTER.name} --to ssh://b" in image.hint


def test_a_swarm_that_refuses_leaves_nothing(tmp_path: Path) -> None:
    def refuses(_folder: Path, _probe: Probe) -> NodeSaid:
        raise EngineError("the Docker engine refused: quota", "wait")

    check = told(tmp_path, refuses)["shared storage"]
    assert check.found.endswith("quota") and check.hint == "wait"


def test_the_manifests_mounts_are_checked_too(tmp_path: Path) -> None:
    nodes = Nodes(lambda folder, _probe: write(folder, "b"))
    probe_nodes(nodes, CLUSTER, tmp_path)  # type: ignore[arg-type]
    (probe,) = nodes.probes
    sources = {mount.source for mount in probe.mounts}
    assert sources >= {mount.source for mount in CLUSTER.all_mounts}
    assert (probe.image, probe.user) == (CLUSTER.image, CLUSTER.user)


def test_a_folder_that_cannot_be_written_here_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_named: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    nodes = Nodes(lambda _folder, _probe: None)
    (check,) = probe_nodes(nodes, CLUSTER, tmp_path)  # type: ignore[arg-type]
    assert check.state == "fail" and "Permission denied" in check.found
