"""All problems of a scenario are reported before the start, with suggestions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cluster_kit.drill import fault_plan, scenario_file
from cluster_kit.drill.scenario_file import KINDS
from cluster_kit.errors import ManifestError, UsageError
from tests.make import ROOT, cluster

GOOD = 'kind = "crash"\ntask = "worker-1"\nat = { step = 5 }\n'
STEPS = {"args": ["--epochs", "9", "--epochs", "3", "--steps-per-epoch=20"]}


def refused(text: str, **keys: object) -> str:
    """Returns the error for a scenario on a cluster; "" if it is accepted."""
    written = scenario_file.parse(tomllib.loads(text), "mine.toml")
    try:
        fault_plan.refuse(written, cluster(**keys))
    except ManifestError as error:
        return error.message
    return ""


def fault(*lines: str) -> str:
    given = {line.split(" = ")[0]: line for line in (*GOOD.splitlines(), *lines)}
    return "[[fault]]\n" + "\n".join(given.values()) + "\n"


def test_a_valid_scenario_is_accepted() -> None:
    assert refused(fault(), **STEPS) == ""
    assert refused(fault('task = "random"', "at = { after = 'checkpoint' }")) == ""


MISTAKES = [
        (fault('kind = "freze"'),
         'fault 1: kind = "freze": no such kind\n    → did you mean `freeze`'),
        (fault('task = "worker-7"'),
         'fault 1: task = "worker-7": the cluster demo has no such task'),
        (fault('task = "worker_1"'), "did you mean `worker-1`"),
        (fault().replace('task = "worker-1"', 'role = "master"'), "has no task of this role"),
        (fault('role = "ps"'), "needs either task or role"),
        (fault().replace('task = "worker-1"\n', ""), "needs either task or role"),
        (fault("at = { step = 5, epoch = 2 }"), "needs exactly one of step, epoch, seconds, after"),
        (fault("at = {}"), "needs exactly one of"),
        (fault("at = { step = 0 }"), "fault 1: at.step = 0: must be greater than or equal to 1"),
        (fault("at = { steps = 5 }"), "did you mean `step`"),
        (fault('at = { after = "epich" }'), 'no such event\n    → did you mean `epoch`'),
        (fault("at = { step = 60 }"), "fault 1: at.step = 60: the job ends at step 60"),
        (fault("at = { epoch = 4 }"), "fault 1: at.epoch = 4: the job ends at epoch 3"),
        (fault("at = { seconds = 9999 }"), "the job ends within deadline.job, 3600 s"),
        (fault('for = "5s"'), "`for` is of away, freeze, cut, slow, delay, loss, bandwidth, "
                              "disk-full, not of crash"),
        (fault('grace = "5s"'), "`grace` is of stop, not of crash"),
        (fault('kind = "stop"', 'grace = "5x"'), "a duration is"),
        (fault('kind = "slow"', "cpus = 0"), "fault 1: cpus = 0"),
        (fault('kind = "cut"', 'from = "ps-0"'), 'fault 1: from = "ps-0": must be a valid tuple'),
        (fault('kind = "cut"', "from = []"), "fault 1: from = []"),
        (fault('kind = "cut"', 'from = ["ps-7"]'), 'from = "ps-7": the cluster demo has no such'),
        (fault('kind = "cut"', 'from = ["worker-1"]'), "cannot be cut off from itself"),
        (fault('kind = "cut"', 'task = "random"', "from = ['chief-0', 'worker-0', 'worker-1',"
               " 'ps-0', 'ps-1', 'evaluator-0']"), "no task is left"),
        (fault('kind = "freeze"', 'from = ["ps-0"]'), "`from` is of cut, not of freeze"),
        (fault('kind = "delay"', 'delay = "11s"'), "fault 1: delay = \"11s\": must be less than"),
        (fault('kind = "delay"', "delay = 0"), "a duration is more than 0"),
        (fault('kind = "delay"', "percent = 5"), "`percent` is of loss, not of delay"),
        (fault('kind = "loss"', "percent = 101"), "fault 1: percent = 101"),
        (fault('kind = "loss"', "percent = 0"), "fault 1: percent = 0"),
        (fault('kind = "bandwidth"', "rate = 5"), "a bandwidth is a number with a unit"),
        (fault('kind = "bandwidth"', 'rate = "1kbit"'), "a bandwidth is at least 64kbit"),
        (fault('kind = "disk-full"', "percent = 5"), "`percent` is of loss, not of disk-full"),
        (fault('kind = "memory"', 'for = "5s"'), "not of memory"),
        (fault("wait = 5"), "fault 1: wait = 5: no such key"),
        (fault().replace("kind", "kid"), "fault 1: kind: is required"),
        ("", "at least one fault is required"),
        ("fault = 5", "at least one fault is required"),
        (fault() + '[expect]\nsuccess = true\nreason = "silent"',
         'contradictory: success = true, but reason = "silent" is a failure'),
        (fault() + '[expect]\nsuccess = false\nreason = "finished"', "contradictory"),
        (fault() + '[expect]\nreason = "silend"', "did you mean `silent`"),
        (fault() + "[expect.metrics.loss]\nmin = 2\nmax = 1.5", "min 2 is more than max 1.5"),
        (fault() + "[expect.metrics.loss]", "needs min or max"),
        (fault() + "[expect]\nlooses_at_most = 3", "did you mean `loses_at_most`"),
        (fault() + "[expects]\nsuccess = true", "expects"),
        ('"fault one" = 1\n' + fault(), "fault one = 1: no such key"),
    ]  # fmt: skip


def test_a_mistake_is_reported_with_its_hint(subtests: pytest.Subtests) -> None:
    for text, said in MISTAKES:
        with subtests.test(text=text, said=said):
            assert said in refused(text, **STEPS)


def test_more_bandwidth_than_the_task_has_is_refused() -> None:
    limits = {"role": {"worker": {"bandwidth": "20mbit"}}}
    text = fault('kind = "bandwidth"', 'rate = "20mbit"')
    assert 'rate = "20mbit": worker-1 has only 20mbit as it is' in refused(text, **limits)
    assert refused(fault('kind = "bandwidth"'), **limits) == ""


def test_all_mistakes_are_reported_together_in_the_order_of_the_file() -> None:
    text = fault('task = "ps-9"') + fault('kind = "x"') + "[expect]\nreason = 'y'"
    said = refused(text)
    key_paths = ["fault 1: task", "fault 2: kind", "expect: reason"]
    assert said.startswith("mine.toml: 3 problems")
    positions = [said.index(key_path) for key_path in key_paths]
    assert positions == sorted(positions)


def test_moments_are_not_checked_if_the_programs_length_is_unknown() -> None:
    assert refused(fault("at = { step = 99999 }"), args=["--epochs", "3"]) == ""
    short = refused(fault("at = { epoch = 1 }"), args=["--epochs", "1", "--steps-per-epoch=20"])
    assert "at.epoch = 1: the job ends at epoch 1" in short and "train for longer" in short
    assert refused(fault("at = { after = 'my-own' }"), program="train.py") == ""


def test_an_unknown_kind_is_reported_with_all_known_ones() -> None:
    assert f"there are: {', '.join(KINDS)}" in refused(fault('kind = "nonsense"'))


def test_a_scenario_is_found_by_its_path_or_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(fault())
    assert scenario_file.find("mine", tmp_path) == tmp_path / "mine.toml"
    assert scenario_file.find(str(tmp_path / "mine.toml"), ROOT) == tmp_path / "mine.toml"
    with pytest.raises(UsageError) as caught:
        scenario_file.find("mini", tmp_path)
    assert "did you mean `mine`" in caught.value.hint


def test_a_file_that_is_not_toml_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[[fault]")
    with pytest.raises(ManifestError, match="not valid TOML"):
        scenario_file.load(tmp_path / "mine.toml")
    with pytest.raises(ManifestError, match="No such file"):
        scenario_file.load(tmp_path / "other.toml")
