"""How many tasks there may be, and which tables name a task that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.plan.cluster_rules import last_indexes, too_many
from tests.make import manifest, problems, problems_of

HEAD = 'format = 1\nname = "demo"\n'


@pytest.mark.parametrize(
    "task", ["worker-01", "worker--1", "worker-²", "worker", "boss-0", "worker-1 ", "Worker-1", "-"]
)
def test_a_task_name_that_none_could_have_is_told_how_they_look(task: str, tmp_path: Path) -> None:
    (problem,) = problems_of(f'{HEAD}[task."{task}"]\ncpus = 1', tmp_path)
    assert problem.key_path == f"task.{task}"
    assert "called like `worker-1`" in problem.hint_text()


def test_a_table_of_a_task_that_exists_is_no_problem() -> None:
    assert not problems(worker=3, task={"worker-2": {"cpus": 1.0}, "chief-0": {"cpus": 1.0}})


def test_the_last_index_of_each_role_that_has_tasks() -> None:
    assert last_indexes(manifest(chief=0, worker=3, ps=1)) == (("worker", 2), ("ps", 0))
    assert last_indexes(manifest(chief=7, worker=1, ps=0)) == (("chief", 0), ("worker", 0))


@pytest.mark.parametrize(("workers", "many"), [(2, False), (30_000, False), (40_000, True)])
def test_more_tasks_than_a_slash_16_holds_are_too_many(workers: int, many: bool) -> None:
    assert too_many(manifest(worker=workers)) is many
