"""A program that waits for a debugger first, and then runs as usual."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainer.agent.injected.debugger import debugged
from trainer.agent.supervisor import child
from trainer.agent.supervisor.child import RUNNER, Program


@pytest.fixture
def debugpy(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Records the calls of debugpy, whose port another process holds at first."""
    asked: list[object] = []

    def listen(address: tuple[str, int]) -> None:
        asked.append(address)
        if len(asked) == 2:
            raise RuntimeError("Can't listen for client connections: Address already in use")

    fake = SimpleNamespace(
        configure=lambda **options: asked.append(options),
        listen=listen,
        wait_for_client=lambda: asked.append("waited"),
    )
    monkeypatch.setitem(sys.modules, "debugpy", fake)
    monkeypatch.setenv("CLUSTER_KIT_TASK", "chief-0")
    monkeypatch.setenv("CLUSTER_KIT_DEBUG", "15678")
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", ["/injected", *sys.path])
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "")
    return asked


def test_it_waits_and_then_runs_the_file(
    debugpy: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import sys; print(__name__, sys.argv[1:], sys.path[0])")
    debugged.main([str(tmp_path / "train.py"), "--batch", "4"])
    assert debugpy == [{"subProcess": False}, *[("0.0.0.0", 5678)] * 2, "waited"]
    assert capsys.readouterr().out.splitlines() == [
        "chief-0: waits for a debugger on 127.0.0.1:15678 of the host",
        "chief-0: a debugger is attached; the program begins",
        "__main__ ['--batch', '4'] /injected",
    ]


def test_a_module_is_run_as_python_does(
    debugpy: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_program.py").write_text("import sys; print(__name__, sys.argv[1:])")
    sys.path.append(str(tmp_path))
    debugged.main(["-m", "a_program", "--steps", "1"])
    assert "/injected" not in sys.path
    assert capsys.readouterr().out.splitlines()[-1] == "__main__ ['--steps', '1']"


def test_only_python_programs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_KIT_DEBUG", raising=False)
    assert not child.debugged()
    monkeypatch.setenv("CLUSTER_KIT_DEBUG", "5678")
    assert child.debugged()
    mine = child.under_debugger(Program(("python3", str(RUNNER), "train.py"), builtin=False))
    assert mine[:2] == ("python3", "-Xfrozen_modules=off")
    assert mine[2:] == (str(child.DEBUGGED), str(RUNNER), "train.py")
    own = child.under_debugger(Program(("python3", "-m", "trainer.programs.x"), builtin=True))
    assert own[-3:] == (str(child.DEBUGGED), "-m", "trainer.programs.x")
    shell = Program(("python3", "train.pyz"), builtin=False)
    assert child.under_debugger(shell) == shell.command
