"""Properties for every host, whatever its number and kind of GPUs, divided by MIG or not."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from cluster_kit.errors import ManifestError
from cluster_kit.facts import Gpu, HostFacts
from cluster_kit.plan.gpus import Device, devices
from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.resolved import Cluster
from tests.make import cluster, host, parse_compose
from tests.unit.inventories import inventories

MIB = 2**20
counts = st.integers(1, 8)


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, Any]:
    wish: dict[str, Any] = {
        "worker": draw(counts),
        "ps": draw(st.integers(1, 3)),
        "evaluator": draw(st.integers(0, 1)),
        "gpus": draw(st.sampled_from(["none", "auto"])),
        "share_gpus": draw(st.booleans()),
        "gpus_per_worker": draw(st.none() | st.integers(1, 4)),
    }
    if draw(st.booleans()):
        wish["role"] = {"chief": {"gpus": ["0"]}}
    return wish


@st.composite
def planned(draw: st.DrawFn, **fixed: Any) -> tuple[Cluster, HostFacts]:
    """Returns a cluster with any kind of request, on a host that can fulfil it."""
    facts = host(
        gpus=draw(inventories()),
        gpu_driver=draw(st.sampled_from(["nvidia", "cdi"])),
        gpus_taken=draw(st.sampled_from([(), (("1", "other"),)])),
    )
    try:
        return cluster(facts, **{**draw(wishes()), **fixed}), facts
    except ManifestError:
        assume(False)
        raise


def used(made: Cluster) -> Counter[str]:
    return Counter(gpu.name for task in made.tasks for gpu in task.gpus_promised)


def shown(device: Device) -> str:
    return f"GPU {device.described}"


@given(planned(share_gpus=False))
def test_no_device_is_assigned_twice_unless_it_is_shared(found: tuple[Cluster, HostFacts]) -> None:
    made, _ = found
    assert all(count == 1 for count in used(made).values())


@given(planned())
def test_no_task_has_a_device_twice(found: tuple[Cluster, HostFacts]) -> None:
    made, _ = found
    assert all(len(set(task.gpus)) == len(task.gpus) for task in made.tasks)


@given(planned())
def test_ps_and_tasks_that_did_not_ask_have_no_gpu(found: tuple[Cluster, HostFacts]) -> None:
    made, _ = found
    assert not any(task.gpus for role in ("ps", "evaluator") for task in made.of(role))  # type: ignore[arg-type]


@given(planned())
def test_all_workers_have_the_same_number(found: tuple[Cluster, HostFacts]) -> None:
    made, _ = found
    assert len({len(task.gpus) for task in made.of("worker")}) == 1


@given(planned())
def test_only_existing_devices_are_assigned(found: tuple[Cluster, HostFacts]) -> None:
    made, facts = found
    assert set(used(made)) <= {shown(device) for device in devices(facts.gpus)}


@given(planned(share_gpus=False))
def test_devices_of_other_clusters_are_not_assigned(found: tuple[Cluster, HostFacts]) -> None:
    made, facts = found
    there = devices(facts.gpus)
    held = {shown(d) for d in there for taken, _ in facts.gpus_taken if d.known_as(taken)}
    assert not held & set(used(made))


@given(planned(share_gpus=True))
def test_memory_limits_leave_headroom_on_every_shared_device(
    found: tuple[Cluster, HostFacts],
) -> None:
    made, facts = found
    for device in devices(facts.gpus):
        limits = [
            t.gpu_memory_mib
            for t in made.tasks
            if shown(device) in [g.name for g in t.gpus_promised]
        ]
        assert all(limits)
        assert sum(limit * MIB for limit in limits if limit) <= 0.9 * device.memory


@given(planned(share_gpus=True, gpus="auto", role={}))
def test_sharing_spreads_workers_evenly(found: tuple[Cluster, HostFacts]) -> None:
    made, facts = found
    loads = used(made)
    each = [loads[shown(device)] for device in devices(facts.gpus)]
    assert not each or max(each) - min(each) <= 1


@given(planned())
def test_the_file_reserves_the_planned_devices(found: tuple[Cluster, HostFacts]) -> None:
    """Every reservation names its devices, by the engine's own driver, and has no count."""
    made, facts = found
    services = parse_compose(render(made))["services"]
    for task in made.tasks:
        resources = services[task.name].get("deploy", {}).get("resources", {})
        reserved = resources.get("reservations", {}).get("devices", [])
        assert reserved == (
            [
                {
                    "driver": facts.gpu_driver,
                    "device_ids": list(task.gpus),
                    "capabilities": ["gpu"],
                }
            ]
            if task.gpus
            else []
        )
        hidden = services[task.name]["environment"].get("CUDA_VISIBLE_DEVICES")
        assert hidden == (None if task.gpus else "-1")


@given(inventories(least=1), wishes())
def test_the_same_host_and_manifest_give_the_same_bytes(
    inventory: tuple[Gpu, ...], wish: dict[str, Any]
) -> None:
    def text() -> str | None:
        try:
            return render(cluster(host(gpus=inventory), **wish))
        except ManifestError as error:
            return str(error)

    assert text() == text()


@given(inventories(least=1), st.integers(1, 7), st.integers(1, 2), st.booleans())
def test_one_more_worker_changes_no_other_tasks_device(
    inventory: tuple[Gpu, ...], workers: int, each: int, share: bool
) -> None:
    def given_out(count: int) -> list[tuple[str, ...]]:
        keys = {"worker": count, "gpus_per_worker": each, "share_gpus": share}
        made = cluster(host(gpus=inventory), gpus="auto", **keys)
        return [task.gpus for task in made.of("worker")]

    try:
        more = given_out(workers + 1)
    except ManifestError:
        assume(False)
    assert more[:workers] == given_out(workers)


@given(inventories(), counts)
def test_auto_gives_gpus_to_all_workers_or_none_or_gives_a_reason(
    inventory: tuple[Gpu, ...], workers: int
) -> None:
    there = devices(inventory)
    try:
        made = cluster(host(gpus=inventory), worker=workers, gpus="auto")
    except ManifestError as error:
        assert 0 < len(there) < workers
        assert [problem.key_path for problem in error.problems] == ["gpus"]
        return
    assert len(used(made)) == (workers if there else 0)
