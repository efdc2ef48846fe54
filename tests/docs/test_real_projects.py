"""Every manifest on the page about real projects is valid if the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.make import ROOT, problems_of

PAGE = (ROOT / "docs" / "real-projects.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
FILES = ("fetch.py", "corpus/a", ".cache/huggingface/token", "private.env")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_valid_manifest(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("HF_TOKEN=0\n")
    (tmp_path / "compose").mkdir()
    top = 'format = 1\nname = "demo"\n'
    assert problems_of(top + example, tmp_path / "compose") == []
