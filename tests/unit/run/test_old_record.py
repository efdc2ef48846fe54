"""The record that an older kit has written of a run that is still up."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from cluster_kit.host import Moment
from cluster_kit.platforms.kubernetes.kubernetes_settings import settings_of
from cluster_kit.run.run_directory import Record, read_record, recorded_platform, write_record
from cluster_kit.workspace import new_run
from tests.make import cluster


def test_renamed_fields_are_read(tmp_path: Path) -> None:
    made = cluster(engine="kubernetes", kubernetes={"namespace": "ml", "claims": {"/data": "d/x"}})
    run = new_run(tmp_path, datetime.now())
    write_record(run, Record("1", made, Moment(0.0, 0.0, ""), 0.0, {}, {}))
    written = json.loads(run.record.read_text())
    of_cluster = written["cluster"]
    worker = next(task for task in of_cluster["tasks"] if task["role"] == "worker")
    worker["shm"] = 2**27
    del worker["shm_size"]
    of_cluster["kubernetes"] = of_cluster.pop("settings")
    del of_cluster["one_host"], of_cluster["host_network"]
    run.record.write_text(json.dumps(written))
    record = read_record(run)
    assert record is not None
    assert settings_of(record.cluster) == settings_of(made)
    assert not record.cluster.one_host
    assert [task.shm_size for task in record.cluster.of("worker")] == [2**27, None]
    assert record.cluster.fixed_ip(record.cluster.leader) == ""


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"cluster": {"engine": "other"}}', "[" * 9_000],
    ids=["empty", "cut", "list", "unknown", "deep"],
)
def test_the_platform_of_a_run_is_read_if_its_record_is_one_of_this_kit(
    tmp_path: Path, text: str
) -> None:
    run = new_run(tmp_path, datetime.now())
    assert recorded_platform(run) is None
    write_record(run, Record("1", cluster(engine="kubernetes"), Moment(0.0, 0.0, ""), 0.0, {}, {}))
    assert recorded_platform(run) == "kubernetes"
    run.record.write_text(text)
    assert recorded_platform(run) is None
