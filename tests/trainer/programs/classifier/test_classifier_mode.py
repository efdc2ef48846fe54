"""Which way of training the options and the tasks of a cluster select."""

from __future__ import annotations

import pytest

from trainer.agent.errors import ContractError
from trainer.programs.classifier import mode

PS = {"chief": ("a:1",), "worker": ("b:1", "c:1"), "ps": ("d:1",)}
PEERS = {"worker": ("b:1", "c:1")}
ALONE = {"worker": ("b:1",)}
COORDINATED = ("worker-0", "worker-1", "ps-0")


@pytest.mark.parametrize(
    ("cluster", "servers", "means"),
    [
        (PS, COORDINATED, mode.PARAMETER_SERVER),
        (PS, ("ps-0",), mode.GRAPH),
        (PEERS, (), mode.ALL_REDUCE),
        ({"master": ("a:1",), **ALONE}, (), mode.ALL_REDUCE),
        (ALONE, (), mode.MIRRORED),
        ({}, (), mode.MIRRORED),
    ],
)
def test_auto_selects_a_strategy_by_the_tasks(cluster, servers, means):
    assert mode.decide(mode.AUTO, cluster, servers) == means
    assert mode.decide(means, cluster, servers) == means


@pytest.mark.parametrize(
    ("strategy", "cluster", "servers", "says"),
    [
        (mode.PARAMETER_SERVER, PEERS, (), "it has no ps"),
        (mode.PARAMETER_SERVER, PS, ("ps-0",), "workers run the program themselves"),
        (mode.GRAPH, PS, COORDINATED, "workers only serve"),
        (mode.ALL_REDUCE, PS, COORDINATED, "ps = 0"),
        (mode.ALL_REDUCE, PS, ("ps-0",), "ps = 0"),
        (mode.MIRRORED, PEERS, (), "here are 2"),
    ],
)
def test_a_strategy_without_its_tasks_is_refused_with_a_fix(strategy, cluster, servers, says):
    with pytest.raises(ContractError, match=says):
        mode.decide(strategy, cluster, servers)


def test_graph_mode_also_runs_in_a_single_task():
    assert mode.decide(mode.GRAPH, ALONE, ()) == mode.GRAPH


def test_a_master_trains_like_a_chief():
    assert mode.trainers({"master": ("a:1",), **PEERS}) == 3
