"""The data step runs once, completely or not at all; its errors have the program's own output."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import DataFailed, HostError
from cluster_kit.run import data_step
from cluster_kit.util.locks import lock
from tests.fakes.hosts import Machine
from tests.fakes.stage import Stage


class Fetching:
    """The program in the container: what it writes, prints, and ends with."""

    def __init__(self, code: int = 0, lines: Sequence[str] = (), files: Sequence[str] = ("a",)):
        self.code, self.lines, self.files = code, lines, files
        self.commands: list[Sequence[str]] = []

    def __call__(self, folder: Path, command: Sequence[str]) -> tuple[int, list[str]]:
        self.commands.append(command)
        assert folder.is_dir() and not list(folder.iterdir())
        for name in self.files:
            (folder / name).write_text("data")
        return self.code, list(self.lines)


@pytest.fixture
def step(stage: Stage) -> dict[str, Any]:
    (stage.workspace.manifests / "fetch.py").write_text("print('fetching')\n")
    return {"fetch": "fetch.py", "args": ["--split", "a b"]}


def fetched(stage: Stage) -> list[str]:
    """Returns the contents of the folder of fetched data, including hidden files except Git's."""
    folder = stage.workspace.fetched
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return [name for name in names if name != ".gitignore"]


def test_the_step_runs_before_the_first_start_only(stage: Stage, step: Any) -> None:
    stage.docker.fetches = fetching = Fetching(lines=["10 %", "100 %"])
    assert stage.up(data=step).success
    assert ("data", "10 %") in stage.view.lines
    (name,) = fetched(stage)
    assert name.startswith("fetch-")
    (command,) = fetching.commands
    assert command[-4:] == ["-u", "/program/fetch.py", "--split", "a b"]
    assert f"--user={os.getuid()}:{os.getgid()}" in command
    assert "data" in stage.saved()["timings_s"]
    assert stage.up(data=step).success
    assert len(fetching.commands) == 1
    text = (stage.workspace.manifests / "demo" / "compose.yaml").read_text()
    assert f"source: '{stage.workspace.fetched / name}'" in text


def test_a_secret_argument_is_neither_printed_nor_saved(stage: Stage, step: Any) -> None:
    stage.docker.fetches = Fetching(lines=["with hush-hush-7"])
    stage.up(data={**step, "args": ["--api-token", "hush-hush-7"]})
    assert ("data", "with ***") in stage.view.lines
    assert "fetching the data: fetch.py --api-token ***" in stage.view.phases
    run = stage.directory.path
    texts = [path.read_text(errors="replace") for path in run.rglob("*") if path.is_file()]
    assert not any("hush" in text for text in texts) and any("--api-token" in t for t in texts)


def test_only_another_program_or_argument_fetches_again(stage: Stage, step: Any) -> None:
    stage.docker.fetches = fetching = Fetching()
    stage.up(data=step)
    stage.up(data={**step, "args": ["b"]})
    (stage.workspace.manifests / "fetch.py").write_text("print('another')\n")
    stage.up(data=step)
    assert len(fetching.commands) == len(fetched(stage)) == 3
    stage.up(data=step, worker=1)
    assert len(fetching.commands) == 3


def test_a_failure_has_its_output_and_its_own_reason(stage: Stage, step: Any) -> None:
    stage.docker.fetches = Fetching(7, ["downloading", "HTTP 403: no such file"])
    with pytest.raises(DataFailed, match="ended with exit code 7") as told:
        stage.up(data=step)
    assert told.value.message.endswith("downloading\nHTTP 403: no such file")
    assert told.value.exit_code == 8
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"], saved["success"]) == ("data", 8, False)
    assert "HTTP 403" in saved["message"]
    assert fetched(stage) == [] and stage.is_clean()
    stage.docker.fetches = Fetching(3)
    with pytest.raises(DataFailed, match="no data was kept, and it printed nothing"):
        stage.up(data=step)
    stage.docker.fetches = Fetching()
    assert stage.up(data=step).success


def test_a_module_that_the_image_does_not_have_gets_the_hint_of_a_task(
    stage: Stage, step: Any
) -> None:
    tensorflow = "I0000 00:00:1795670627.043976      12 port.cc:153] oneDNN is on."
    missing = [
        "Traceback (most recent call last):",
        '  File "/program/fetch.py", line 1, in <module>',
        "    import pandas",
        "ModuleNotFoundError: No module named 'pandas'",
    ]
    stage.docker.fetches = Fetching(1, [tensorflow, *missing])
    with pytest.raises(DataFailed, match="No module named 'pandas'") as told:
        stage.up(data=step)
    assert "run with `--requirements FILE`" in str(told.value.hint)
    assert "port.cc" not in told.value.message


def test_a_program_that_writes_nothing_has_failed(stage: Stage, step: Any) -> None:
    stage.docker.fetches = Fetching(files=())
    with pytest.raises(DataFailed, match="wrote nothing"):
        stage.up(data=step)
    assert fetched(stage) == []


def test_an_interrupt_and_a_kill_leave_no_incomplete_data(stage: Stage, step: Any) -> None:
    def interrupted(folder: Path, _command: Sequence[str]) -> tuple[int, list[str]]:
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    stage.docker.fetches = interrupted
    assert stage.up(data=step).reason == "interrupted"
    assert fetched(stage) == []
    stage.docker.fetches = Fetching()
    stage.up(data=step)
    (name,) = fetched(stage)
    (stage.workspace.fetched / name).rename(stage.workspace.fetched / f".{name}.1.part")
    stage.up(data=step)
    assert fetched(stage) == [name]


def test_a_second_command_waits_and_fetches_nothing(
    stage: Stage, step: Any, machine: Machine
) -> None:
    stage.docker.fetches = fetching = Fetching()
    stage.up(data=step)
    (name,) = fetched(stage)
    directory = stage.workspace.fetched / name
    directory.rename(hidden := stage.workspace.root / "hidden")
    held, go = threading.Event(), threading.Event()

    def other() -> None:
        with lock(stage.workspace.fetched / f".{name}.lock", "process 4711"):
            held.set()
            go.wait(20)
            hidden.rename(directory)

    thread = threading.Thread(target=other)
    thread.start()
    assert held.wait(20)
    stage.view.phase = lambda text: (stage.view.phases.append(text), go.set())  # type: ignore[func-returns-value,assignment,method-assign]
    data_step.ensure_data(machine.host, _cluster(directory), stage.view)
    thread.join(20)
    assert any("process 4711" in text for text in stage.view.phases)
    assert len(fetching.commands) == 1


def _cluster(directory: Path) -> Any:
    class Asked:
        fetch = data_step.Fetch("fetch.py", (), (), str(directory))

    return Asked()


def test_its_secrets_are_available_and_masked(
    stage: Stage, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.docker.fetches = fetching = Fetching(3, ["key=of-mine-only"])
    with pytest.raises(HostError, match="needs KEY, not set"):
        stage.up(data={**step, "secrets": ["KEY"]})
    assert fetching.commands == []
    monkeypatch.setenv("KEY", "of-mine-only")
    with pytest.raises(DataFailed, match=r"key=\*\*\*"):
        stage.up(data={**step, "secrets": ["KEY"]})
    assert "--env=KEY" in fetching.commands[0]
    assert "of-mine-only" not in str(fetching.commands) + str(stage.view.lines)
