"""Curves, traffic, and the whole report.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.report.facts import MOST_VALUES, Edge, charts_of, edges_of, facts_of, repeated
from cluster_kit.report.page import page, profiles_of, samples_of
from tests.make import cluster, gpus, host
from tests.unit.metrics.runs import SINCE, begun, uses
from tests.unit.report.runs import CLUSTER, TAKEN, changed, started, told, trained, used


def test_times_are_seconds_since_the_first_event() -> None:
    late = changed(
        events=[event.__class__(event.time + 1000, event.action, event.task, event.exit_code)
                for event in trained().events],
        entries=[], samples=[], checkpoints=[],
    )  # fmt: skip
    facts = facts_of(late)
    assert (facts["began"], facts["seconds"]) == (1000, 10)
    assert facts["tasks"][0]["spans"] == [{"state": "starting", "begin": 0, "end": 10}]


def test_the_facts_have_everything_that_a_page_shows() -> None:
    facts = facts_of(trained())
    assert facts["verdict"]["success"] is True and facts["metrics"] == {"test_accuracy": 0.96}
    tasks = {task["name"]: task for task in facts["tasks"]}
    assert tasks["chief-0"]["leads"] and not tasks["ps-0"]["leads"]
    assert tasks["chief-0"]["log"] == "logs/chief-0.log" and tasks["ps-0"]["log"] is None
    assert tasks["ps-0"]["exit_code"] == 0
    assert {"kind": "checkpoint", "at": 5.5, "text": "ckpt-1"} in tasks["chief-0"]["marks"]
    assert [chart["id"] for chart in facts["charts"]] == [
        "loss", "accuracy", "steps_per_s", "cpus", "memory", "rx_bps", "tx_bps",
    ]  # fmt: skip
    assert facts["traffic"] == [
        {"sender": "worker-0", "receiver": "ps-0", "bytes": 900, "bps": 100}
    ]
    json.dumps(facts, allow_nan=False)


def test_a_checkpoint_of_a_copied_run_has_no_mark_after_the_end() -> None:
    copied = facts_of(changed(checkpoints=[(5.5, "ckpt-1"), (99.0, "ckpt-2")]))
    marks = [mark["text"] for mark in copied["tasks"][0]["marks"] if mark["kind"] == "checkpoint"]
    assert marks == ["ckpt-1"]


def test_gpus_are_named_without_the_kind_that_cdi_needs() -> None:
    with_gpus = cluster(host(gpus=gpus(2), gpu_driver="cdi"), worker=2, ps=1, gpus="auto")
    tasks = facts_of(changed(cluster=with_gpus))["tasks"]
    assert [task["gpus"] for task in tasks if task["role"] == "worker"] == [["0"], ["1"]]


def test_a_run_without_any_event_has_a_page() -> None:
    facts = facts_of(changed(events=[], entries=[], samples=[], outcome={}, checkpoints=[]))
    assert facts["seconds"] == 0 and facts["charts"] == [] and facts["verdict"]["success"] is None
    assert "<main" in page([facts])


def test_curves_are_in_task_order_and_only_of_tasks() -> None:
    entries = [told(1, name, "step", loss=1.0) for name in ("worker-1", "stranger-0", "chief-0")]
    (chart,) = charts_of(["chief-0", "worker-0", "worker-1"], entries, [])
    assert [curve.name for curve in chart.curves] == ["chief-0", "worker-1"]


@pytest.mark.parametrize("odd", [None, "1", True, float("nan"), float("inf"), 1e40, [1]])
def test_invalid_figures_are_left_out(odd: object) -> None:
    assert charts_of(["chief-0"], [told(1, "chief-0", "step", loss=odd)], []) == []
    assert charts_of(["chief-0"], [told(1, "chief-0", "epoch", val_loss=odd)], []) == []


def test_an_epochs_validation_has_curves_of_its_own() -> None:
    entries = [told(1, "chief-0", "epoch", epoch=1, loss=0.5, val_loss=0.6, val_accuracy=0.7)]
    curves = {
        (chart.id, curve.name): curve.points
        for chart in charts_of(["chief-0"], entries, [])
        for curve in chart.curves
    }
    assert curves == {
        ("loss", "chief-0, epochs"): ((1, 0.5),),
        ("loss", "chief-0, validation"): ((1, 0.6),),
        ("accuracy", "chief-0, validation"): ((1, 0.7),),
    }


def test_long_curves_are_reduced_to_means_of_equal_times() -> None:
    names = [f"worker-{index}" for index in range(50)]
    samples = [used(at, name, cpu_s=at * 0.25) for at in range(400) for name in names]
    charts = charts_of(names, [], samples)
    values = sum(len(curve.points) for chart in charts for curve in chart.curves)
    assert values <= MOST_VALUES * 1.1
    cpus = next(chart for chart in charts if chart.id == "cpus")
    assert {round(value, 6) for curve in cpus.curves for _, value in curve.points} == {0.25}
    times = [at for at, _ in cpus.curves[0].points]
    assert times == sorted(times) and times[-1] > 390


def test_a_page_of_fifty_tasks_and_an_hour_is_small() -> None:
    names = [f"worker-{index}" for index in range(50)]
    samples = [used(at, name, cpu_s=at * 0.37) for at in range(0, 3600, 5) for name in names]
    facts = facts_of(changed(cluster=cluster(worker=48, ps=2), samples=samples))
    assert len(page([facts])) < 500_000


def test_a_page_of_twenty_tasks_and_thousands_of_checkpoints_is_small() -> None:
    of = cluster(worker=15, ps=3, evaluator=1)
    samples = [
        used(at * 60.37, task.name, cpu_s=at * 22.73, memory=1.2345e8 + at, rx_bytes=at * 7e6)
        for at in range(90)
        for task in of.tasks
    ]
    entries = []
    for at in range(1500):
        begin, name = at * 3.7, f"ckpt-{at}"
        entries += [told(begin, "chief-0", "step", step=at * 10, loss=1 / (at + 1.1)),
                    told(begin + 1, "chief-0", "epoch", epoch=at, loss=0.4, accuracy=0.9),
                    told(begin + 3, "evaluator-0", "evaluation", checkpoint=name,
                         written=begin + 1.5, loss=0.1, accuracy=at / 1500)]  # fmt: skip
    saved = [(at * 3.7 + 1.5, f"ckpt-{at}") for at in range(1500)]
    run = changed(cluster=of, events=started(of), entries=entries, samples=samples,
                  checkpoints=saved)  # fmt: skip
    assert len(page([facts_of(run)])) < 500_000


def test_a_rate_over_a_restart_is_left_out() -> None:
    samples = [used(1, "ps-0", 5), used(2, "ps-0", 6), used(3, "ps-0", 0.1), used(4, "ps-0", 0.6)]
    cpus = next(chart for chart in charts_of(["ps-0"], [], samples) if chart.id == "cpus")
    assert cpus.curves[0].points == ((2, 1.0), (4, 0.5))


def test_traffic_of_a_restarted_task_is_added() -> None:
    samples = [used(1, "a", sent_to={"b": 100.0}), used(2, "a"), used(6, "a", sent_to={"b": 600.0}),
               used(9, "a", sent_to={"b": 50.0}), used(11, "a", sent_to={"b": 50.0})]  # fmt: skip
    assert edges_of(samples) == [Edge("a", "b", 650, 550 / 8)]


def test_variables_have_their_latest_place() -> None:
    def at(time: float, variables: object) -> object:
        return told(time, "chief-0", "placement", variables=variables)

    kernel = {"name": "kernel", "on": "ps-1", "bytes": 400}
    facts = facts_of(changed(entries=[at(1, []), at(2, [kernel, "?", {"bytes": "many"}])]))
    assert facts["placement"] == [kernel]
    assert facts_of(changed(entries=[at(1, "odd")]))["placement"] == []
    assert facts_of(trained())["placement"] == []


def test_the_command_repeats_the_run() -> None:
    assert repeated("cluster-kit render smoke --ps 2") == "cluster-kit up smoke --ps 2"
    assert repeated("") == ""


def test_gpus_have_curves_if_there_are_any(tmp_path: Path) -> None:
    run = begun(tmp_path)
    given = ([{"busy": 0.5, "memory": 10}, {"busy": 1.0, "memory": 20}], [{"busy": None}], [])
    for at, told_of in enumerate(given):
        uses(run, at, "worker-0", float(at), gpus=told_of)
        uses(run, at, "ps-0", float(at))
    samples = samples_of(run.output, CLUSTER, SINCE, {})
    charts = {chart["id"]: chart for chart in facts_of(changed(samples=samples))["charts"]}
    busy, memory = charts["gpu_busy"], charts["gpu_memory"]
    assert (busy["unit"], memory["unit"]) == ("share", "bytes")
    assert [(one["name"], one["y"]) for one in busy["curves"]] == [("worker-0", [0.75])]
    assert [(one["name"], one["y"]) for one in memory["curves"]] == [("worker-0", [30.0])]


def test_a_trace_is_linked_with_its_table() -> None:
    (profile,) = facts_of(changed(profiles=[TAKEN]))["profiles"]
    assert profile["file"] == "output/profile/now/trace.json.gz" and profile["bytes"] == 303_000
    assert profile["missing"] == {"ps-0": "it did not answer in time"}
    (task,) = profile["tasks"]
    assert (task["name"], task["runs"], len(task["longest_ops"])) == ("worker-0", 40, 3)
    assert facts_of(trained())["profiles"] == []


def test_only_complete_traces_of_this_run_are_found(tmp_path: Path) -> None:
    texts = {
        "1": json.dumps({**TAKEN, "began": 900}), "2": json.dumps(TAKEN), "3": "{half", "4": "{}",
        "5": json.dumps({**TAKEN, "folder": "profile/5"}),
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / "profile" / name).mkdir(parents=True)
        (tmp_path / "profile" / name / "profile.json").write_text(text)
    (tmp_path / "profile" / "6").mkdir()
    found = profiles_of(tmp_path, since=1000)
    assert [facts["folder"] for facts in found] == ["profile/now", "profile/5"]
    assert profiles_of(tmp_path / "gone", 0) == []
