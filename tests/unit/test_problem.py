"""A problem is printed in two lines, with settings as in the manifest's file."""

from __future__ import annotations

import pytest

from cluster_kit.errors import KitError, Problem, Setting


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (Setting("worker", 2), "`worker = 2`"),
        (Setting("share_gpus", True), "`share_gpus = true`"),
        (Setting("style", "all-tasks"), '`style = "all-tasks"`'),
        (Setting("deadline.start", 30), "`start = 30`"),
        (Setting("role.worker.cpus", 0.5), "`cpus = 0.5`"),
        (Setting("gpus", ("0", "1")), '`gpus = ["0", "1"]`'),
    ],
)
def test_a_setting_is_written_as_toml(setting: Setting, told: str) -> None:
    assert Problem("x", "", "rule", ("write ", setting, "!")).hint_text() == f"write {told}!"


def test_a_problem_has_place_value_rule_and_hint() -> None:
    assert Problem("ps", "-1", "too few", "more").text() == "ps = -1: too few\n    → more"
    assert Problem("task.x", "", "no such task", "none").text().startswith("task.x: no such task\n")


def test_the_names_of_version_0_1_still_work() -> None:
    problem = Problem("worker", "0", "too few", ("write ", Setting("worker", 1)))
    assert (problem.place, problem.cure) == (problem.key_path, problem.hint)
    assert problem.cure_text() == problem.hint_text() == "write `worker = 1`"
    assert KitError("what", "what to do").cure == KitError("what", "what to do").hint
