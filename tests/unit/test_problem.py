"""A problem is printed in two lines, with settings as in the manifest's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import KitError, Problem, Setting
from cluster_kit.manifest.command_line import CommandLine


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (Setting("worker", 2), "`worker = 2`"),
        (Setting("share_gpus", True), "`share_gpus = true`"),
        (Setting("style", "all-tasks"), '`style = "all-tasks"`'),
        (Setting("deadline.start", 30), "`start = 30` under [deadline]"),
        (Setting("role.worker.cpus", 0.5), "`cpus = 0.5` under [role.worker]"),
        (Setting("gpus", ("0", "1")), '`gpus = ["0", "1"]`'),
    ],
)
def test_a_setting_is_written_as_toml(setting: Setting, told: str) -> None:
    assert Problem("x", "", "rule", ("write ", setting, "!")).hint_text() == f"write {told}!"
    beside = Problem(setting.key, "", "rule", (setting,)).hint_text()
    assert beside == told.partition(" under")[0]


def test_a_problem_has_place_value_rule_and_hint() -> None:
    assert Problem("ps", "-1", "too few", "more").text() == "ps = -1: too few\n    → more"
    assert Problem("task.x", "", "no such task", "none").text().startswith("task.x: no such task\n")


def test_a_problem_on_a_line_of_a_file_belongs_to_the_key_that_names_the_file() -> None:
    hint = ("write ", Setting("style", "all-tasks"))
    of_file = Problem("program", "", "old", hint, ("engine",), "train.py:3")
    of_key = Problem("role.worker.environment.A:B", "", "refused", hint, ("engine",))
    for key, typed in (("program", of_file), ("engine", None), (of_key.key_path, of_key)):
        words = CommandLine(frozenset({key}))
        for problem in (of_file, of_key):
            error = words.error(Path("demo.toml"), [problem])
            by_command_line = problem is typed
            assert error.message.startswith("the command line:") is by_command_line, error
            assert ("`--style all-tasks`" in error.message) is by_command_line, error
    assert of_file.text().startswith("train.py:3: old\n") and of_file.place == "train.py:3"


def test_the_names_of_version_0_1_still_work() -> None:
    problem = Problem("worker", "0", "too few", ("write ", Setting("worker", 1)))
    assert (problem.place, problem.cure) == (problem.key_path, problem.hint)
    assert problem.cure_text() == problem.hint_text() == "write `worker = 1`"
    assert KitError("what", "what to do").cure == KitError("what", "what to do").hint
