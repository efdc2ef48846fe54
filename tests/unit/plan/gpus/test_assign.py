"""Each worker gets its own GPUs, the same number each; other tasks get none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.make import cluster, gpus, host, manifest, problems

inventories = st.sampled_from((1, 2, 8))


@given(inventories, st.integers(1, 8), st.integers(1, 8))
def test_each_gpu_is_used_once_counts_are_equal_and_other_tasks_have_none(
    there: int, workers: int, each: int
) -> None:
    facts = host(gpus=gpus(there))
    keys = {"worker": workers, "gpus": "auto", "gpus_per_worker": each, "evaluator": 1}
    if workers * each > there:
        assert [problem.key_path for problem in problems(facts, **keys)] == ["gpus"]
        return
    made = cluster(facts, **keys)
    given_out = [device for task in made.of("worker") for device in task.gpus]
    assert len(set(given_out)) == len(given_out) == workers * each
    assert {len(task.gpus) for task in made.of("worker")} == {each}
    assert not any(task.gpus for task in made.tasks if task.role != "worker")


@pytest.mark.parametrize(
    ("ps", "style", "there", "with_gpu"),
    [
        (0, "all-tasks", 3, ["chief-0", "worker-0", "worker-1"]),
        (1, "all-tasks", 3, ["worker-0", "worker-1"]),
        (1, "coordinator", 3, ["worker-0", "worker-1"]),
    ],
)
def test_in_an_all_reduce_the_chief_has_as_many_as_a_worker(
    ps: int, style: str, there: int, with_gpu: list[str]
) -> None:
    made = cluster(
        host(gpus=gpus(there)), chief=1, worker=2, ps=ps, style=style, gpus="auto", evaluator=1
    )
    assert [task.name for task in made.tasks if task.gpus] == with_gpu


def test_too_few_for_an_all_reduce_with_a_chief() -> None:
    keys = {"chief": 1, "worker": 2, "ps": 0, "style": "all-tasks", "gpus": "auto"}
    (problem,) = problems(host(gpus=gpus(2)), **keys)
    assert problem.rule.startswith("chief-0 and 2 workers with 1 GPU(s) each need 3, there are 2")
    assert "`worker = 1`" in problem.hint_text()


@given(st.integers(1, 7), st.booleans())
def test_one_more_worker_changes_no_other_workers_gpu(workers: int, listed: bool) -> None:
    def devices(count: int) -> list[tuple[str, ...]]:
        wish = [str(index) for index in range(count)] if listed else "auto"
        made = cluster(host(gpus=gpus(8)), worker=count, gpus=wish)
        return [task.gpus for task in made.of("worker")]

    assert devices(workers + 1)[:workers] == devices(workers)


def test_a_list_is_divided_evenly_in_its_order() -> None:
    made = cluster(host(gpus=gpus(4)), worker=2, gpus=["3", "1", "0", "2"])
    assert [task.gpus for task in made.of("worker")] == [("3", "1"), ("0", "2")]


def test_uuids_and_whole_numbers_are_accepted_as_ids() -> None:
    inventory = gpus(2)
    made = cluster(host(gpus=inventory), worker=2, gpus=[1, inventory[0].uuid])
    assert [task.gpus for task in made.of("worker")] == [("1",), (inventory[0].uuid,)]


@pytest.mark.parametrize("facts", [host(), host(gpus=gpus(2), gpu_refusal="no runtime")])
def test_auto_means_the_cpu_only_if_no_gpu_is_available(facts) -> None:  # type: ignore[no-untyped-def]
    made = cluster(facts, gpus="auto", gpus_per_worker=2)
    assert not any(task.gpus for task in made.tasks)
    assert made.variant == "cpu"


def test_gpus_select_the_gpu_image() -> None:
    made = cluster(host(gpus=gpus(2)), gpus="auto")
    assert (made.variant, made.image) == ("gpu", "cluster-kit/trainer:gpu-0123456789ab")


def test_the_default_is_none_even_if_there_are_gpus() -> None:
    assert manifest().gpus == "none"
    assert not any(task.gpus for task in cluster(host(gpus=gpus(8))).tasks)


def test_one_gpu_for_two_tasks_is_refused() -> None:
    (problem,) = problems(host(gpus=gpus(2)), worker=2, gpus=["0", "0"])
    assert (problem.key_path, problem.value) == ("gpus", '["0", "0"]')
    assert "is listed 2 times" in problem.rule
    assert "once" in problem.hint_text()


def test_index_and_uuid_of_the_same_gpu_are_the_same_gpu() -> None:
    inventory = gpus(2)
    (problem,) = problems(host(gpus=inventory), worker=2, gpus=["1", inventory[1].uuid])
    assert inventory[1].uuid in problem.rule
    assert "is listed 2 times" in problem.rule


def test_an_unknown_gpu_is_named_with_the_existing_ones() -> None:
    inventory = gpus(1)
    (problem,) = problems(host(gpus=inventory), worker=1, gpus=["7"])
    assert problem.value == '"7"'
    assert f"0 ({inventory[0].uuid})" in problem.rule
    assert "auto" in problem.hint_text()


def test_a_list_on_a_host_without_gpus_is_refused() -> None:
    (problem,) = problems(host(), worker=1, gpus=["0"])
    assert "it has: none" in problem.rule


def test_a_list_that_cannot_be_divided_is_refused_with_both_numbers() -> None:
    (problem,) = problems(host(gpus=gpus(3)), worker=2, gpus=["0", "1", "2"])
    assert "3 GPUs do not divide evenly among 2 workers" in problem.rule
    assert "list 2 GPUs" in problem.hint_text()


@pytest.mark.parametrize(
    ("keys", "hint"),
    [({"worker": 3}, "`worker = 2`"), ({"worker": 1, "gpus_per_worker": 3}, '`gpus = "none"`')],
)
def test_too_few_gpus_are_reported_with_the_number_of_workers_they_serve(
    keys: dict[str, int], hint: str
) -> None:
    (problem,) = problems(host(gpus=gpus(2)), gpus="auto", **keys)
    assert "there are 2" in problem.rule
    assert hint in problem.hint_text()
    assert "worker = 0" not in problem.hint_text()


def test_an_empty_list_is_refused() -> None:
    (problem,) = problems(host(gpus=gpus(2)), gpus=[])
    assert (problem.value, problem.rule) == ("[]", "an empty list")
    assert '"none"' in problem.hint_text()


def test_the_message_of_a_refusing_engine_is_quoted() -> None:
    facts = host(gpus=gpus(2), gpu_refusal="could not select device driver")
    (problem,) = problems(facts, gpus=["0", "1"])
    assert "could not select device driver" in problem.rule
    assert "doctor" in problem.hint_text()
