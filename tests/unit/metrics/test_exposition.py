"""The text of metrics: names, units, help, and the file of a run."""

from __future__ import annotations

import json
from pathlib import Path

from cluster_kit.metrics.prometheus import FAMILIES, STATES, text
from cluster_kit.run.known_secrets import Known
from cluster_kit.run.run_report import exposition, write_metrics
from cluster_kit.workspace import RunDirectory
from tests.make import cluster
from tests.unit.metrics.runs import Read, begun, ends, read, says, trains


def test_all_written_metrics_are_in_the_table_with_their_labels(run: RunDirectory) -> None:
    trains(run)
    ends(run)
    for sample in read(run).samples:
        assert set(sample.labels) == set(FAMILIES[sample.name].all_labels)
    assert len(read(run).all("task_state", task="ps-0")) == len(STATES)


def test_names_and_units_follow_prometheus_conventions() -> None:
    for name, family in FAMILIES.items():
        assert name.startswith("clusterkit_")
        assert name.endswith("_total") == (family.kind == "counter")
        assert not name.endswith(("_ms", "_milliseconds", "_mb", "_mib", "_percent"))
        assert family.help.endswith(".") and "\n" not in family.help
        assert not {"job", "instance", "le", "quantile"} & set(family.all_labels)


def test_the_file_is_complete_and_has_no_secrets(run: RunDirectory) -> None:
    says(run, 1, "chief-0", "metrics", **{"of hunter22": 1})
    path = write_metrics(run, Known(frozenset({"hunter22", "1"}), are_all=True))
    assert path == run.path / "metrics.prom"
    assert not list(run.path.glob(".metrics*"))
    told = Read(path.read_text())
    assert told("run_metric", metric="of ***") == 1 and "hunter22" not in path.read_text()
    assert told.all("task_info", task="worker-1") == [1]


def test_several_runs_are_written_together_each_once(tmp_path: Path) -> None:
    one, other = begun(tmp_path), begun(tmp_path, cluster(worker=1, ps=1))
    told = Read(exposition([one, other, one]))
    assert sorted(told.all("run_info")) == [1, 1]
    assert exposition([one, other]).count("# TYPE clusterkit_run_up gauge") == 1


def test_without_a_run_nothing_is_written() -> None:
    assert text([]) == ""


def test_all_runs_have_the_same_help(run: RunDirectory) -> None:
    """node_exporter refuses files whose help differs."""
    written = write_metrics(run).read_text()
    for name, family in FAMILIES.items():
        if f"# TYPE {name} " in written:
            assert f"# HELP {name} {family.help}\n" in written
    assert json.loads(run.record.read_text())
