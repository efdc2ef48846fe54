"""Every picture of README and docs exists and is made by `make pictures`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Event
from cluster_kit.workspace import Workspace
from docs.pictures import __main__ as command
from docs.pictures import copied
from docs.pictures.listed import DOCS, PICTURES
from docs.pictures.recorded import RecordedView
from tests.docs.markdown import all_pages
from tests.entries import as_entry
from tests.make import cluster

KINDS = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp")


def test_every_picture_in_docs_exists_and_is_made_by_the_command() -> None:
    found = {file.name for file in DOCS.rglob("*") if file.suffix.lower() in KINDS}
    assert found == PICTURES.keys()


def test_every_picture_on_a_page_is_one_of_them_and_has_a_text() -> None:
    shown = [
        ((page.path.parent / link.target).resolve(), link.text)
        for page in all_pages().values()
        for link in page.links
        if link.is_picture
    ]
    assert {path for path, _ in shown} == {DOCS / name for name in PICTURES}
    assert all(text.strip() for _, text in shown)


def test_an_unknown_picture_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["reprot.png"]) == 2
    output = capsys.readouterr().err
    assert "no such picture: reprot.png; there are: quickstart.svg, report.png" in output


def test_without_a_run_the_error_names_the_command_that_makes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(copied, "here", lambda: Workspace(tmp_path))
    with pytest.raises(UsageError, match=r"no build/bench/bench\.png yet"):
        copied.bench(tmp_path / "bench.png")
    monkeypatch.setattr(command, "DOCS", tmp_path)
    assert command.main(["drill.png"]) == 3
    output = capsys.readouterr().err
    assert "not made: drill.png: no runs" in output and "cluster-kit drill quickstart" in output
    assert list(tmp_path.iterdir()) == []


def test_the_newest_of_several_runs_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied, "here", lambda: Workspace(tmp_path))
    for name in ("20261121-100000", "20261122-100000"):
        folder = tmp_path / "runs" / "quickstart-drill" / name
        folder.mkdir(parents=True)
        (folder / "drill.png").write_text(name)
    copied.drill(tmp_path / "drill.png")
    assert (tmp_path / "drill.png").read_text() == "20261122-100000"


def test_the_table_is_recorded_in_mid_training_without_the_network() -> None:
    def at(step: int) -> RunState:
        seen = RunState.of(cluster()).with_event(Event(0.0, "start", "chief-0", None))
        reports = [("start", {"attempt": 1}), ("ready", {}), ("training", {"steps": 100}),
                ("step", {"step": step, "steps_per_s": 9.0})]  # fmt: skip
        for time, (event, fields) in enumerate(reports):
            seen = seen.with_entry(as_entry("chief-0", float(time), event, fields))
        return seen

    view = RecordedView()
    for step in (10, 60, 90):
        view.update(at(step))
    view.close()
    drawn = view.svg.replace("&#160;", " ")
    assert "step 60 of 100" in drawn and "step 90" not in drawn
    assert "@font-face" not in drawn and "http://www.w3.org" in drawn
    assert "url(http" not in drawn and "href" not in drawn, "nothing is loaded from elsewhere"
