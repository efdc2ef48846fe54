"""debugpy is fetched once, completely or not at all, by exact version and hash."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import HostError
from cluster_kit.image import debugger
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine

PIP_FAILS = Completed((), 1, "", "ERROR: No matching distribution found for debugpy==1.8.22\n")
NO_PIP = Completed((), 1, "", "/usr/bin/python3: No module named pip\n")


class Pip:
    """Replaces `process.run`."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.answers: list[Completed] = []
        self.requirements: list[str] = []

    def run(self, command: Sequence[str], **_: Any) -> Completed:
        self.calls.append(list(command))
        options = dict(word.split("=", 1) for word in command if "=" in word)
        self.requirements.append(Path(options["--requirement"]).read_text())
        if self.answers and not self.answers[0].ok:
            return self.answers.pop(0)
        (Path(options["--target"]) / "debugpy").mkdir(parents=True)
        return Completed(tuple(command), 0, "", "")


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Pip:
    fake = Pip()
    machine.starts(run=fake.run)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fake


def test_it_is_fetched_once_by_its_hashes(pip: Pip, tmp_path: Path, machine: Machine) -> None:
    outputs: list[str] = []
    for _ in range(2):
        debugger.ensure(machine.host, outputs.append)
    assert debugger.place() == tmp_path / "cache" / "cluster-kit" / "debugpy-1.8.22"
    assert [entry.name for entry in debugger.place().parent.iterdir()] == ["debugpy-1.8.22"]
    assert outputs == ["fetching the debugger, debugpy 1.8.22, once"]
    (command,), (requirement,) = pip.calls, pip.requirements
    assert "--require-hashes" in command and "--no-deps" in command
    assert requirement.startswith("debugpy==1.8.22 --hash=sha256:")
    assert requirement.count("--hash=") == len(debugger.HASHES)


def test_without_a_cache_variable_the_home_directory_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert debugger.place() == Path("/home/me/.cache/cluster-kit/debugpy-1.8.22")


def test_a_failed_pip_leaves_nothing(pip: Pip, machine: Machine) -> None:
    pip.answers = [PIP_FAILS]
    with pytest.raises(HostError, match="No matching distribution") as refused:
        debugger.ensure(machine.host, lambda _: None)
    assert "pip config list" in refused.value.hint
    assert list(debugger.place().parent.iterdir()) == []
    debugger.ensure(machine.host, lambda _: None)


@pytest.mark.parametrize("has_uv", [True, False])
def test_an_environment_without_pip(
    pip: Pip, monkeypatch: pytest.MonkeyPatch, has_uv: bool, machine: Machine
) -> None:
    pip.answers = [NO_PIP]
    monkeypatch.setattr(debugger.shutil, "which", lambda _: "/bin/uv" if has_uv else None)
    if has_uv:
        debugger.ensure(machine.host, lambda _: None)
        assert pip.calls[1][:3] == ["uv", "pip", "install"]
        return
    with pytest.raises(HostError, match="No module named pip") as refused:
        debugger.ensure(machine.host, lambda _: None)
    assert "-m ensurepip` installs pip" in refused.value.hint


def test_a_cache_that_cannot_be_written_is_reported(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(HostError, match="cannot be written: Not a directory") as refused:
        debugger.ensure(machine.host, lambda _: None)
    assert "XDG_CACHE_HOME" in refused.value.hint
    assert pip.calls == []
