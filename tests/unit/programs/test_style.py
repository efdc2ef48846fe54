"""Which tasks run the program: by the manifest, or by its counts and the program."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.style import check_style, runs_program, style_of
from cluster_kit.roles import ROLES
from tests.make import manifest

COORDINATOR, ALL_TASKS = {"chief"}, {"chief", "worker"}


@pytest.mark.parametrize(
    ("keys", "style"),
    [
        ({}, "coordinator"),
        ({"chief": 0}, "all-tasks"),
        ({"ps": 0}, "all-tasks"),
        ({"style": "all-tasks"}, "all-tasks"),
        ({"style": "coordinator", "ps": 0}, "coordinator"),
        ({"tf1": True}, "all-tasks"),
    ],
)
def test_auto_means_a_coordinator_if_there_are_a_chief_and_ps(
    keys: dict[str, Any], style: str
) -> None:
    assert style_of(manifest(**keys)) == style


@pytest.mark.parametrize(
    ("keys", "running"),
    [
        ({}, COORDINATOR),
        ({"style": "all-tasks"}, ALL_TASKS),
        ({"style": "all-tasks", "ps_runs": "program"}, ALL_TASKS | {"ps"}),
    ],
)
def test_which_tasks_run_the_program(keys: dict[str, Any], running: set[str]) -> None:
    asked = manifest(**keys)
    assert {role for role in ROLES if runs_program(asked, role)} == running | {"evaluator"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_refused_in_styles_that_the_catalog_does_not_name(program: str) -> None:
    row = PROGRAMS[program]
    for style in ("coordinator", "all-tasks"):
        asked = manifest(program=program, data=row.sample or "digits", style=style)
        refused = any(problem.key_path == "style" for problem in check_style(asked))
        assert refused is (style not in row.styles)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_evaluator_is_refused_if_the_program_has_nothing_to_score(program: str) -> None:
    asked = manifest(program=program, style="all-tasks", evaluator=1)
    refused = any(problem.key_path == "evaluator" for problem in check_style(asked))
    assert refused is not PROGRAMS[program].scores


@pytest.mark.parametrize("program", PROGRAMS)
def test_replicas_that_share_variables_need_a_ps(program: str) -> None:
    row = PROGRAMS[program]
    asked = manifest(program=program, style="all-tasks", chief=0, worker=2, ps=0)
    assert any(problem.key_path == "ps" for problem in check_style(asked)) is row.between_graph
    alone = manifest(program=program, style="all-tasks", chief=0, worker=1, ps=0)
    assert not list(check_style(alone))


@pytest.mark.parametrize(
    ("keys", "problems"),
    [
        ({}, []),
        ({"chief": 0}, []),
        ({"chief": 0, "ps": 0}, []),
        ({"chief": 0, "style": "all-tasks", "ps_runs": "program"}, []),
        ({"style": "coordinator"}, ["style"]),
        ({"program": "classifier"}, ["tf1"]),
    ],
)
def test_possible_clusters_for_a_program_for_tensorflow_1(
    keys: dict[str, Any], problems: list[str]
) -> None:
    """Each task runs it, with or without ps; no chief is needed."""
    asked = manifest(**{"program": "old.py", "tf1": True} | keys)
    assert [problem.key_path for problem in check_style(asked)] == problems
