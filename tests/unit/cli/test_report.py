"""The verb report: one run, several, and its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from cluster_kit.host import Moment
from cluster_kit.run import run_report
from cluster_kit.run.run_directory import Record, write_record
from cluster_kit.version import __version__
from cluster_kit.workspace import RunDirectory, new_run
from tests.make import cluster
from tests.unit.command_line import Cli


def saved(root: Path, name: str = "demo", hour: int = 10) -> RunDirectory:
    """Write a run with the files of a real one."""
    from datetime import datetime

    run = new_run(root / "runs" / name, datetime(2026, 11, 22, hour))
    write_record(run, Record("id", cluster(), Moment(0.0, 0.0, ""), 100.0, {}, {}))
    run.outcome.write_text(json.dumps({"id": "id", "success": True, "metrics": {"a": 1}}))
    line = {"time": 101.0, "event": "step", "step": 1, "loss": 0.5}
    (run.progress / "chief-0.jsonl").write_text(json.dumps(line) + "\n")
    return run


def test_without_a_name_the_newest_run_is_used(cli: Cli, root: Path) -> None:
    run = saved(root)
    result = cli("report")
    assert (result.code, result.err) == (0, "written: runs/demo/20261122-100000/report.html\n")
    facts = json.loads((run.path / "report.json").read_text())
    assert facts["verdict"]["success"] is True and facts["metrics"] == {"a": 1}
    assert [chart["id"] for chart in facts["charts"]] == ["loss"]


def test_what_tasks_have_reported_is_read_once(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, read = saved(root), []

    def noted(name: str, of: Callable[..., Any]) -> Callable[..., Any]:
        def call(*where: Any) -> Any:
            read.append(name)
            return of(*where)

        return call

    for name in ("entries_of", "samples_of"):
        monkeypatch.setattr(run_report, name, noted(name, getattr(run_report, name)))
    assert cli("report").code == 0
    assert sorted(read) == ["entries_of", "samples_of"]
    assert (
        "fewer than two steps"
        in json.loads((run.path / "report.json").read_text())["scaling"]["why"]
    )


def test_a_run_is_named_by_its_cluster_or_its_directory(cli: Cli, root: Path) -> None:
    old, new = saved(root, hour=9), saved(root, hour=10)
    assert cli("report", "demo").code == 0 and new.report.is_file() and not old.report.exists()
    assert cli("report", str(old.path)).code == 0 and old.report.is_file()


def test_a_directory_with_the_clusters_name_does_not_hide_its_runs(cli: Cli, root: Path) -> None:
    """The program may have a directory with this name."""
    run = saved(root, hour=9)
    (root / "demo").mkdir()
    assert cli("report", "demo").code == 0 and run.report.is_file()
    assert cli("summary", "demo").code == cli("summary", str(run.path)).code


def test_several_runs_are_written_to_one_page_here(cli: Cli, root: Path) -> None:
    saved(root, "one"), saved(root, "two")
    assert cli("report", "one", "two").err == "written: report.html\n"
    assert cli("report", "one", "two", "-o", "both.html").err == "written: both.html\n"
    assert (root / "both.html").read_text().count('"cluster":"demo"') == 2


def test_the_links_to_logs_of_several_runs_lead_to_their_directories(cli: Cli, root: Path) -> None:
    for name in ("one", "two"):
        (saved(root, name).logs / "chief-0.log").write_text("hello\n")
    (root / "my pages").mkdir()
    for page in ("report.html", "my pages/both.html"):
        assert cli("report", "one", "two", "-o", page).code == 0
        links = re.findall(r'"log":"([^"]+)"', (root / page).read_text())
        files = [(root / page).parent / unquote(link) for link in links]
        assert [file.read_text() for file in files] == ["hello\n"] * 2, links
    assert links[0] == "../runs/one/20261122-100000/logs/chief-0.log"


def test_an_outcome_of_an_earlier_run_is_not_shown(cli: Cli, root: Path) -> None:
    run = saved(root)
    run.outcome.write_text(json.dumps({"id": "another", "success": True}))
    assert cli("report").code == 0
    assert json.loads((run.path / "report.json").read_text())["verdict"]["success"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nope",), "no run `nope`: neither a directory, nor a cluster in runs/"),
        (("demoo",), "did you mean `demo`?"),
        (("compose",), "no run is in"),
        (("demo", "-o", "compose"), "compose is a directory"),
        (("demo", "-o", "compose/file/x.html"), "the report cannot be written"),
    ],
)
def test_invalid_arguments_are_refused(
    words: tuple[str, ...], says: str, cli: Cli, root: Path
) -> None:
    saved(root)
    (root / "compose" / "file").write_text("")
    result = cli("report", *words)
    assert result.code in (2, 3) and says in result.err.replace("\n", " ")


def test_without_a_run_the_error_says_how_to_make_one(cli: Cli) -> None:
    result = cli("report")
    assert result.code == 2 and "run `cluster-kit up quickstart` first" in result.err


def test_runs_of_an_earlier_kit_can_be_read(cli: Cli, root: Path) -> None:
    run = saved(root)
    kept = json.loads(run.record.read_text())
    for key in ("tf1", "own_servers", "tensorflow", "tensorboard", "sidecars", "fetch"):
        kept["cluster"].pop(key)
    run.record.write_text(json.dumps(kept))
    assert cli("report", str(run.path)).code == 0
    assert run.report.is_file()


def test_a_report_names_the_kit_that_ran_the_run_not_the_one_that_writes_it(
    cli: Cli, root: Path
) -> None:
    run = saved(root)
    assert cli("report", "demo").code == 0
    facts = json.loads(run.report.with_suffix(".json").read_text())
    assert facts["kit"] == __version__
    (run.path / "compose.yaml").write_text(
        "# cluster-kit 0.1.0 wrote this from compose/demo.toml\n"
    )
    assert cli("report", "demo").code == 0
    assert json.loads(run.report.with_suffix(".json").read_text())["kit"] == "0.1.0"
