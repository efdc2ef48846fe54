"""The verb summary, in each of its forms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.command_line import Cli
from tests.unit.summary.runs import NEVER_STARTED, failed, outcome, saved


def test_a_terminal_gets_the_verdict_and_the_tasks(cli: Cli, root: Path) -> None:
    saved(root, failed())
    result = cli("summary", "demo")
    lines = result.out.splitlines()
    assert (result.code, lines[0]) == (0, "failed after 8.0 s, blame chief-0 (exit code 1)")
    assert "  everything is in runs/demo/20250301-100000" in lines
    assert [line.split() for line in lines[-2:]] == [
        ["chief-0", "10.0.0.2", "-", "1", "-"],
        ["ps-0", "10.0.0.2", "-", "137", "2", "out", "of", "memory"],
    ]


def test_a_verdict_stays_short_however_long_the_error_is(cli: Cli, root: Path) -> None:
    lines = [f"  layer {number}" for number in range(60)]
    saved(root, replace(failed(), message="\n".join(["InvalidArgumentError: NaN", *lines])))
    shown = cli("summary", "demo").out.splitlines()
    assert shown[1] == "  InvalidArgumentError: NaN"
    at = shown.index("  … 47 more lines of this error, all in outcome.json")
    assert at == 15
    assert "layer 59" in cli("summary", "demo", "--json").out


def test_a_run_that_never_started_has_a_summary(cli: Cli, root: Path) -> None:
    (root / "said.json").write_text(json.dumps(NEVER_STARTED))
    result = cli("summary", "said.json")
    assert result.out.splitlines() == ["failed", "  worker = 0: a job", "  → set `worker = 1`"]


def test_markdown_values_and_json(cli: Cli, root: Path) -> None:
    run = saved(root, outcome())
    assert cli("summary", "--markdown").out.startswith("## ✅ demo succeeded")
    assert f"outcome={run}/outcome.json\n" in cli("summary", "--values").out
    assert json.loads(cli("summary", "--json").out)["metrics"] == outcome().metrics


@pytest.mark.parametrize("words", [("--markdown", "--json"), ("nope",), ("compose",)])
def test_invalid_arguments_are_refused(words: tuple[str, ...], cli: Cli) -> None:
    result = cli("summary", *words)
    assert result.code == 2 and (result.err.startswith("error: ") or "error" in result.out)


def test_an_error_after_the_start_names_the_run(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cluster_kit.cli import up
    from cluster_kit.errors import EngineError

    def launch(*_: object, **__: object) -> None:
        error = EngineError("gone")
        error.run = "/runs/demo/1"
        raise error

    monkeypatch.setattr(up, "launch", launch)
    result = cli("up", "demo", "--json")
    assert (result.code, json.loads(result.out)["run"]) == (4, "/runs/demo/1")
