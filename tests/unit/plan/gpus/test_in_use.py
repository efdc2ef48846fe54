"""GPUs that others use: `auto` skips them, a list uses them, and both report it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_kit.advice.of_program import gpus_in_use
from cluster_kit.facts import HostFacts
from cluster_kit.plan.gpus import in_use
from tests.make import cluster, gpus, host, manifest, problems
from tests.unit.inventories import gpu

BUSY = "process 7 (python3), 10.2 GiB"


def used(count: int = 4, *indexes: int, **facts: object) -> HostFacts:
    """Returns a host on some of whose GPUs a process computes."""
    there = [replace(g, users=(BUSY,)) if g.index in indexes else g for g in gpus(count)]
    return host(gpus=tuple(there), **facts)


def notes(facts: HostFacts, **keys: object) -> list[str]:
    return [str(hint) for hint in gpus_in_use(manifest(**keys), cluster(facts, **keys), facts)]


@pytest.mark.parametrize("asked", ["auto", "require"])
def test_free_gpus_are_those_without_users(asked: str) -> None:
    facts = used(4, 0, 2)
    assert [task.gpus for task in cluster(facts, gpus=asked).of("worker")] == [("1",), ("3",)]
    assert [note.splitlines()[0] for note in notes(facts, gpus=asked)] == [
        "gpus: GPU 0 is skipped", "gpus: GPU 2 is skipped",
    ]  # fmt: skip
    assert BUSY in notes(facts, gpus=asked)[0]


def test_a_container_with_a_gpu_by_index_or_uuid_uses_it() -> None:
    facts = host(gpus=gpus(3), gpus_reserved=(("0", "jupyter"), (gpus(3)[1].uuid, "other")))
    assert [task.gpus for task in cluster(facts, worker=1, gpus="auto").of("worker")] == [("2",)]
    assert list(in_use(facts).values()) == ["container jupyter", "container other"]


def test_a_container_with_all_gpus_does_not_count_as_a_user() -> None:
    facts = host(gpus=gpus(2), gpus_reserved=(("all", "monitoring"),))
    assert in_use(facts) == {}


def test_too_few_free_gpus_are_reported_with_the_users_of_the_others() -> None:
    (problem,) = problems(used(2, 1), worker=2, gpus="auto")
    assert f"there are 1 free; 1 is used by {BUSY}" in problem.rule
    (problem,) = problems(used(1, 0), worker=1, gpus="require")
    assert f"0 is used by {BUSY}" in problem.rule
    assert "`share_gpus = true`" in problem.hint_text()


def test_unused_gpus_are_shared_first() -> None:
    facts = used(2, 0)
    made = cluster(facts, worker=2, gpus="auto", share_gpus=True)
    assert [task.gpus for task in made.of("worker")] == [("1",), ("0",)]
    (note,) = notes(facts, worker=2, gpus="auto", share_gpus=True)
    assert "GPU 0 goes to worker-1, though it is in use" in note


def test_a_list_is_used_as_written_with_a_note() -> None:
    facts = used(2, 1)
    assert [t.gpus for t in cluster(facts, worker=1, gpus=["1"]).of("worker")] == [("1",)]
    (note,) = notes(facts, worker=1, gpus=["1"])
    assert "GPU 1 goes to worker-0, though it is in use" in note
    assert notes(facts, worker=1, gpus=["0"]) == []
    assert notes(facts, gpus="none") == []


def test_gpus_of_the_kits_clusters_do_not_count_as_used_by_others() -> None:
    facts = used(2, 0, gpus_taken=(("0", "demo"),))
    assert in_use(facts) == {}
    assert [t.gpus for t in cluster(facts, worker=2, gpus="auto").of("worker")] == [("0",), ("1",)]


def test_a_mig_slice_is_used_separately() -> None:
    whole = gpu(0, 1, 2)
    parts = (whole.slices[0], replace(whole.slices[1], users=(BUSY,)))
    facts = host(gpus=(replace(whole, slices=parts),))
    assert [device.short for device in in_use(facts)] == ["0:2"]
