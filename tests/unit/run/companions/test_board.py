"""TensorBoard with a run: it starts and ends with the run, and cannot make it fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cluster_kit.run import companions
from cluster_kit.util.process import Completed
from tests.fakes.acting import Life, ends, says
from tests.fakes.stage import NAME, Stage

SHORT = {"chief-0": [Life((says(0.1, "start", attempt=1), says(0.4, "ready"),
                           says(1.0, "step", step=1), ends(2.0, 0, "finished")))]}  # fmt: skip


class Boards:
    """Docker's answers about TensorBoard: one runs after `run`, unless it is refused."""

    def __init__(self, others: Callable[..., Completed]) -> None:
        self._others = others
        self.started: list[tuple[str, ...]] = []
        self.refused = ""

    def run(self, command: Sequence[str], **options: Any) -> Completed:
        words = tuple(command)
        if words[1] not in ("container", "port") and "tensorboard.main" not in words:
            return self._others(command, **options)
        if words[1] == "run":
            if self.refused:
                return Completed(words, 125, "", self.refused)
            self.started.append(words)
        there = "abc\n" if self.started else ""
        answer = {"run": "abc\n", "container": there, "port": "127.0.0.1:4711\n"}[words[1]]
        return Completed(words, 0, answer, "")


@pytest.fixture
def boards(stage: Stage) -> Boards:
    made = Boards(stage.docker.run)
    stage.machine.starts(run=made.run)
    return made


def test_without_the_key_there_is_no_tensorboard(stage: Stage, boards: Boards) -> None:
    assert stage.up(SHORT).success and boards.started == []


def test_it_shows_the_runs_output_from_the_start(stage: Stage, boards: Boards) -> None:
    outcome = stage.up(SHORT, tensorboard=True)
    assert outcome.success and outcome.notes == []
    (words,) = boards.started
    assert f"--label=cluster-kit.tensorboard.cluster={NAME}" in words
    assert f"--label=cluster-kit.run={outcome.id}" in words
    name = f"{NAME}-{stage.directory.path.name}"
    assert any(f"source={stage.directory.output}" in word for word in words)
    assert words[words.index("/runs/0/") + 1] == name
    assert ("tensorboard", "shows this run at http://127.0.0.1:4711/") in stage.view.lines
    assert "starting TensorBoard" in stage.view.phases
    assert any("TensorBoard at http://127.0.0.1:4711/" in phase for phase in stage.view.phases)


def test_a_tensorboard_that_is_kept_with_its_containers_is_a_note(
    stage: Stage, boards: Boards
) -> None:
    outcome = stage.up(SHORT, tensorboard=True, keep=True)
    (note,) = outcome.notes
    assert json.loads(stage.directory.outcome.read_text())["notes"] == [note]
    assert note == f"TensorBoard stays at http://127.0.0.1:4711/ until `cluster-kit down {NAME}`"


def test_a_run_continues_if_tensorboard_cannot_be_started(stage: Stage, boards: Boards) -> None:
    boards.refused = "no space left"
    assert stage.up(SHORT, tensorboard=True).success
    (warning,) = stage.view.warnings
    assert warning == "TensorBoard cannot be started:\nno space left"


def test_a_detached_run_has_it_and_attach_finds_the_same(stage: Stage, boards: Boards) -> None:
    stage.detach(SHORT, tensorboard=True)
    assert ("tensorboard", "shows this run at http://127.0.0.1:4711/") in stage.view.lines
    stage.attach()
    assert len(boards.started) == 1


def test_the_kits_image_is_built_if_tasks_run_another(
    stage: Stage, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(companions, "present", lambda *_: False)
    monkeypatch.setattr(
        companions, "ensure_image", lambda _host, variant, _say: made.append(variant)
    )
    stage.up(SHORT, tensorboard=True, image="mine:1")
    assert made == ["cpu"]
    assert any("trainer:cpu" in word for word in boards.started[0])
