"""Numbers of tasks, and tables for tasks that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.plan.cluster_rules import last_indexes, too_many
from tests.make import manifest, problems, problems_of

HEAD = 'format = 1\nname = "demo"\n'


@pytest.mark.parametrize(
    "task", ["worker-01", "worker--1", "worker-²", "worker", "boss-0", "worker-1 ", "Worker-1", "-"]
)
def test_an_invalid_task_name_is_reported_with_the_form_of_names(task: str, tmp_path: Path) -> None:
    (problem,) = problems_of(f'{HEAD}[task."{task}"]\ncpus = 1', tmp_path)
    assert problem.key_path == f"task.{task}"
    assert "called like `worker-1`" in problem.hint_text()


def test_a_table_of_an_existing_task_is_no_problem() -> None:
    assert not problems(worker=3, task={"worker-2": {"cpus": 1.0}, "chief-0": {"cpus": 1.0}})


def test_the_last_index_of_each_role_is_valid() -> None:
    assert last_indexes(manifest(chief=0, worker=3, ps=1)) == (("worker", 2), ("ps", 0))
    assert last_indexes(manifest(chief=7, worker=1, ps=0)) == (("chief", 0), ("worker", 0))


@pytest.mark.parametrize(("workers", "many"), [(2, False), (30_000, False), (40_000, True)])
def test_more_tasks_than_a_slash_16_holds_are_too_many(workers: int, many: bool) -> None:
    assert too_many(manifest(worker=workers)) is many
