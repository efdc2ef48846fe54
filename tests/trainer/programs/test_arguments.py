"""`python3 -m trainer arguments PROGRAM [ARG…]`: the host calls it before it starts anything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from unittest import mock

import pytest
from conftest import IMAGE

from trainer.__main__ import main
from trainer.programs.arguments import PROGRAMS

Asked = tuple[int, str, str]
"""The exit code, the output, and the reason of a refusal."""


def ask_a_process(*words: str, **variables: str) -> Asked:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(IMAGE), **variables}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "trainer", "arguments", *words],
        capture_output=True, text=True, timeout=60, env=environment,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.rpartition("error: ")[2].strip()


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Asked]:
    """The same in this process."""

    def here(*words: str, **variables: str) -> Asked:
        with mock.patch.dict(os.environ, variables, clear=True):
            try:
                code = main(["arguments", *words])
            except SystemExit as ended:
                code = int(ended.code or 0)
        printed, output = capsys.readouterr()
        return code, printed, output.rpartition("error: ")[2].strip()

    return here


RIGHT = [
    ("classifier", "--epochs", "3", "--update", "sync"),
    ("linear-regression", "--steps", "10"),
    ("detection", "--steps", "10", "--set", "train_config.batch_size=2"),
    ("detection", "--pipeline_config_path=a.config", "--train_dir=/output"),
]


@pytest.mark.parametrize("words", RIGHT)
def test_valid_arguments_end_with_0(ask, words):
    assert ask(*words)[:2] == (0, "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("classifier", "--epohcs", "3"), "unrecognized arguments: --epohcs 3"),
        (("classifier", "--epochs", "many"), "argument --epochs: invalid positive value: 'many'"),
        (("linear-regression", "--steps", "0"), "argument --steps: 0: must be 1 or more"),
        (("detection", "--round-steps"), "argument --round-steps: expected one argument"),
        (("no-such-program",), "no built-in program 'no-such-program'"),
    ],
)
def test_invalid_arguments_end_with_2_and_a_reason(ask, words, why):
    assert ask(*words) == (2, "", why)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("detection", "--steps", "10"), (0, "", "")),
        (("detection", "--round-steps"), (2, "", "argument --round-steps: expected one argument")),
        (("no-such-program",), (2, "", "no built-in program 'no-such-program'")),
    ],
)
def test_the_call_of_the_host(words, asked):
    assert ask_a_process(*words) == asked


@pytest.mark.parametrize("program", sorted(p.parent.name for p in PROGRAMS.glob("*/__main__.py")))
def test_help_is_printed(ask, program):
    code, printed, _ = ask(program, "--help")
    assert code == 0 and printed.startswith("usage: ")


def test_an_option_without_effect_in_this_cluster_is_refused_only_there(ask):
    config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
    words = ("classifier", "--save-secs", "3")
    code, _, why = ask(*words, TF_CONFIG=config, CLUSTER_KIT_SERVERS="")
    assert code == 2 and why.startswith("--save-secs does nothing with --strategy all-reduce: ")
    assert ask(*words)[0] == ask(*words, TF_CONFIG="")[0] == 0
    assert ask("linear-regression", "--save-secs", "3", TF_CONFIG=config)[0] == 0
