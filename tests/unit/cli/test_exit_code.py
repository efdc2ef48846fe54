"""`--exit-code program`: the exit code of `up` for each way in which a run can end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.machine import host_facts
from cluster_kit.run import prepare
from tests.fakes.acting import Life, dies, ends, says
from tests.fakes.hosts import Machine
from tests.fakes.stage import NAME, Stage, set_up
from tests.unit.command_line import Cli

OWN = ("--exit-code", "program")
BEGINS = says(0.1, "start", attempt=1)
ENDS = {
    "success": ({}, 0, 0),
    "its own": ({"chief-0": [Life((BEGINS, ends(1.0, 41, "failed", "SystemExit: 41")))]}, 5, 41),
    "its own, in a worker": (
        {
            "chief-0": [Life((BEGINS, ends(1.2, 1, "failed", "worker-1 has failed", "worker-1")))],
            "worker-1": [Life((BEGINS, ends(1.0, 17, "failed", "SystemExit: 17")))] * 3,
        },
        5,
        17,
    ),
    "the last of several": (
        {"chief-0": [Life((BEGINS, dies(1.0))), Life((BEGINS, ends(1.0, 9, "failed", "nine")))]},
        5,
        9,
    ),
    "a signal": ({"chief-0": [Life((BEGINS, dies(1.0, 139)))]}, 5, 139),
    "a deadline": (
        {"chief-0": [Life((BEGINS, ends(1.0, 6, "job-deadline", "too long")))]}, 6, 6,
    ),
    "stopped from outside": (
        {"chief-0": [Life((BEGINS, ends(1.0, 143, "stopped", "stopped by SIGTERM")))]}, 7, 7,
    ),
}  # fmt: skip


@pytest.fixture
def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, machine: Machine
) -> Iterator[Stage]:
    assert root == tmp_path
    monkeypatch.setattr(prepare, "gather", host_facts.gather)
    yield from set_up(tmp_path, machine)


@pytest.mark.parametrize("story", ENDS)
def test_the_programs_own_exit_code_is_returned(story: str, cli: Cli, stage: Stage) -> None:
    stage.engine.acting, kits, own = ENDS[story]
    assert cli("up", NAME, *OWN).code == own
    assert stage.saved()["exit_code"] == kits
    assert cli("attach", NAME, *OWN).code == own  # already judged: the verdict is printed again
    assert cli("wait", NAME, *OWN, "--json").code == own
    assert cli("wait", NAME).code == kits


def test_a_program_that_never_started_has_no_exit_code(cli: Cli, stage: Stage) -> None:
    stage.engine.refuses["chief-0"] = "no such device"
    assert cli("up", NAME, *OWN).code == 4
    (stage.workspace.manifests / f"{NAME}.toml").write_text("format = 2\n")
    assert cli("up", NAME, *OWN).code == 2


def test_the_option_is_refused_with_detach(cli: Cli, stage: Stage) -> None:
    result = cli("up", NAME, "--detach", *OWN)
    assert result.code == 2 and "cluster-kit wait NAME --exit-code program" in result.err
    assert not stage.ran
    assert cli("up", NAME, "--exit-code", "mine").code == 2
    stage.engine.acting = {"chief-0": [Life((ends(1.0, 3, "failed", "three"),))]}
    cli("up", NAME, "--detach")
    result = cli("wait", NAME, "--json", *OWN)
    assert (result.code, json.loads(result.out)["exit_code"]) == (3, 5)
