"""A profile out of what a run recorded: its figures, its errors, and that `predict` reads it."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.cli.predict import WRITTEN
from cluster_kit.compare import short_runs
from cluster_kit.contract.events import Step
from cluster_kit.errors import KitError, UsageError
from cluster_kit.host import Moment
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.usage import Sample
from cluster_kit.predict.answer import predict
from cluster_kit.predict.measure import (
    Alone,
    Figures,
    Moved,
    Used,
    _pairs,
    figures_of,
    moved_of,
    profile_of,
    sentences,
)
from cluster_kit.predict.plan import Change, Setup, shards
from cluster_kit.predict.profile import Profile, load, parse, text
from cluster_kit.predict.question import Question
from cluster_kit.predict.scaling import scaling_of
from cluster_kit.predict.simulate import Simulated, simulate
from cluster_kit.resolved import Cluster
from cluster_kit.run.run_directory import Record, write_record
from cluster_kit.workspace import RunDirectory, new_run
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.command_line import MANIFEST, Cli

MB = 1_000_000
VARIABLES = (
    {"name": "features/kernel", "on": "ps-0", "bytes": 800_000, "order": 0},
    {"name": "Adam/m/features/kernel", "on": "ps-0", "bytes": 800_000, "order": 2},
    {"name": "bias", "on": "ps-0", "bytes": 200_000, "order": 1},
)


def profile_of_run(*run: Any, name: str = "") -> Profile:
    return profile_of([figures_of(*run, name=name)])


def limited(workers: int = 2, ps: int = 1, bandwidth: str = "100mbit", **keys: Any) -> Cluster:
    roles = {
        "worker": {"cpus": 0.5, "bandwidth": bandwidth},
        "ps": {"cpus": 0.5, "bandwidth": bandwidth},
        "chief": {"cpus": 0.5},
    }
    return cluster(**{"worker": workers, "ps": ps, "role": roles, **keys})


def recorded(
    made: Cluster,
    step_s: float = 0.5,
    seconds: int = 60,
    variables: Sequence[Mapping[str, Any]] | None = VARIABLES,
    more: Sequence[Entry] = (),
    batch: int | None = 32,
) -> tuple[Cluster, list[Entry], list[Sample]]:
    """What a coordinator's run records: each worker makes a step in `step_s`, with 1 MB each way,
    0.2 s of its CPU, 0.01 s of the ps's and 0.004 s of the chief's."""
    workers = [task.name for task in made.tasks if task.role == "worker"]
    entries = [as_entry("chief-0", 0.0, "start", {"attempt": 1})]
    if batch:
        entries.append(as_entry("chief-0", 1.0, "training", {"images_per_step": batch}))
    if variables is not None:
        entries.append(as_entry("chief-0", 1.0, "placement", {"variables": list(variables)}))
    samples = []
    for second in range(seconds + 1):
        count = second / step_s
        entries += [as_entry(one, float(second), "step", {"own_steps": count}) for one in workers]
    for second in range(seconds + 2):
        rates = dict.fromkeys(workers, (0.2 / step_s, MB / step_s))
        all_steps = len(workers) / step_s
        servers = [task.name for task in made.tasks if task.role == "ps"]
        rates |= {name: (0.01 * all_steps / len(servers), 0.0) for name in servers}
        rates["chief-0"] = 0.004 * all_steps, 0.0
        samples += [
            Sample(name, second - 0.5, cpu * second, 1.0, size * second, size * second)
            for name, (cpu, size) in rates.items()
        ]
    return made, sorted([*entries, *more], key=lambda one: one.time), samples


def test_a_worker_that_was_started_again_shows_no_undisturbed_speed() -> None:
    again = [as_entry("worker-1", at, "start", {"attempt": 1}) for at in (0.5, 30.0)]
    with pytest.raises(UsageError, match="started again during the training: worker-1;"):
        figures_of(*recorded(limited(), more=again))
    at_the_end = [
        as_entry("chief-0", 61.0, "end", {"exit_code": 6}),
        *(as_entry("worker-1", at, "start", {"attempt": 1}) for at in (0.5, 62.0)),
    ]
    assert figures_of(*recorded(limited(), more=at_the_end)).workers == 2


def test_a_step_that_sends_nothing_tells_nothing_of_ps() -> None:
    """Graph mode trains in the process if there is one replica, whether there are ps or not."""
    made, entries, samples = recorded(limited(1))
    idle = [replace(one, rx_bytes=one.time, tx_bytes=one.time) for one in samples]
    with pytest.raises(Alone, match="a step exchanges nothing with the ps"):
        figures_of(made, entries, idle)
    ring = recorded(limited(1, ps=0, chief=0, style="all-tasks"))
    figures_of(*ring)
    with pytest.raises(UsageError, match="--way sync-ps: demo has no ps"):
        figures_of(*ring, way="sync-ps")


def test_a_runs_page_has_its_speed_with_2_4_and_8_times_the_workers() -> None:
    """Where a run lacks what a prediction needs, it says so in one line instead of figures."""
    found = scaling_of(*recorded(limited()))
    assert [point["workers"] for point in found["points"]] == [2, 4, 8, 16]
    assert (found["unit"], found["why"]) == ("images", "")
    speeds = [point["speed"] for point in found["points"]]
    assert speeds[0] == pytest.approx(2 * 32 / 0.5, rel=0.1)
    assert "ps-0's link" in found["points"][-1]["limit"]
    assert found["points"][-1]["efficiency"] < 0.7
    assert scaling_of(*recorded(limited(), batch=None))["unit"] == "steps"
    short = scaling_of(*recorded(limited(), seconds=2))
    assert short["points"] == [] and short["why"] and "\n" not in short["why"]
    many = scaling_of(*recorded(limited(workers=40)))
    assert [point["workers"] for point in many["points"]] == [40, 80, 160]


def test_the_end_of_a_run_of_many_workers_simulates_no_more_than_that_of_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calibration took 25 s of CPU for 40 workers: 400 steps of each, 80 times."""
    simulated: list[int] = []

    def counted(planned: Setup, steps: int) -> Simulated:
        simulated.append(planned.workers * steps)
        return simulate(planned, steps)

    monkeypatch.setattr("cluster_kit.predict.calibrate.simulate", counted)
    assert scaling_of(*recorded(limited(workers=100)))["points"]
    assert sum(simulated) < 80_000


def test_one_run_gives_bytes_work_and_a_row_that_calibrates() -> None:
    profile = profile_of_run(*recorded(limited()), name="demo/1")
    assert (profile.way, profile.batch, profile.placement) == ("async-ps", 32, "round-robin")
    assert [(one.name, one.size) for one in profile.variables] == [
        ("features/kernel", 800_000), ("bias", 200_000),
    ]  # fmt: skip
    [held] = shards(profile, 1)
    assert held.pull == pytest.approx(MB, rel=0.01) and held.push == pytest.approx(MB, rel=0.01)
    assert profile.machines.bandwidth == 100e6 and profile.machines.cpus == 0.5
    assert profile.ps.apply == pytest.approx(0.01 / 0.5, rel=0.02)
    assert profile.chief.dispatch == pytest.approx(0.004 / 0.5, rel=0.02)
    [row] = profile.measured
    assert row.calibrate and (row.workers, row.ps) == (2, 1)
    assert row.images_per_s == pytest.approx(2 * 32 / 0.5, rel=0.01)


def test_what_was_measured_is_predicted_again() -> None:
    profile = profile_of_run(*recorded(limited()), name="demo/1")
    [point] = predict(profile, Question(workers=(2,), ps=(1,))).points
    assert point.images_per_s == pytest.approx(128, rel=0.02)


def test_a_run_with_a_straggler_predicts_workers_of_equal_speed() -> None:
    """Three workers, one of a tenth of the others' speed: two equal ones are not two thirds."""
    made, entries, samples = recorded(limited(3))
    slow = [
        replace(one, event=replace(one.event, own_steps=one.event.own_steps / 10))
        if one.task == "worker-2" and isinstance(one.event, Step) and one.event.own_steps
        else one
        for one in entries
    ]
    figures = figures_of(made, slow, samples)
    assert list(sentences(figures))[-1].startswith("worker-2 has 0.1 of the others' speed")
    profile = profile_of([figures])
    [row] = profile.measured
    assert (row.slowest, row.images_per_s) == (0.1, pytest.approx(2.1 * 32 / 0.5, rel=0.02))
    answer = predict(profile, Question(workers=(2, 3), ps=(1,)))
    two, three = answer.points
    assert two.images_per_s == pytest.approx(2 * 32 / 0.5, rel=0.05)
    assert three.measured is None
    assert any(
        "a straggler, one worker with 0.1 of the others' speed" in one for one in answer.sure
    )
    again = Question(workers=(3,), ps=(1,), change=Change(straggler=0.1))
    [as_measured] = predict(profile, again).points
    assert as_measured.images_per_s == pytest.approx(row.images_per_s, rel=0.02)
    assert profile_of_run(*recorded(limited(3))).measured[0].slowest is None


def test_two_bandwidths_tell_what_overlaps() -> None:
    """1 MB each way takes 0.16 s at 100 Mbit/s and 0.32 s at 50: half of the 0.16 s hides."""
    fast = figures_of(*recorded(limited(1), step_s=0.5), name="fast")
    slow = figures_of(*recorded(limited(1, bandwidth="50mbit"), step_s=0.58), name="slow")
    more = figures_of(*recorded(limited(2), step_s=0.52), name="more")
    profile = profile_of([slow, more, fast])
    assert profile.exchange.overlap == pytest.approx(0.5, abs=0.05)
    assert profile.machines.bandwidth == 100e6
    assert [(row.workers, row.bandwidth, row.calibrate) for row in profile.measured] == [
        (1, 50e6, False), (1, None, True), (2, None, True),
    ]  # fmt: skip
    assert parse(tomllib.loads(text(profile)), "again") == profile


def test_runs_of_different_trainings_are_refused() -> None:
    one, other = (figures_of(*recorded(limited(), batch=b), name=f"b{b}") for b in (32, 64))
    with pytest.raises(
        UsageError, match=r"b64 \(async-ps, batch 64\) is another training than b32"
    ):
        profile_of([one, other])


def test_synchronous_updates_show_in_the_counts() -> None:
    rounds = [
        as_entry("chief-0", float(second), "step", {"step": 2 * second}) for second in range(61)
    ]
    profile = profile_of_run(*recorded(limited(), more=rounds, batch=64))
    assert (profile.way, profile.batch) == ("sync-ps", 32)
    both = [as_entry("chief-0", float(s), "step", {"step": 4 * s}) for s in range(61)]
    assert profile_of_run(*recorded(limited(), more=both)).way == "async-ps"


def test_an_all_reduce_has_the_bytes_of_one_gradient() -> None:
    made = cluster(worker=2, ps=0, chief=0, style="all-tasks")
    steps = [as_entry("worker-0", float(s), "step", {"step": 2 * s}) for s in range(61)]
    samples = [
        Sample(f"worker-{n}", s - 0.5, 0.4 * s, 1.0, 2.0 * MB * s, 2.0 * MB * s)
        for s in range(62)
        for n in range(2)
    ]
    profile = profile_of_run(made, steps, samples)
    assert profile.way == "ring" and profile.batch == 1
    assert profile.bytes == pytest.approx(MB, rel=0.01)  # each sends 2 (n-1)/n times as much
    assert "a step counts as one image" in profile.source
    alone = cluster(worker=1, ps=0, chief=0, style="all-tasks")
    with pytest.raises(UsageError, match="one worker alone exchanges nothing") as error:
        profile_of_run(alone, steps, samples)
    assert error.value.hint == "measure a run with worker = 2 or more"


def test_the_times_between_phases_and_an_earlier_attempt_do_not_count() -> None:
    made, entries, samples = recorded(limited())
    pause = [
        as_entry("chief-0", 30.0, "phase", {"name": "validation"}),
        as_entry("chief-0", 40.0, "phase", {"name": "training"}),
    ]
    entries = [e for e in entries if not (30 < e.time < 40 and e.task.startswith("worker"))]
    figures = figures_of(made, sorted([*entries, *pause], key=lambda e: e.time), samples)
    assert figures.seconds == pytest.approx(59 * 0.8 - 10, abs=1)
    again = [as_entry("chief-0", 20.0, "start", {"attempt": 2})]
    later = figures_of(made, sorted([*recorded(made)[1], *again], key=lambda e: e.time), samples)
    assert later.seconds == pytest.approx(39 * 0.8, abs=1)


def test_a_full_link_tells_nothing_of_the_step_so_its_cpu_does() -> None:
    """Two workers with 1 MB in 0.16 s: the ps's link of 100 Mbit/s is full; 0.2 s of CPU at 0.5."""
    made, entries, samples = recorded(limited(), step_s=0.16)
    samples += [Sample("ps-0", s - 0.25, 0.125 * s, 1.0, 12.4e6 * s, 12.4e6 * s) for s in range(62)]
    samples = [one for one in samples if one.task != "ps-0" or one.time % 1 == 0.75]
    profile = profile_of_run(made, entries, samples)
    assert profile.step.seconds == pytest.approx(0.4, rel=0.01)
    assert not profile.measured[0].calibrate


@pytest.mark.parametrize(
    ("placed", "rule", "names"),
    [
        ([("a", 0, 10, 0), ("b", 1, 10, 1), ("c", 0, 10, 2)], "round-robin", ["a", "b", "c"]),
        ([("big", 0, 90, 0), ("b", 1, 10, 1), ("c", 1, 10, 2)], "greedy", ["big", "b", "c"]),
        ([("k/part_0", 0, 50, 0), ("k/part_1", 1, 50, 1)], "split", ["k"]),
        ([("a", 0, 10, None), ("c", 0, 9, None), ("b", 1, 10, None)], "round-robin",
         ["a", "b", "c"]),
    ],
)  # fmt: skip
def test_the_rule_of_placement(
    placed: list[tuple[str, int, int, int | None]], rule: str, names: list[str]
) -> None:
    variables = [
        {"name": n, "on": f"ps-{ps}", "bytes": size * 1000}
        | ({} if order is None else {"order": order})
        for n, ps, size, order in placed
    ]
    profile = profile_of_run(*recorded(limited(2, 2), variables=variables))
    assert profile.placement == rule
    assert [one.name for one in profile.variables] == names


def test_without_a_placement_each_ps_has_what_it_moved() -> None:
    made, entries, samples = recorded(limited(2, 2), variables=None)
    moved = {"ps-0": 3.0, "ps-1": 1.0}
    samples = [
        one if one.task not in moved
        else Sample(one.task, one.time, one.cpu_s, 1.0, moved[one.task] * one.time,
                    moved[one.task] * one.time)
        for one in samples
    ]  # fmt: skip
    first, second = profile_of_run(made, entries, samples).variables
    assert first.pulled == pytest.approx(3 * second.pulled, rel=0.01)


@pytest.mark.parametrize(
    ("seconds", "step_s", "message"),
    [
        (4, 0.1, "demo is too short for a profile: 64 steps of all workers in 3.2 s"),
        (60, 20.0, "demo is too short for a profile: 5 steps of all workers in 47.2 s"),
        (0, 1.0, "worker-0 of demo reported fewer than two steps"),
    ],
)
def test_a_run_that_is_too_short(seconds: int, step_s: float, message: str) -> None:
    with pytest.raises(UsageError) as error:
        profile_of_run(*recorded(limited(), step_s, seconds), name="demo")
    assert error.value.message.startswith(message)
    assert "train" in error.value.hint


def test_what_a_restart_left_of_a_run_is_too_short() -> None:
    made, entries, samples = recorded(limited(), 0.1, 60)
    began = as_entry("chief-0", 57.0, "start", {"attempt": 2})
    with pytest.raises(UsageError, match=r"^demo, since chief-0 was started again, is too short"):
        profile_of_run(made, sorted([*entries, began], key=lambda e: e.time), samples, name="demo")


def test_hostile_names_and_sizes_make_no_invalid_profile() -> None:
    variables = [
        {"name": 'a"\n[step]\nseconds = 9', "on": "ps-0", "bytes": 5000, "order": 0},
        {"name": "x" * 10_000, "on": "ps-0", "bytes": 5000, "order": float("nan")},
        {"name": "negative", "on": "ps-0", "bytes": -1}, {"name": 3, "on": "ps-0", "bytes": 1},
        {"name": "elsewhere", "on": "ps-7", "bytes": 10}, "text", None,
    ]  # fmt: skip
    profile = profile_of_run(*recorded(limited(), variables=variables))  # type: ignore[arg-type]
    assert len(profile.variables) == 2
    assert parse(tomllib.loads(text(profile)), "again") == profile


# The command.


def saved(root: Path, seconds: int = 60, workers: int = 2) -> RunDirectory:
    """Write a run with the files of a real one."""
    from datetime import datetime

    made, entries, samples = recorded(limited(workers), seconds=seconds)
    run = new_run(root / "runs" / "demo", datetime(2026, 11, 22, 10))
    write_record(run, Record("id", made, Moment(0.0, 0.0, ""), 0.0, {}, {}))
    lines: dict[str, list[str]] = {}
    for entry in entries:
        fields = {k: v for k, v in vars(entry.event).items() if v is not None}
        name = type(entry.event).__name__.lower()
        line = {"time": entry.time, "event": name, **fields}
        lines.setdefault(f"{entry.task}.jsonl", []).append(json.dumps(line))
    for one in samples:
        line = {"time": max(0.0, one.time), "event": "usage", "cpu_s": one.cpu_s, "memory": 1.0,
                "rx_bytes": one.rx_bytes, "tx_bytes": one.tx_bytes}  # fmt: skip
        lines.setdefault(f"{one.task}.usage", []).append(json.dumps(line))
    for name, content in lines.items():
        (run.progress / name).write_text("\n".join(content) + "\n", encoding="utf-8")
    return run


def test_measure_writes_a_profile_beside_the_run(cli: Cli, root: Path) -> None:
    run = saved(root)
    said = cli("measure", "demo")
    assert said.code == 0, said.err
    lines = said.err.splitlines()
    assert lines[0] == "2 workers, 1 ps, 100mbit (async-ps): 128 images/s over 47 s"
    assert lines[1].startswith("a step of one worker: 0.5 s, 0.2 s of CPU, 1 MB received, 1 MB")
    assert lines[2] == "for it the ps use 0.01 s of CPU and the chief 0.004 s of CPU"
    assert lines[3] == "written: runs/demo/20261122-100000/profile.toml"
    file = run.path / "profile.toml"
    assert file.read_text().startswith(WRITTEN) and load(file).batch == 32
    assert cli("measure", "demo", "--batch", "64").code == 0  # it may replace what it wrote
    assert load(file).batch == 64
    file.write_text(file.read_text().removeprefix(WRITTEN))
    said = cli("measure", "demo")
    assert said.code == 2 and "`measure` did not write it" in said.err
    assert cli("measure", "demo", "-o", str(root / "other.toml")).code == 0


def test_a_short_run_with_too_few_steps_says_how_to_give_it_more_time(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = saved(root, seconds=4)
    (root / "compose" / "demo.toml").write_text(MANIFEST)
    monkeypatch.setattr(short_runs, "directory", lambda _: ended)
    for success in (False, True):
        outcome, asked = SimpleNamespace(success=success), list[Any]()
        monkeypatch.setattr(
            short_runs, "run", lambda *given, o=outcome, a=asked: (a.append(given[2]), o)[1]
        )
        said = cli("measure", "compose/demo.toml", "--seconds", "40", "--args", "--epochs 30")
        assert asked[0]["extra_args"] == ["--epochs", "30"] and asked[0]["ps"] == 1
        assert said.code == 2 and "is too short for a profile" in said.err
        assert said.err.startswith("training for at most 40 s: 1 worker, 1 ps\n")
        assert ("give each run more time: --seconds 80" in said.err) is not success
        assert ('such as --args "--epochs 100"' in said.err) is success
        assert "train for more steps or epochs" in said.err


def test_a_slow_link_on_which_nothing_was_measured_leaves_overlap_unknown(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [saved(root, workers=1), saved(root), saved(root, seconds=4, workers=1)]
    given = iter([*runs, runs[0]])
    (root / "compose" / "demo.toml").write_text(MANIFEST)
    outcome = SimpleNamespace(success=True, metrics={})
    monkeypatch.setattr(short_runs, "run", lambda *_: outcome)
    monkeypatch.setattr(short_runs, "directory", lambda _: next(given))
    said = cli("measure", "compose/demo.toml")
    assert said.code == 0, said.err
    assert "is too short for a profile: " in said.err
    assert ": how much communication hides stays unknown\n  → " in said.err
    profile = load(runs[2].path / "profile.toml")
    assert [row.workers for row in profile.measured] == [1, 2]
    assert profile.exchange.overlap is None


def test_predict_of_a_run_needs_no_profile_before(cli: Cli, root: Path) -> None:
    run = saved(root)
    said = cli("predict", "demo", "--workers", "2", "--ps", "1", "--json")
    assert said.code == 0, said.err
    [point] = json.loads(said.out)["points"]
    assert point["measured"] == pytest.approx(128, rel=0.01) and point["calibrates"]
    assert not (run.path / "profile.toml").exists()


def test_errors_of_the_command(cli: Cli, root: Path) -> None:
    saved(root, seconds=4)
    for words, message in (
        (("measure", "demo"), "demo/20261122-100000 is too short for a profile"),
        (("predict", "demo"), "demo/20261122-100000 is too short for a profile"),
        (("measure", "demo", "--way", "rng"), "--way rng: not known"),
        (("measure", "demo", "--seconds", "40"), "--seconds: demo has ended"),
        (("measure", "--args", "--epochs 3"), "--args: the newest run has ended"),
        (("measure", "nothing"), "no run `nothing`"),
    ):
        said = cli(*words)
        assert said.code == 2 and message in said.err, (words, said.err)
        assert "→" in said.err


def test_reports_at_one_moment_are_no_error() -> None:
    same = [as_entry("worker-0", 30.0, "step", {"own_steps": 60 + n}) for n in range(1, 9)]
    made, entries, samples = recorded(limited(1), more=same)
    first = [one for one in entries if one.task != "worker-0" or one.time in (0.0, 30.0)]
    last = as_entry("worker-0", 60.0, "step", {"own_steps": 68})
    found = figures_of(made, [*first, last], samples, name="demo/1")
    assert found.spread is None


@pytest.mark.parametrize(("lengths", "counted", "spread"), [
    ((1.5,), True, None),
    ((1.5,), False, 0.45),
    ((0.05,), True, None),
    ((0.2, 1.0, 0.9, 2.0, 0.4), True, 0.7),
])  # fmt: skip
def test_counts_of_a_clock_are_whole_and_their_rounding_is_no_spread(
    lengths: Sequence[float], counted: bool, spread: float | None
) -> None:
    """Steps of equal length, counted every 2 s, are 1, 1, 2, 1 … of 1.5 s each."""
    random, ends, at = Random(1), list[float](), 0.0
    while at < 400.0:
        ends.append(at := at + random.choice(lengths))
    reports = [
        as_entry("worker-0", time, "step", {
            "own_steps": sum(end <= time for end in ends), **({"counted": True} if counted else {}),
        })
        for time in map(float, range(0, 400, 2))
    ]  # fmt: skip
    made, entries, samples = recorded(limited(1), seconds=400)
    others = [one for one in entries if one.task != "worker-0"]
    run = sorted([*others, *reports], key=lambda one: one.time)
    found = figures_of(made, run, samples, name="demo/1").spread
    assert found == (None if spread is None else pytest.approx(spread, abs=0.25))


def test_the_lengths_of_single_steps_are_kept_as_their_distribution() -> None:
    """A tenth of the steps takes three times as long: no normal distribution says that."""
    random, ends, at = Random(2), list[float](), 0.0
    while at < 300.0:
        ends.append(at := at + (1.5 if random.random() < 0.1 else 0.5))
    made, entries, samples = recorded(limited(1), seconds=300)
    others = [one for one in entries if one.task != "worker-0"]

    def profile(every: int) -> Profile:
        steps = [
            as_entry("worker-0", end, "step", {"own_steps": n})
            for n, end in enumerate(ends) if n % every == 0
        ]  # fmt: skip
        run = sorted([*others, *steps], key=lambda one: one.time)
        return parse(tomllib.loads(text(profile_of_run(made, run, samples))), "it")

    single = profile(1).step
    mean = 0.9 * 0.5 + 0.1 * 1.5
    assert single.relative_quantiles is not None and single.spread is None
    assert single.relative_quantiles[:9] == pytest.approx([0.5 / mean] * 9, rel=0.1)
    assert single.relative_quantiles[-1] == pytest.approx(1.5 / mean, rel=0.1)
    pairs = profile(2).step.relative_quantiles
    assert pairs is not None and pairs[-1] > 1.3
    many = profile(8).step
    assert many.relative_quantiles is None and many.spread is not None


def test_serialisation_is_told_apart_from_applying_by_a_transfer() -> None:
    """A ps uses 0.5 s for a GB and 20 us for a tensor; 0.1 CPU idle are none of it."""
    times = {"idle": (10.0, 12.5), "large": (20.0, 24.0), "small": (30.0, 34.0)}
    metrics = {f"{n}_{edge}": at for n, both in times.items()
               for edge, at in zip(("begin", "end"), both, strict=True)}  # fmt: skip
    metrics |= {"connection_bps": 8e9, "ps_bps": 16e9, "large_bytes": 4e9, "small_tensors": 1e5}
    used = {range(20, 24): 0.5, range(30, 34): 0.5}
    samples, cpu = [], 0.0
    for second in range(60):
        samples.append(Sample("ps-0", float(second), cpu, 1.0, 0.0, 0.0))
        cpu += 0.1 + sum(busy for when, busy in used.items() if second in when)
    found = moved_of(metrics, samples)
    assert (found.connection, found.ps) == (8e9, 16e9)
    assert found.cpu_per_gb == pytest.approx(0.5) and found.cpu_per_tensor == pytest.approx(20e-6)
    assert moved_of({}, []) == Moved()
    assert moved_of({**metrics, "large_end": float("nan"), "small_begin": "x"}, samples) == Moved(
        8e9, 16e9
    )

    figures = figures_of(*recorded(limited(1)))
    without, apart = profile_of([figures]), profile_of([figures], Moved(None, None, 0.5, 20e-6))
    assert without.transport.cpu_per_gb == 0
    ps_cpus = 0.5
    assert apart.transport.cpu_per_gb * ps_cpus == pytest.approx(0.5)
    moved = (2 * MB * 0.5 / 1e9 + 2 * 2 * 20e-6) / ps_cpus
    assert without.ps.apply - apart.ps.apply == pytest.approx(moved, rel=0.01)
    all_of_it = profile_of([figures], Moved(None, None, 50.0, 0.0))
    assert all_of_it.ps.apply == 0
    serialising = all_of_it.transport.cpu_per_gb * 2 * MB / 1e9
    assert serialising == pytest.approx(without.ps.apply, rel=0.01)


def test_cpu_of_an_all_reduces_messages_is_work_if_the_cpu_limits_a_worker_alone() -> None:
    def run(workers: int, step_s: float, cpu_s: float) -> Figures:
        names = tuple(f"worker-{n}" for n in range(workers))
        sent = 0.0 if workers == 1 else MB * 20
        return Figures(
            name="demo/1", way="ring", workers=workers, ps=0, batch=32, counts_images=True,
            steps=20.0 * workers, seconds=20 * step_s, by_worker=dict.fromkeys(names, 20.0),
            spread=0.02, used=dict.fromkeys(names, Used(20 * cpu_s, sent, sent)), trainers=names,
            coordinator="", cpus={"worker": 0.1, "ps": None, "chief": 0.1}, bandwidth=50e6,
            ps_bandwidth=None, variables=(), placement="round-robin",
        )  # fmt: skip

    assert profile_of([run(1, 1.21, 0.12), run(2, 1.55, 0.15)]).exchange.work == 0.3
    waits = profile_of([run(1, 2.0, 0.12), run(2, 2.4, 0.15)])
    assert waits.exchange.work == 0.0


class Counted(Sequence[tuple[float, float]]):
    """Parts of a training that count how often they are read."""

    def __init__(self, parts: Sequence[tuple[float, float]]) -> None:
        self._parts = parts
        self.read = 0

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: Any) -> Any:
        self.read += 1
        return self._parts[index]


def test_thousands_of_parts_take_no_quadratic_time() -> None:
    parts = Counted([(float(n), n + 0.75) for n in range(2000)])
    points = [(n / 2, float(n)) for n in range(4000)]
    [pairs] = _pairs({"worker-0": points}, parts)
    assert len(pairs) == 2000
    assert parts.read < 100_000


def test_times_that_run_backwards_and_odd_figures_are_refused_or_measured() -> None:
    """A program writes its reports itself."""
    random = Random(5)
    odd = (0, -0.0, 1, -1, 5e-324, 9.9e29, 2.5, True)
    made, _, _ = recorded(limited(1))
    for _ in range(300):
        entries = [as_entry("worker-0", 0.0, "start", {"attempt": 1})]
        for second in range(1, 60):
            at = random.choice((0, 1, 30, 60, second))
            steps = random.choice((*odd, second * 5))
            entries.append(as_entry("worker-0", float(at), "step", {"own_steps": steps}))
        with contextlib.suppress(KitError):
            figures_of(made, entries, [], name="demo/1")
