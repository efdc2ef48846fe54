"""Every option works in every way of training, or is refused before anything starts.

These tests do not use TensorFlow.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import fields
from pathlib import Path

import pytest

from trainer.agent.errors import ContractError
from trainer.agent.task import Task, read_task
from trainer.contract.endings import EXIT_USAGE
from trainer.programs.classifier import option_rules, options
from trainer.programs.classifier.options import Options
from trainer.programs.training.graph_mode.options import GraphOptions

PS = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
COORDINATED = ("chief", PS, "worker-0,worker-1,ps-0")
BETWEEN_GRAPH = ("chief", PS, "ps-0")
WAYS = {
    "parameter-server async": (COORDINATED, ()),
    "parameter-server sync": (COORDINATED, ("--update", "sync")),
    "graph async": (BETWEEN_GRAPH, ()),
    "graph sync": (BETWEEN_GRAPH, ("--update", "sync")),
    "all-reduce": (("worker", {"worker": ["b:1", "c:1"]}, ""), ()),
    "mirrored": (("worker", {"worker": ["b:1"]}, ""), ()),
}
"""Mode to the (role, cluster, servers) of a task, and the arguments for the mode."""
GRAPH = {"graph async", "graph sync"}
KNOWN_IN = {
    ("--backup-workers", "1"): {"graph sync"},
    ("--save-secs", "2"): GRAPH,
    ("--summary-steps", "2"): GRAPH,
    ("--log-steps", "2"): GRAPH,
    ("--pause-ms", "2"): GRAPH,
    ("--steps-per-call", "2"): {"parameter-server async", "all-reduce", "mirrored"},
    ("--communication", "nccl"): {"all-reduce"},
    ("--peer-timeout", "9"): {"all-reduce"},
    ("--update", "async"): set(WAYS) - {"all-reduce"},
    ("--update", "sync"): set(WAYS),
    ("--num-clones", "2"): set(WAYS),
    ("--clone-on-cpu",): set(WAYS),
    ("--keep", "2"): set(WAYS),
    ("--loss-threshold", "0.5"): set(WAYS),
}
OF_THE_MODEL = {
    "strategy", "model", "image_size", "batch_size", "epochs", "steps_per_epoch", "learning_rates",
    "dropout", "bn_momentum", "rotation", "shift", "zoom", "shear", "flip", "seed",
}  # fmt: skip
"""Options for the model and the data, which do not depend on the way of training."""


def task_of(way: str) -> Task:
    (role, cluster, servers), _ = WAYS[way]
    config = {"cluster": cluster, "task": {"type": role, "index": 0}}
    return read_task({"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_SERVERS": servers})


def parse(way: str, *arguments: str) -> Options:
    return options.parse([*WAYS[way][1], *arguments], Path("/data"), Path("/output"))


def test_an_option_works_or_is_refused(subtests: pytest.Subtests) -> None:
    for given, way in itertools.product(KNOWN_IN, WAYS):
        with subtests.test(given=given, way=way):
            chosen = parse(way, *given)
            modes = {
                option_rules.mode_of(way.partition(" ")[0], update) for update in ("async", "sync")
            }
            assert way in modes
            if way in KNOWN_IN[given]:
                option_rules.check(chosen, task_of(way))
                continue
            with pytest.raises(ContractError) as caught:
                option_rules.check(chosen, task_of(way))
            output = str(caught.value)
            assert caught.value.exit_code == EXIT_USAGE
            assert output.startswith(f"{given[0]}")
            assert f"does nothing with --strategy {way.partition(' ')[0]}" in output
            assert "; leave it out, or " in output


@pytest.mark.parametrize("way", WAYS)
def test_options_that_were_not_given_are_not_refused(way: str) -> None:
    option_rules.check(parse(way), task_of(way))


def test_every_option_is_for_the_model_or_tested_above() -> None:
    tried = {given[0].removeprefix("--").replace("-", "_") for given in KNOWN_IN}
    names = {field.name for field in fields(Options)} | {f.name for f in fields(GraphOptions)}
    decided = {"data", "output", "graph", "given", "steps"}
    assert names - decided == tried | OF_THE_MODEL
    assert {rule.option for rule in option_rules.RULES} <= tried
    assert set(option_rules.MODES) == set(WAYS)


def test_all_problems_are_reported_together() -> None:
    chosen = parse("mirrored", "--save-secs", "1", "--keep", "2", "--peer-timeout", "3",
                   "--num-clones", "3")  # fmt: skip
    with pytest.raises(ContractError) as caught:
        option_rules.check(chosen, task_of("mirrored"))
    output = str(caught.value)
    assert "--save-secs does nothing" in output and "--peer-timeout does nothing" in output
    assert "--batch-size 32 does not divide by --num-clones 3" in output and "take 30" in output
    assert "--keep does" not in output


def test_a_model_without_batch_norm_has_no_momentum_for_it() -> None:
    given = ("--bn-momentum", "0.9")
    option_rules.check(parse("mirrored", "--model", "mobilenet_v2", *given), task_of("mirrored"))
    with pytest.raises(ContractError, match="--bn-momentum does nothing with --model cnn"):
        option_rules.check(parse("mirrored", "--model", "cnn", *given), task_of("mirrored"))


def test_an_option_that_was_given_with_its_default_value_is_known() -> None:
    assert options.parse([], Path("/d"), Path("/o")).given == frozenset()
    given = options.parse(["--num-clones", "1", "--no-flip"], Path("/d"), Path("/o"))
    assert given.given == {"num_clones", "flip"}
    assert (given.clones, parse("mirrored").clones) == (1, None)


def test_hyperparameters_are_the_given_options_without_paths():
    given = ["--epochs", "3", "--num-clones", "2", "--learning-rates", "0:0.1", "2:0.01"]
    told = options.parse(given, Path("/data"), Path("/output")).hyperparameters
    assert (told["epochs"], told["num_clones"], told["learning_rates"]) == (3, 2, "0:0.1 2:0.01")
    assert told["batch_size"] == 32
    assert not told.keys() & {"data", "output", "given", "graph", "keep", "save_secs"}


def test_a_sum_of_an_all_reduce_has_no_timeout_of_its_own() -> None:
    """With 120 s, TensorFlow kept a thread for each sum: after 1,000 steps there were 4,000."""
    assert parse("all-reduce").peer_timeout is None
