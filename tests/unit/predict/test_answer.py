"""The answer names what limits and what to change, and says how sure it is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.predict import limits, plan
from cluster_kit.predict.answer import Answer, Point, as_json, predict
from cluster_kit.predict.calibrate import fit
from cluster_kit.predict.plan import Change, Shard
from cluster_kit.predict.profile import Profile
from cluster_kit.predict.question import Question
from tests.schemas import check
from tests.unit.predict.profiles import profile

TINY = [{"name": "v", "bytes": 1000}]


def asked(workers: int, servers: int = 1, change: Change | None = None, **changes: Any) -> Point:
    """The one point of a question."""
    question = Question((workers,), (servers,), change or Change(), steps=40)
    return predict(profile(**changes), question).points[0]


def limit(
    workers: int, servers: int = 1, change: Change | None = None, **changes: Any
) -> tuple[str, str]:
    """Name and sentence of what limits."""
    found = asked(workers, servers, change, **changes).limit
    assert found is not None
    return f"{found.kind} {found.name}", found.text


def test_computation_is_the_limit_if_nothing_else_is() -> None:
    assert limit(2, machines={"bandwidth": "100gbit"})[0] == "compute workers"


def test_the_ps_with_the_fat_variable_is_named_with_what_to_do() -> None:
    variables = [
        {"name": "features/kernel", "bytes": 74_000_000},
        *({"name": f"small{n}", "bytes": 2_000_000} for n in range(13)),
    ]
    name, text = limit(32, 2, variable=variables, placement="greedy")
    assert name == "ps-link ps-0"
    assert "ps-0's link is busy for 9" in text
    assert "features/kernel is 100% of its bytes; split it (MinSizePartitioner)" in text
    name, text = limit(32, variable=variables)
    split = "split it (MinSizePartitioner) over several ps or use"
    assert f"features/kernel is 74% of its bytes; {split}" in text
    name, text = limit(32, variable=variables, placement="split")
    assert "features/kernel is 74% of its bytes; use" in text
    small = {"min_shard": 38_000_000}  # a partitioner makes one part of it
    name, text = limit(32, variable=variables, **small)
    assert "features/kernel is 74% of its bytes; use" in text


def test_as_many_ps_are_advised_as_make_the_busiest_cpu_of_a_ps_fast_enough() -> None:
    found = {
        "variable": [{"name": f"v{n}", "bytes": 1000} for n in range(12)],
        "machines": {"bandwidth": "100gbit"},
        "ps": {"apply": "100ms"},
    }
    name, text = limit(8, 2, **found)
    assert name.startswith("ps-cpu") and text.endswith("; use 4 ps"), text
    assert asked(8, 4, **found).images_per_s > 1.05 * asked(8, 2, **found).images_per_s
    name, text = limit(1, 1, **found)
    assert name == "ps-cpu ps-0" and text.endswith("in each step; use larger batches"), text
    found["variable"] = [{"name": f"v{n}", "bytes": 10_000} for n in range(12)]
    name, text = limit(1, 1, **found)
    assert name == "ps-cpu ps-0" and text.endswith("; send less (float16) or use larger batches")


def test_few_ps_are_tried_if_there_are_very_many_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def shards(found: Profile, ps: int) -> tuple[Shard, ...]:
        tried.append(ps)
        return plan.shards(found, ps)

    monkeypatch.setattr(limits, "shards", shards)
    many = [{"name": "v", "bytes": 10**7, "count": 20_000}]
    predict(profile(variable=many), Question((64,), (1,), steps=10))
    assert 5 < len(set(tried)) < 20


def test_no_more_ps_are_advised_than_the_workers_own_links_can_use() -> None:
    variables = [{"name": f"v{n}", "bytes": 50_000} for n in range(200)]
    found = {"variable": variables, "machines": {"bandwidth": "5mbit"}}
    name, text = limit(8, 2, **found)
    assert name.startswith("ps-link") and text.endswith("; use 5 ps"), text
    assert limit(8, 5, **found)[0] == "worker-link workers"


def test_uneven_placement_is_named() -> None:
    variables = [{"name": f"v{n}", "bytes": 10_000_000 if n % 2 else 1000} for n in range(12)]
    name, text = limit(32, 2, variable=variables)
    assert name == "ps-link ps-1"
    assert "round robin gives it 2.0 times the mean; place by bytes (--placement greedy)" in text


def test_other_limits_are_named() -> None:
    for way, several in (("async-ps", True), ("sync-ps", False)):  # a round needs the chief
        name, text = limit(64, way=way, variable=TINY, chief={"dispatch": "10ms"})
        assert name == "chief chief" and "larger batches" in text
        assert ("several steps in each scheduled function" in text) is several
        assert text.endswith("use fewer workers with larger batches")
    name, text = limit(1, variable=TINY, chief={"dispatch": "150ms"})  # it is not busy all the time
    assert name == "chief chief" and " of it; " in text, text
    assert text.endswith("use larger batches") and "fewer workers" not in text
    assert limit(16, ps={"apply": "100ms"}, machines={"bandwidth": "100gbit"})[0] == "ps-cpu ps-0"
    assert limit(16, transport={"ps": "1gbit"})[0] == "ps-transport ps-0"
    assert limit(1, transport={"connection": "1gbit"})[0] == "ps-transport connection"
    assert limit(1, machines={"bandwidth": "1gbit"})[0] == "worker-link workers"
    slow = limit(8, change=Change(straggler=0.5), way="sync-ps", variable=TINY)
    assert slow[0] == "slowest-worker worker-0"
    assert "worker-0 has 0.5 of the others' speed" in slow[1]
    late = {"latency": "1s"}
    assert limit(1, variable=TINY, machines=late)[0] == "latency latency"
    name, text = limit(8, way="ring", machines={"bandwidth": "1gbit"})
    assert name == "all-reduce each host's link"
    assert "1.75 times 100 MB pass each host's link (1 Gbit/s)" in text
    for way, todo in (("ring", "and --way hierarchical"), ("hierarchical", "more devices")):
        kind, text = limit(64, way=way, variable=TINY, machines={"latency": "1s"})
        assert kind == "latency latency" and text.endswith(todo)


def test_how_many_ps_are_enough_and_why() -> None:
    variables = [{"name": f"v{n}", "bytes": 5_000_000} for n in range(16)]
    found = profile(variable=variables)
    answer = predict(found, Question((32,), (1, 2, 4, 8, 16), steps=40))
    (advice,) = answer.advice
    assert advice.startswith("32 workers: of these counts, 8 ps are enough"), advice
    assert "with 4 ps" in advice
    assert "less: ps-" in advice and "use" not in advice


def test_what_more_ps_do_not_relieve_is_no_reason_for_more() -> None:
    variables = [{"name": f"v{n}", "bytes": 5_000_000} for n in range(16)]
    answer = predict(profile(variable=variables), Question((2,), (1, 2), steps=40))
    (advice,) = answer.advice
    assert "; with 1 ps 7% less; its limit: each worker's own link: " in advice, advice


def test_without_a_batch_the_speeds_are_steps() -> None:
    answer = predict(profile(batch=1), Question((32,), (1, 8), steps=40))
    assert answer.unit == "steps/s"
    assert "images" not in answer.advice[0] and " steps/s" in answer.advice[0]
    assert any(
        line.startswith("steps/s: the steps of all workers together") for line in answer.sure
    )
    assert predict(profile(), Question((2,), (1,), steps=40)).unit == "images/s"


def test_a_limit_is_said_once() -> None:
    variables = [{"name": f"v{n}", "bytes": 50_000} for n in range(40)]
    found = profile(variable=variables, machines={"bandwidth": "5mbit"})
    (advice,) = predict(found, Question((8,), (4, 8), steps=40)).advice
    assert "with 4 ps" in advice and advice.count("each worker's own link") == 1, advice
    (advice,) = predict(found, Question((8,), (8, 16), steps=40)).advice
    assert advice.endswith("; 16 ps are no faster"), advice


def test_where_it_stops_paying() -> None:
    answer = predict(profile(), Question((1, 2, 4, 8, 16, 32), (1,), steps=60))
    assert any(
        line.startswith("beyond 4 workers more bring less than half of their speed: 8 are ")
        for line in answer.advice
    )


def test_the_best_counts_for_a_budget_of_machines() -> None:
    variables = [{"name": f"v{n}", "bytes": 5_000_000} for n in range(20)]
    found = profile(variable=variables)
    answer = predict(found, Question((1,), (1,), budget=12, steps=30))
    (advice,) = answer.advice
    assert advice.startswith("12 machines: "), advice
    speeds = {ps: asked(12 - ps, ps, variable=variables).images_per_s for ps in range(1, 9)}
    found_speed = re.search(r"([0-9]+) workers and ([0-9]+) ps are fastest, ([0-9,]+)", advice)
    assert found_speed is not None
    assert int(found_speed[1]) + int(found_speed[2]) == 12
    best = max(speed or 0 for speed in speeds.values())
    assert float(found_speed[3].replace(",", "")) == pytest.approx(best, rel=0.03)
    with pytest.raises(UsageError, match="--budget 1: at least 2 machines"):
        predict(found, Question((1,), (1,), budget=1, steps=30))


def test_the_overlap_is_a_band_unless_it_was_measured() -> None:
    found = predict(profile(exchange={"overlap": None}), Question((2,), (1,)))
    (point,) = found.points
    assert point.low is not None
    assert point.high is not None
    assert point.images_per_s is not None
    assert point.low < point.images_per_s < point.high
    assert any("overlap" in line for line in found.sure)
    measured = asked(2)
    assert measured.low == measured.high == measured.images_per_s


def test_efficiency_epoch_and_staleness() -> None:
    point = asked(4, machines={"bandwidth": "100gbit"}, epoch_images=10_000)
    assert point.efficiency == pytest.approx(0.95, abs=0.03)
    assert point.epoch_s == pytest.approx(10_000 / (point.images_per_s or 0))
    assert point.staleness is not None
    assert point.staleness.mean == pytest.approx(3, abs=0.3)
    assert point.staleness.p50 <= point.staleness.p95 <= point.staleness.max
    assert asked(4, way="sync-ps").staleness is None


def test_other_machines() -> None:
    base = asked(4).images_per_s or 0
    for change in (
        Change(speed=2.0),
        Change(bandwidth=40e9),
        Change(way="ring"),
        Change(overlap=1.0),
    ):
        assert (asked(4, change=change).images_per_s or 0) > base
    for change in (Change(straggler=0.2), Change(latency=0.1)):
        assert (asked(4, change=change).images_per_s or 0) < base
    one_link = asked(4, 2, Change(devices_per_host=4)).images_per_s or 0
    assert one_link < 0.9 * (asked(4, 2).images_per_s or 0)
    wide = {"cpus": 2, "bandwidth": "10gbit"}
    assert (asked(4, change=Change(cpus=4), machines=wide).images_per_s or 0) > base
    assert asked(4, change=Change(ps="beside")).machines == 4
    with pytest.raises(UsageError, match="does not say on how many CPUs"):
        asked(4, change=Change(cpus=4))
    with pytest.raises(UsageError, match="how fast a host's link is"):
        asked(4, machines={"bandwidth": None})


def test_failures_take_time_and_need_what_one_costs() -> None:
    change = Change(failures=1 / 86_400)
    with pytest.raises(UsageError, match="does not say what a failure costs"):
        asked(4, change=change)
    costs = {"checkpoint": 5, "restart": 60}
    point = asked(4, change=change, failures=costs)
    waiting = asked(4, change=change, failures=costs, way="sync-ps")
    assert point.goodput is not None
    assert waiting.goodput is not None
    assert 0.9 < waiting.goodput.share < point.goodput.share < 1
    assert waiting.goodput.checkpoint_every_s == pytest.approx(
        (2 * 5 * 86_400 / 5) ** 0.5, rel=0.02
    )


def test_no_figure_if_failures_leave_no_time() -> None:
    costs = {"checkpoint": "10m", "restart": "10m"}
    point = asked(4, change=Change(failures=1 / 60), failures=costs, epoch_images=10)
    assert point.images_per_s is None
    assert point.unknown.startswith("machines fail more often")


def test_no_figure_where_the_model_does_not_hold() -> None:
    rdma = asked(4, machines={"network": "rdma"})
    assert rdma.images_per_s is None
    assert rdma.unknown.startswith("RDMA")
    assert asked(4, way="ring", machines={"network": "rdma"}).images_per_s
    far = asked(4, machines={"input": "network"})
    assert "network storage" in far.unknown
    numa = asked(4, change=Change(cpus=12), machines={"cpus": 16, "numa_nodes": 2})
    assert numa.unknown.startswith("NUMA")


ROWS = [
    {"workers": 1, "ps": 1, "images_per_s": 60.0, "calibrate": True},
    {"workers": 2, "ps": 1, "images_per_s": 100.0, "calibrate": True},
    {"workers": 4, "ps": 1, "images_per_s": 150.0},
]


def test_calibrating_rows_are_met_and_others_are_compared() -> None:
    found = profile(step={"seconds": 0.3}, exchange={"overlap": None}, measured=ROWS)
    found = found.model_copy(update={"step": found.step.model_copy(update={"seconds": None})})
    answer = predict(found, Question((1, 2, 4), (1,)))
    one, two, four = answer.points
    assert one.images_per_s == pytest.approx(60, rel=0.01)
    assert two.images_per_s == pytest.approx(100, rel=0.04)
    assert one.calibrates
    assert one.error is None
    assert four.error == pytest.approx((four.images_per_s or 0) / 150 - 1)
    assert any("against 1 measured row" in line for line in answer.sure)
    assert answer.sure[0].startswith("calibrated on 1 worker and 2 workers: a step of ")
    assert fit(found, 0.0, True).remote or fit(found, 0.0, True).overlap


def test_if_two_workers_are_more_than_twice_as_fast_as_one_both_are_missed_by_as_much() -> None:
    """The seconds came from one worker alone, so that all predictions had its error."""
    rows = [
        {"workers": 1, "images_per_s": 100.0, "calibrate": True},
        {"workers": 2, "images_per_s": 242.0, "calibrate": True},
    ]
    found = profile(way="ring", step={"seconds": None, "spread": 0.0}, measured=rows,
                    variable=TINY, exchange={"overlap": 0.0})  # fmt: skip
    points = predict(found, Question((1, 2, 8), (1,))).points
    speeds = [point.images_per_s for point in points]
    assert speeds == pytest.approx([110.0, 220.0, 880.0], rel=2e-3)


def test_fewer_workers_than_were_measured_are_said_to_be_unsure() -> None:
    rows = [{"workers": 2, "images_per_s": 100.0, "calibrate": True}]
    found = profile(way="ring", step={"seconds": None, "spread": 0.0}, measured=rows)

    def is_unsure(workers: int) -> bool:
        sure = predict(found, Question((workers,), (1,))).sure
        return any("fewer than 2 workers" in line for line in sure)

    assert (is_unsure(1), is_unsure(2)) == (True, False)


def test_a_row_that_the_links_cannot_move_is_refused() -> None:
    rows = [{"workers": 1, "ps": 1, "images_per_s": 10_000.0, "calibrate": True}]
    found = profile(measured=rows)
    found = found.model_copy(update={"step": found.step.model_copy(update={"seconds": None})})
    with pytest.raises(ManifestError, match="more than the profile's links"):
        predict(found, Question((1,), (1,)))


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="only synchronous ps have backup workers"):
        asked(4, change=Change(backup=1))
    with pytest.raises(UsageError, match="leaves no worker of 4") as refused:
        asked(4, change=Change(backup=4, way="sync-ps"))
    assert "--workers 5,10" in refused.value.hint
    with pytest.raises(UsageError, match="4096 workers and 1024 ps: too much to simulate"):
        predict(profile(), Question((4096,), (1024,)))
    with pytest.raises(UsageError, match="12 points with up to 4096 workers: too much"):
        predict(profile(), Question((2048, 4000, 4096), (1, 100, 200, 300)))
    with pytest.raises(UsageError, match="points"):
        predict(profile(), Question(tuple(range(1, 60)), tuple(range(1, 60))))


def test_json_keeps_to_its_schema() -> None:
    answers: list[Answer] = [
        predict(profile(measured=ROWS), Question((1, 4), (1, 2), steps=20)),
        predict(profile(way="ring", machines={"input": "network"}), Question((4,))),
        predict(
            profile(failures={"checkpoint": 1, "restart": 2}, epoch_images=10),
            Question((2,), (1,), Change(failures=1e-5), steps=20),
        ),
    ]
    for answer in answers:
        check("predict", as_json(answer))


def test_the_same_question_has_the_same_answer() -> None:
    question = Question((3,), (2,), steps=50)
    assert predict(profile(), question) == predict(profile(), question)


def test_memory_of_other_devices_is_said_not_to_be_predicted() -> None:
    for change, said in ((Change(way="ring"), True), (Change(speed=12), True), (Change(), False)):
        answer = predict(profile(way="async-ps"), Question(workers=(2,), ps=(1,), change=change))
        assert any("memory" in line for line in answer.sure) == said
