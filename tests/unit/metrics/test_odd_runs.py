"""The metrics of runs whose files are invalid, damaged, old or missing."""

from __future__ import annotations

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.run.run_report import RunMetrics
from cluster_kit.workspace import RunDirectory
from tests.unit.metrics.runs import ends, read, says, tells, uses


def test_invalid_figures_of_a_users_program_are_left_out(run: RunDirectory) -> None:
    for odd in (None, "1", True, [1], {}, 1e40, 10**400):
        fields = dict.fromkeys(("step", "own_steps", "steps_per_s", "loss", "epoch"), odd)
        tells(run, "chief-0", {"time": 1001, "event": "step", **fields},
              {"time": 1001, "event": "metrics", "odd": odd})  # fmt: skip
    tells(run, "chief-0", {"time": 1001, "event": "step", "step": -1})
    told = read(run)
    assert not any(told.all(f"task_{name}") for name in ("step", "steps_total", "loss", "epoch"))
    assert told.all("run_metric") == []


def test_a_program_cannot_create_a_series_for_each_step(run: RunDirectory) -> None:
    says(run, 1, "chief-0", "metrics", **{"x" * 500: 1}, **{f"loss_{n}": n for n in range(300)})
    assert len(read(run).all("run_metric")) == 200


def test_special_characters_in_names_are_escaped(run: RunDirectory) -> None:
    name = 'a"b\\c\nd é'
    says(run, 1, "chief-0", "metrics", **{name: 1, "\ud800": 2})
    assert read(run)("run_metric", metric=name) == 1
    assert read(run)("run_metric", metric="?") == 2


def test_incomplete_and_foreign_files_are_skipped(run: RunDirectory) -> None:
    metrics = RunMetrics(run)
    uses(run, 1, "ps-0", 1.0)
    tells(run, "ps-0", '{"time": 1002, "event": "usage", "cpu_', suffix=".usage")
    tells(run, "ps-0", "no json\n", "[]\n", '{"time": 1002}\n', "\x00\n")
    uses(run, 1, "stranger-7", 1.0)
    (run.path / "events.jsonl").write_text("{half\n")
    run.outcome.write_text('{"id": "id", "succ')
    assert read(metrics)("task_cpu_seconds_total") == 1.0
    line = 's": 3.0, "memory": 1, "rx_bytes": 0, "tx_bytes": 0}\n'
    tells(run, "ps-0", line, suffix=".usage")
    assert read(metrics)("task_cpu_seconds_total") == 3.0


def test_a_run_without_usage_files_has_metrics(run: RunDirectory) -> None:
    says(run, 1, "chief-0", "step", step=5)
    ends(run)
    told = read(run)
    assert told.all("task_cpu_seconds_total") == [] and told("run_success") == 1
    assert told("task_step", task="chief-0") == 5


@pytest.mark.parametrize("record", ['{"id": "old"}', "{half", None])
def test_a_run_of_an_earlier_version_is_read_from_its_outcome(
    run: RunDirectory, record: str | None
) -> None:
    if record is None:
        run.record.unlink()
    else:
        run.record.write_text(record)
    says(run, 1, "chief-0", "step", step=5)
    tasks = [{"name": "chief-0", "role": "chief", "exit_code": 0}, {"name": 1}, None, {}]
    ends(run, cluster="demo", id="", tasks=tasks, timings_s="?", metrics=[], exit_code="?")
    told = read(run)
    assert told("run_success", cluster="demo", run="20261122-100000") == 1
    assert told("task_exit_code", task="chief-0") == 0 and told("task_step", task="chief-0") == 5
    assert told("run_start_time_seconds") is None and told("run_exit_code") is None


def test_a_directory_without_a_run_is_refused(run: RunDirectory) -> None:
    run.record.unlink()
    with pytest.raises(UsageError, match="has neither run"):
        RunMetrics(run).values()
