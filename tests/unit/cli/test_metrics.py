"""The verb metrics: one run, several, a file, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.make import cluster
from tests.unit.command_line import Cli
from tests.unit.metrics.runs import Read, begun, ends


def saved(root: Path, name: str = "demo") -> Path:
    run = begun(root, cluster(name=name, worker=1, ps=1))
    ends(run)
    return run.path


def test_without_a_name_the_newest_run_is_used(cli: Cli, root: Path) -> None:
    saved(root)
    result = cli("metrics")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("# HELP"), result.out
    assert Read(result.out)("run_success", cluster="demo") == 1


def test_several_runs_are_printed_together(cli: Cli, root: Path) -> None:
    path = saved(root, "one")
    saved(root, "two")
    told = Read(cli("metrics", str(path), "two", "one").out)
    assert told("run_up", cluster="one") == told("run_up", cluster="two") == 0


def test_a_file_for_node_exporter(cli: Cli, root: Path) -> None:
    saved(root)
    result = cli("metrics", "demo", "-o", "textfiles/demo.prom")
    assert (result.code, result.out, result.err) == (0, "", "written: textfiles/demo.prom\n")
    assert Read((root / "textfiles" / "demo.prom").read_text())("run_success") == 1
    assert [file.name for file in (root / "textfiles").iterdir()] == ["demo.prom"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nope",), "no run `nope`: neither a directory, nor a cluster in runs/"),
        (("demoo",), "did you mean `demo`?"),
        (("compose",), "no run is in compose"),
        (("demo", "-o", "compose"), "compose is a directory: node_exporter reads files *.prom"),
        (("demo", "-o", "x.txt"), "x.txt does not end with .prom"),
        (("demo", "-o", "compose/file/x.prom"), "compose/file/x.prom cannot be written"),
    ],
)
def test_invalid_arguments_are_refused(
    words: tuple[str, ...], says: str, cli: Cli, root: Path
) -> None:
    saved(root)
    (root / "compose" / "file").write_text("")
    result = cli("metrics", *words)
    assert result.code in (2, 3) and says in result.err.replace("\n", " ")
    assert result.out == "" and not (root / "x.txt").exists()


def test_without_a_run_the_error_says_how_to_make_one(cli: Cli) -> None:
    result = cli("metrics")
    assert result.code == 2 and "run `cluster-kit up quickstart` first" in result.err
