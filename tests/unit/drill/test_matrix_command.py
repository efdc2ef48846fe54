"""The command `cluster-kit matrix`: which cells it runs, what it keeps, and how it continues."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster_kit import __main__
from cluster_kit.cli import drill
from cluster_kit.drill import matrix
from cluster_kit.drill.matrix import Cell, Judged
from cluster_kit.host import Host
from cluster_kit.util import process, stdio
from tests.fakes.stage import Stage


@pytest.fixture
def command(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Any:
    """Returns a function that calls `cluster-kit matrix demo` with these words; it returns (exit
    code, cells that were run, stderr).

    The fault `cut 1 s` does not pass.
    """
    monkeypatch.chdir(stage.workspace.root)
    monkeypatch.setattr(process, "interrupt_once", lambda: None)
    monkeypatch.setattr(stdio, "outlive_readers", lambda: None)
    monkeypatch.setattr(drill, "SYSTEMS", ())
    monkeypatch.setattr(matrix, "commit", lambda _host: "0123abc")

    def call(*words: str) -> tuple[int, list[str], str]:
        ran: list[str] = []

        def run_all(_host: Host, cells: Sequence[Cell], *_: Any) -> Iterator[Judged]:
            for cell in cells:
                ran.append(f"{cell.role} {cell.fault}")
                misses = ("detected after 13.0 s",) if str(cell.fault) == "cut 1 s" else ()
                yield Judged(cell, "went on", misses)

        monkeypatch.setattr(drill, "run_all", run_all)
        monkeypatch.setattr(sys, "argv", ["cluster-kit", "matrix", "demo", *words])
        with pytest.raises(SystemExit) as ended:
            __main__.main()
        return int(str(ended.value.code or 0)), ran, capfd.readouterr().err

    return call


def folder(stage: Stage) -> Path:
    return stage.workspace.root / "build" / "drill"


def test_cells_can_be_chosen(stage: Stage, command: Any) -> None:
    code, ran, err = command("--role", "ps,worker", "--fault", "freeze")
    assert (code, ran) == (0, ["worker freeze 60 s", "worker freeze 10 s",
                               "ps freeze 60 s", "ps freeze 10 s"])  # fmt: skip
    assert "4 of 4 passed" in err
    kept = json.loads((folder(stage) / "demo.ps.freeze-10-s.json").read_text())
    assert (kept["system"], kept["role"], kept["fault"]) == ("demo", "ps", "freeze 10 s")
    assert kept["machine"] and kept["time"] and kept["commit"] == "0123abc"
    together = json.loads((folder(stage) / "matrix.json").read_text())
    assert [(one["role"], one["fault"]) for one in together][-1] == ("ps", "freeze 10 s")


def test_it_continues_where_it_stopped_or_repeats_everything(command: Any) -> None:
    command("--role", "ps", "--fault", "crash")
    _, ran, err = command("--role", "ps", "--fault", "crash", "--fault", "stop")
    assert ran == ["ps stop"]
    assert "1 of 2 have a result in build/drill" in err
    _, ran, _ = command("--role", "ps", "--fault", "crash", "--again")
    assert ran == ["ps crash"]


def test_a_miss_is_reported_and_ends_with_5_in_later_calls_too(command: Any) -> None:
    for expected in (["ps cut 1 s"], []):
        code, ran, err = command("--role", "ps", "--fault", "cut 1 s")
        assert (code, ran) == (5, expected)
        assert "demo ps cut 1 s: went on; detected -" in err
        assert "MISS: detected after 13.0 s" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--role", "chief"], "--role chief: not found"),
        (["--fault", "crush"], "did you mean `crash`"),
        (["other"], "no manifest `other`"),
    ],
)
def test_invalid_arguments_start_nothing(command: Any, words: list[str], message: str) -> None:
    code, ran, err = command(*words)
    assert (code, ran) == (2, [])
    assert message in err
