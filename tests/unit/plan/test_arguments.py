"""Arguments that are templates: filled for each task that runs the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.errors import ManifestError
from cluster_kit.plan.tasks import NAMES
from tests.make import cluster, problems, problems_of

FIXED = {"subnet": "172.28.0.0/24", "style": "all-tasks"}
FLAGS = [
    "--job_name={{ role }}",
    "--task_index={{ index }}",
    "--ps_hosts={{ ps_hosts }}",
    "--worker_hosts={{ worker_hosts }}",
]


def arguments(**keys: Any) -> dict[str, tuple[str, ...]]:
    """Returns the arguments of every program, by task."""
    return {t.name: t.arguments for t in cluster(**keys).tasks if not t.serves}


def test_old_flags_give_every_task_its_role_and_the_others_addresses() -> None:
    found = arguments(args=FLAGS, chief=0, worker=2, ps=1, ps_runs="program", **FIXED)
    hosts = ("--ps_hosts=172.28.0.20:2222", "--worker_hosts=172.28.0.100:2222,172.28.0.101:2222")
    assert found == {
        "worker-0": ("--job_name=worker", "--task_index=0", *hosts),
        "worker-1": ("--job_name=worker", "--task_index=1", *hosts),
        "ps-0": ("--job_name=ps", "--task_index=0", *hosts),
    }


def test_the_chief_has_its_jobs_name_and_its_task_name() -> None:
    args = ["{{ role }}", "{{ name }}", "{{ chief_hosts }}"]
    found = arguments(args=args, ps=1, worker=1, chief_job="master", **FIXED)
    assert found["chief-0"] == ("master", "chief-0", "172.28.0.10:2222")
    assert found["worker-0"] == ("worker", "worker-0", "172.28.0.10:2222")


def test_every_name_has_a_value() -> None:
    args = [f"{name}={{{{ {name} }}}}" for name in NAMES]
    (found,) = arguments(args=args, chief=0, worker=1, ps=0, subnet="172.28.0.0/24").values()
    assert found == (
        "role=worker", "index=0", "name=worker-0", "ip=172.28.0.100", "port=2222",
        "master=grpc://172.28.0.100:2222", "chief_hosts=",
        "worker_hosts=172.28.0.100:2222", "ps_hosts=", "num_workers=1", "num_ps=0",
        'cluster_spec={"worker": ["172.28.0.100:2222"]}', "data_service=", "num_replicas=1",
        "data=/opt/datasets/digits", "output=/output",
    )  # fmt: skip


def test_addresses_are_names_if_tasks_are_addressed_by_name() -> None:
    found = arguments(args=["{{ ps_hosts }}"], ps=2, addressing="name", port=4000)
    assert found["chief-0"] == ("ps-0:4000,ps-1:4000",)


def test_an_argument_without_a_template_is_used_unchanged() -> None:
    plain = ["{a}", "}}", "{# no comment #}", '{"a": {"b": 1}}', "{ { role } }", "", "\n"]
    assert arguments(args=plain)["chief-0"] == tuple(plain)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r{")))
def test_text_around_a_template_is_unchanged(text: str) -> None:
    assert arguments(args=[text + "{{ index }}" + text])["chief-0"] == (f"{text}0{text}",)


def test_an_argument_that_becomes_empty_is_left_out() -> None:
    args = ["{% if index == 0 %}--save{% endif %}", "--last"]
    found = arguments(args=args, chief=0, worker=2, ps=0)
    assert found == {"worker-0": ("--save", "--last"), "worker-1": ("--last",)}


def test_jinja_expressions_and_literal_braces() -> None:
    args = ["{{ index + num_ps }}", "{{ '{{' }}x}}", "{{ worker_hosts.split(',') | length }}"]
    assert arguments(args=args)["chief-0"] == ("2", "{{x}}", "2")


ANOTHER_LAUNCHERS = {
    "CLUSTER_SPEC": "{{ cluster_spec }}",
    "JOB_NAME": "{{ role }}",
    "TASK_INDEX": "{{ index }}",
    "EMPTY": "{{ chief_hosts }}",
    "PLAIN": "$HOME",
}


def test_variables_for_another_launcher_are_filled_for_each_task() -> None:
    role = {"worker": {"environment": ANOTHER_LAUNCHERS}}
    planned = cluster(chief=0, worker=2, ps=1, role=role, **FIXED)
    found = {task.name: dict(task.environment) for task in planned.tasks}
    spec = '{"worker": ["172.28.0.100:2222", "172.28.0.101:2222"], "ps": ["172.28.0.20:2222"]}'
    assert json.loads(found["worker-1"].pop("CLUSTER_SPEC")) == json.loads(spec)
    assert found["worker-1"] == {
        "JOB_NAME": "worker", "TASK_INDEX": "1", "EMPTY": "", "PLAIN": "$HOME",
    }  # fmt: skip
    assert found["worker-0"]["TASK_INDEX"] == "0"
    assert found["ps-0"] == {}


def test_an_invalid_template_in_a_variable_is_reported_at_its_key() -> None:
    for text, words in (("{{ rank }}", "no such name: `rank`"), ("{{ 1 // index }}", "worker-0")):
        role = {"worker": {"environment": {"RANK": text}}}
        (problem,) = problems(chief=0, worker=1, ps=0, role=role)
        assert problem.key_path == "role.worker.environment.RANK"
        assert words in problem.rule


def test_if_a_container_starts_as_root_no_template_may_set_what_it_loads() -> None:
    of_worker = {"bandwidth": "1mbit", "environment": {"PYTHONPATH": "{{ output }}/lib"}}
    (problem,) = problems(role={"worker": of_worker})
    assert "starts as root" in problem.rule


MISTAKES = {
    "an unknown name": ("{{ rank }}", "no such name: `rank`", "there are: role, index"),
    "a name that is nearly right": ("{{ worker_host }}", "`worker_host`", "mean `worker_hosts`?"),
    "an open hole": ("--a={{ role", "invalid template:", "fix it; a literal {{ is written"),
    "an open condition": ("{% if index %}x", "invalid template:", "fix it"),
    "no expression": ("{{ }}", "invalid template:", "fix it"),
    "an unknown filter": ("{{ role | shout }}", "No filter named 'shout'", "fix it"),
    "an attribute that is not there": ("{{ role.x }}", "for chief-0: ", "fix it"),
    "a division by zero": ("{{ 1 // index }}", "for chief-0: integer division", "fix it"),
    "a way out of the sandbox": ("{{ role.__class__.__mro__ }}", "unsafe", "fix it"),
    "endless work": ("{{ range(10 ** 9) | list }}", "Range too big", "fix it"),
    "another file": ("{% include 'compose.yaml.j2' %}", "no loader", "fix it"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_invalid_template_is_reported_at_its_key(mistake: str) -> None:
    text, rule, hint = MISTAKES[mistake]
    (problem,) = problems(args=["fine", text])
    assert (problem.key_path, problem.value) == ("args.1", f'"{text}"')
    assert rule in problem.rule
    assert hint in problem.hint_text()


def test_each_invalid_argument_is_reported_with_the_other_problems() -> None:
    found = problems(args=["{{ a }}", "{{ b", "{{ role }}"], worker=0)
    assert [problem.key_path for problem in found] == ["worker", "args.0", "args.1"]


@given(st.lists(st.text("{}%# -rolex|().'0/+\n", max_size=12), max_size=3))
def test_any_text_gives_a_cluster_or_problems(nonsense: list[str]) -> None:
    try:
        cluster(args=nonsense)
    except ManifestError as error:
        assert all(
            p.key_path.startswith("args.") and p.rule and p.hint_text() for p in error.problems
        )


def test_a_template_from_a_file_is_read_like_any_text(tmp_path: Path) -> None:
    text = 'format = 1\nname = "demo"\nargs = ["--index={{ indx }}"]\n'
    (problem,) = problems_of(text, tmp_path)
    assert "did you mean `index`?" in problem.hint_text()


def test_only_tasks_that_ask_for_their_own_server_get_one() -> None:
    assert not cluster(args=["--master=local"]).own_servers
    asked = cluster(args=["--master={{ master }}"], addressing="name", port=4000, **FIXED)
    assert asked.own_servers
    assert asked.of("worker")[0].arguments == ("--master=grpc://worker-0:4000",)
