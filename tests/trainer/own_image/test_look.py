"""What an image reports about itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainer.own_image import look


def test_it_reports_what_exists_and_what_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    look.main(["json", "no_such_module", str(tmp_path), "/no/such/directory"], str(tmp_path))
    found = json.loads(capsys.readouterr().out)
    assert found["python"] == list(sys.version_info[:3])
    assert found["lacks"] == ["no_such_module", "/no/such/directory"]
    assert found["output"] == ""
    assert not list(tmp_path.iterdir()), "nothing of the trial is left"


def test_an_output_that_cannot_be_written_is_reported_with_the_systems_message(
    tmp_path: Path,
) -> None:
    assert look.refusal(str(tmp_path / "gone")) == "No such file or directory"


def test_any_python_3_can_read_it() -> None:
    compile(Path(look.__file__).read_text(), look.__file__, "exec")
    text = Path(look.__file__).read_text()
    newer = ("f'", 'f"', " -> ", ":=", "annotations", "match ")
    assert not [word for word in newer if word in text]
