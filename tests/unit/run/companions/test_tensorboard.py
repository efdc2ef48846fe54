"""TensorBoard in a container of the image: how it is started, and its errors."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, HostError
from cluster_kit.run import companions
from cluster_kit.run.companions import EventFiles
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine


def test_it_reads_only_and_listens_only_on_this_host() -> None:
    folders = {"demo-1": EventFiles(Path("/runs/a, b"), "tensorboard"), "b": EventFiles(Path("/c"))}
    said = companions.command(folders, 0, "7:8", "image:1")
    assert "--publish=127.0.0.1::6006" in said and "--user=7:8" in said
    assert '--mount=type=bind,"source=/runs/a, b","target=/runs/0",readonly' in said, "all of it"
    shown = said[said.index("sh") + 1 :]
    assert shown[: shown.index("--") + 1] == [
        "/runs/0/tensorboard",
        "demo-1",
        "/runs/1/",
        "b",
        "--",
    ]
    assert shown[shown.index("--") + 1 :][:3] == ["python3", "-m", "tensorboard.main"]
    assert "--publish=127.0.0.1:7007:6006" in companions.command({}, 7007, "0:0", "i")


def test_event_files_are_below_tensorboard_or_anywhere(tmp_path: Path) -> None:
    assert EventFiles.of(tmp_path) == EventFiles(tmp_path)
    (tmp_path / "tensorboard").mkdir()
    assert EventFiles.of(tmp_path) == EventFiles(tmp_path, "tensorboard")
    (tmp_path / "tensorboard" / "train").mkdir()
    assert not EventFiles.of(tmp_path).exist()
    (tmp_path / "tensorboard" / "train" / "events.out.tfevents.1.host").touch()
    assert EventFiles.of(tmp_path).exist()


def answered(machine: Machine, **answers: Completed) -> list[str]:
    """Docker's answers by verb; records the verbs."""
    asked: list[str] = []

    def run(command: list[str], **_: object) -> Completed:
        asked.append(command[1])
        return answers.get(command[1], Completed((), 0, "", ""))

    def whatever_happens(command: list[str]) -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        stack.callback(run, command)
        return stack

    machine.starts(run=run)
    machine.starts(afterwards=whatever_happens)
    return asked


def test_containers_that_have_ended_are_removed(machine: Machine) -> None:
    listed = "cluster-kit-tensorboard-1 exited\ncluster-kit-tensorboard-2 running\n"
    listed += "bold_name exited demo\n"
    answered(machine, container=Completed((), 0, listed, ""))
    assert companions.left_behind(machine.host) == ["cluster-kit-tensorboard-1"]


STARTED = Completed((), 0, "abc\n", "")


def start(machine: Machine, port: int = 0, said: list[str] | None = None) -> str:
    with companions.serving(
        machine.host, {}, port, "0:0", [].append if said is None else said.append
    ) as url:
        return url


def test_the_url_has_the_port_and_the_container_is_removed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answered(machine, run=STARTED, port=Completed((), 0, "127.0.0.1:4711\n", ""))
    monkeypatch.setattr(companions, "_wait", lambda *_: None)
    assert start(machine, said=(said := [])) == "http://127.0.0.1:4711/"
    assert said == ["starting TensorBoard (some seconds)"]
    assert asked == ["image", "run", "port", "rm"]


def test_a_port_in_use_is_reported(machine: Machine) -> None:
    failed = Completed((), 125, "", "Bind for 127.0.0.1:80 failed: port is already allocated")
    answered(machine, run=failed)
    with pytest.raises(HostError, match=r"port 80 of 127\.0\.0\.1 is taken"):
        start(machine, 80)


def test_the_message_of_a_refusing_engine_is_shown(machine: Machine) -> None:
    answered(machine, run=Completed((), 125, "", "no space left"))
    with pytest.raises(EngineError, match="no space left"):
        start(machine)


def test_the_last_output_of_a_container_that_ends_at_once_is_shown(machine: Machine) -> None:
    asked = answered(
        machine, run=STARTED, port=Completed((), 1, "", ""), logs=Completed((), 0, "oh", "")
    )
    with pytest.raises(EngineError, match="ended at once:\noh"):
        start(machine)
    assert asked[-1] == "rm"


def test_a_tensorboard_that_never_answers_is_ended(machine: Machine) -> None:
    dead = Completed((), 0, "false\n", "")
    answered(
        machine, run=STARTED, port=Completed((), 0, "127.0.0.1:1\n", ""), inspect=dead,
        logs=Completed((), 0, "", "bye"),
    )  # fmt: skip
    with pytest.raises(EngineError, match=r"does not answer at http://127\.0\.0\.1:1/:\nbye"):
        start(machine)
