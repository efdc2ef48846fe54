"""Runs the examples of docs/python.md as they are written."""

from __future__ import annotations

import re

import pytest

from tests.fakes.stage import Stage
from tests.make import ROOT

TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(
    number: int, host: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("TF_CONFIG", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")  # An example sets variables: they are restored.
    monkeypatch.chdir(host.workspace.root)
    exec(compile(EXAMPLES[number], "docs/python.md", "exec"), {})
    assert host.is_clean()
    assert "chief-0" in capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 5
