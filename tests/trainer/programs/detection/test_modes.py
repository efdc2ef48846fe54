"""Every option works in every mode, or is refused with a fix."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

pytest.importorskip("pydantic", reason="pydantic is in the image and in this project's environment")
from trainer.agent.errors import ContractError
from trainer.agent.task import Task, read_task
from trainer.programs.detection import mode, options
from trainer.programs.detection.config.pipeline import Adam, ConstantRate, TrainConfig
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica import gradients_per_round

PLAIN = TrainConfig(num_steps=1, learning_rate=ConstantRate(learning_rate=1.0))


def task(servers: str, **jobs: int) -> Task:
    hosts = {job: [f"10.0.0.{i}:1" for i in range(count)] for job, count in jobs.items()}
    own = {"type": "chief", "index": 0}
    return read_task(
        {
            "TF_CONFIG": json.dumps({"cluster": hosts, "task": own}),
            "CLUSTER_KIT_SERVERS": servers,
        }
    )


SERVED = task("worker-0,ps-0", chief=1, worker=1, ps=1)
ALL_TASKS = task("ps-0", chief=1, worker=1, ps=1)


def decide(how: str, where: Task) -> str:
    return mode.decide(how, where, GraphOptions(), PLAIN, ())


def test_the_style_decides_the_mode():
    assert decide("auto", SERVED) == "coordinator"
    assert decide("auto", ALL_TASKS) == "graph"
    assert decide("auto", read_task({})) == "graph"


def test_a_coordinator_needs_workers_that_run_servers():
    with pytest.raises(ContractError, match='style = "coordinator"'):
        decide("coordinator", ALL_TASKS)


BOTH, SINGLE = ("async", "sync", "coordinator"), ("async", "sync")
WORKS_IN = {
    "update": {"async": ("async", "coordinator"), "sync": SINGLE},
    "num_clones": {"2": SINGLE},
    "clone_on_cpu": {"": SINGLE},
    "backup_workers": {"1": ("sync",)},
    "pause_ms": {"5": SINGLE},
    "round_steps": {"10": ("coordinator",)},
    "log_steps": {"10": BOTH},
    "summary_steps": {"10": BOTH, "0": BOTH},
    "save_secs": {"3": BOTH},
    "keep": {"2": BOTH},
    "loss_threshold": {"0.5": BOTH},
    "num_steps": {"7": BOTH},
    "default_steps": {"7": BOTH},
    "final_score": {"": BOTH},
    "pipeline_config": {"p.toml": BOTH},
    "set": {"train_config.batch_size=4": BOTH},
    "mode": {},
    "train_dir": {"/output": BOTH},
    **{f"{part}_config_path": {} for part in ("model", "train", "input", "eval", "eval_input")},
    **{name: {} for name in ("type", "index", "task", "master", "worker_replicas", "ps_tasks",
                             "worker_job_name", "ps_job_name")},
}  # fmt: skip
"""Argument → value → the modes in which it has an effect. Without a value here: the mode itself,
the arguments that test_classic.py tests in all forms, and claims that only have to be true."""
SETTINGS = {
    "sync_replicas": {True: ("sync",), False: ("async", "coordinator")},
    "replicas_to_aggregate": {1: ("sync",)},
    "startup_delay_steps": {15.0: ("async",)},
    "use_moving_average": {True: SINGLE},
}


def test_the_table_has_every_argument():
    known = {action.dest for action in options.parser()._actions if action.dest != "help"}
    assert set(WORKS_IN) == known


def tried(how: str, arguments: list[str], train: TrainConfig = PLAIN) -> str:
    """Returns the error message that refuses it; "" if nothing does. Two replicas train."""
    where, kind = (SERVED, "coordinator") if how == "coordinator" else (ALL_TASKS, "graph")
    given = options.names_given(arguments)
    base = options.parser().parse_args(arguments)
    graph = options.graph_options.from_arguments(base, steps=1, loss_threshold=None)
    if how == "sync" and "update" not in given and train.sync_replicas is None:
        graph = replace(graph, update="sync")
    try:
        mode.decide(kind, where, graph, train, given)
        if kind == "graph":
            decided = mode.decided(graph, train, given, 2)
            gradients_per_round(decided, 2)
    except ContractError as refused:
        return str(refused)
    return ""


def test_an_option_works_or_is_refused_with_a_fix(subtests):
    for how, (name, values) in itertools.product(BOTH, WORKS_IN.items()):
        for value in values:
            with subtests.test(how=how, name=name, value=value):
                option = "--steps" if name == "num_steps" else f"--{name.replace('_', '-')}"
                output = tried(how, [option, value] if value else [option])
                if how in WORKS_IN[name][value] or (name == "update" and how != "coordinator"):
                    assert output == ""
                else:
                    words = option if option in output else name
                    assert words in output
                    assert (
                        "use --mode" in output
                        or "add --update sync" in output
                        or "in graph mode --log" in output
                    )


def test_a_setting_works_or_is_refused_with_a_fix(subtests):
    for how, (name, values) in itertools.product(BOTH, SETTINGS.items()):
        for value in values:
            with subtests.test(how=how, name=name, value=value):
                if name == "use_moving_average":
                    train = PLAIN.model_copy(update={"optimizer": Adam(use_moving_average=value)})
                else:
                    train = PLAIN.model_copy(update={name: value})
                output = tried(how, [] if how == "coordinator" else ["--update", how], train)
                if how in SETTINGS[name][value]:
                    assert output == ""
                else:
                    assert name in output and "--set train_config." in output


@pytest.mark.parametrize(
    ("train", "given", "expected"),
    [
        ({}, {}, ("async", 0)),
        ({"sync_replicas": True}, {}, ("sync", 0)),
        ({"sync_replicas": False}, {}, ("async", 0)),
        ({"sync_replicas": True, "replicas_to_aggregate": 2}, {}, ("sync", 1)),
        ({"replicas_to_aggregate": 3}, {"update": "sync"}, ("sync", 0)),
        ({"replicas_to_aggregate": 1}, {"update": "sync", "backup_workers": 2}, ("sync", 2)),
    ],
)
def test_the_configuration_decides_the_updates(train, given, expected):
    graph = replace(GraphOptions(), **given)
    found = mode.decided(graph, PLAIN.model_copy(update=train), given, 3)
    assert (found.update, found.backup_workers) == expected


@pytest.mark.parametrize(
    ("train", "given", "message"),
    [
        (
            {"sync_replicas": True},
            {"update": "async"},
            "--update async, but .*sync_replicas = true",
        ),
        ({"replicas_to_aggregate": 8}, {"update": "sync"}, "= 8, but 3 replicas train.*=3`"),
        ({"replicas_to_aggregate": 2}, {"update": "sync", "backup_workers": 2}, "leaves 1"),
    ],
)
def test_settings_that_contradict_the_command_line_or_the_cluster_are_refused(
    train, given, message
):
    graph = replace(GraphOptions(), **given)
    with pytest.raises(ContractError, match=message):
        mode.decided(graph, PLAIN.model_copy(update=train), given, 3)
