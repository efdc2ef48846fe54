"""A ps that slows a job down because it has more work than the others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from cluster_kit.contract.events import Placement
from cluster_kit.observe import hot_ps
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Event
from cluster_kit.run.verdict import notes_of
from cluster_kit.show.task_table import remarks
from tests.entries import as_entry
from tests.make import cluster, own_program

MBIT = 125_000.0
SHAPED = {"role": {"ps": {"bandwidth": "100mbit"}}}
FAT = [
    {"name": "features/kernel", "on": "ps-0", "bytes": 37e6},
    {"name": "other/kernel", "on": "ps-0", "bytes": 13e6},
    {"name": "small/kernel", "on": "ps-1", "bytes": 1e6},
]
Rates = Mapping[str, tuple[float, float, float]]
"""Busy CPUs, bytes received and sent per second, by task."""
HOT: Rates = {
    "ps-0": (0.4, 48 * MBIT, 48 * MBIT), "ps-1": (0.05, MBIT, MBIT),
    "worker-0": (0.5, 25 * MBIT, 25 * MBIT), "worker-1": (0.5, 25 * MBIT, 25 * MBIT),
}  # fmt: skip
EVEN: Rates = {**HOT, "ps-1": HOT["ps-0"]}


def run(
    rates: Rates, seconds: int = 40, placement: Any = FAT, *,
    program: str = "/program/train.py", says: tuple[tuple[float, str, dict[str, Any]], ...] = (),
    **keys: Any,
) -> tuple[RunState, Any]:  # fmt: skip
    """Returns the state and the cluster of a run of two workers and two ps, unless `keys` say
    otherwise."""
    made = own_program(cluster(**{"worker": 2, "ps": 2, **SHAPED, **keys}), program)
    seen = RunState.of(made)
    for task in seen.tasks:
        seen = seen.with_event(Event(0.0, "start", task, None))
        seen = seen.with_entry(as_entry(task, 0.0, "ready", {}))
    output = says or ((0.0, "start", {"attempt": 1}), (1.0, "step", {"step": 1}))
    for at, event, fields in output:
        seen = seen.with_entry(as_entry("chief-0", at, event, fields))
    if placement is not None:
        seen = seen.with_entry(as_entry("chief-0", 1.0, "placement", {"variables": placement}))
    return used(seen, rates, seconds), made


def used(seen: RunState, rates: Rates, seconds: int, since: int = 0) -> RunState:
    """Returns the state after this number of seconds with these rates, one sample a second."""
    for second in range(since, since + seconds + 1):
        for task, (cpus, received, sent) in rates.items():
            counts = (cpus * second, 1.0, received * second, sent * second)
            fields = dict(zip(("cpu_s", "memory", "rx_bytes", "tx_bytes"), counts, strict=True))
            seen = seen.with_usage(as_entry(task, second + 0.01, "usage", fields))
    return seen


def said_of(rates: Rates, **more: Any) -> list[str]:
    seen, made = run(rates, **more)
    lines = remarks(seen.tasks.values())
    notes = notes_of(made, seen)
    assert [note.partition(" (from ")[0] for note in notes] == lines
    return lines


def test_a_large_variable_is_named_with_a_fix() -> None:
    seen, made = run(HOT)
    [line] = remarks(seen.tasks.values())
    assert line == (
        "features/kernel is 74% of ps-0's bytes: split it (`MinSizePartitioner(max_shards=2)`)"
        " or use 3 ps (`ps = 3`);"
        " ps-0 holds the job up: its bandwidth limit of 100 Mbit/s is reached;"
        " ps-0: 12.0 MB/s, 0.40 CPUs, 50.0 MB of variables;"
        " ps-1: 250.0 kB/s, 0.05 CPUs, 1.0 MB of variables"
    )
    [note] = notes_of(made, seen)
    assert note.startswith(f"{line} (from ") and note.endswith(", 39 s)")


def test_an_even_load_is_not_reported() -> None:
    assert said_of(EVEN) == []
    with_one_more = {**EVEN, "ps-0": (0.4, 60 * MBIT, 60 * MBIT)}
    assert said_of(with_one_more) == []


def test_an_uneven_load_without_a_reached_limit_is_not_reported() -> None:
    assert said_of({**HOT, "ps-0": (0.4, 30 * MBIT, 30 * MBIT)}) == []
    assert said_of(HOT, role={}) == []
    assert said_of(dict.fromkeys(HOT, (0.0, 0.0, 0.0))) == []


def test_a_worker_whose_own_link_is_full_would_gain_nothing() -> None:
    limits = {"ps": {"bandwidth": "100mbit"}, "worker": {"bandwidth": "50mbit"}}
    assert said_of(HOT, role=limits) == []


def test_a_cpu_limit_counts_as_well() -> None:
    rates = {**HOT, "ps-0": (0.48, MBIT, MBIT)}
    [line] = said_of(rates, role={"ps": {"cpus": 0.5}})
    assert "ps-0 holds the job up: its CPU limit of 0.5 is reached" in line
    assert said_of({**rates, "ps-1": (0.4, MBIT, MBIT)}, role={"ps": {"cpus": 0.5}}) == []


def test_without_limits_the_ps_must_be_the_busiest_task() -> None:
    rates = {**HOT, "ps-0": (1.4, MBIT, MBIT)}
    [line] = said_of(rates, role={})
    assert "ps-0 holds the job up: no other task uses so much CPU" in line
    assert said_of({**rates, "worker-1": (1.5, MBIT, MBIT)}, role={}) == []


def test_a_single_ps_is_named_if_its_limit_is_reached() -> None:
    rates = {task: rate for task, rate in HOT.items() if task != "ps-1"}
    [line] = said_of(rates, ps=1)
    assert line.startswith("ps-0 is the only ps: use 2 ps (`ps = 2`); ps-0 holds the job up: ")
    assert said_of(rates, ps=1, role={}) == []
    assert said_of({**rates, "ps-0": (3.0, MBIT, MBIT)}, ps=1, role={}) == []


def test_without_a_placement_the_message_has_the_share_of_the_traffic() -> None:
    [line] = said_of(HOT, placement=None)
    assert line.startswith("ps-0 moves 98% of the bytes of all ps: use 3 ps (`ps = 3`); ")
    assert line.endswith("ps-0: 12.0 MB/s, 0.40 CPUs; ps-1: 250.0 kB/s, 0.05 CPUs")


@pytest.mark.parametrize(
    "placement",
    [
        "all of them", 7, {}, [None, 3, "kernel"], [{}], [{"name": {}, "on": [], "bytes": {}}],
        [{"name": "kernel", "on": "ps-0", "bytes": -5}],
        [{"name": "kernel", "on": "ps-0", "bytes": "9"}],
        [{"name": "kernel", "on": "ps-0", "bytes": True}],
        [{"name": "kernel", "on": "ps-0", "bytes": 10**40}],
        [{"name": "kernel", "on": "ps-7", "bytes": 5}],
        [{"name": "kernel", "on": "worker-0", "bytes": 5}],
        [{"name": "kernel", "on": "ps-0", "bytes": 0}],
    ],
)  # fmt: skip
def test_an_invalid_placement_names_no_variable(placement: Any) -> None:
    [line] = said_of(HOT, placement=placement)
    assert line.startswith("ps-0 moves 98% of the bytes of all ps: ") and "kernel" not in line


def test_the_name_of_a_variable_is_one_short_line() -> None:
    name = "\x1b[2J" + "layer/" * 50 + "a\nkernel"
    [line] = said_of(HOT, placement=[{"name": name, "on": "ps-0", "bytes": 5}])
    shown = line.partition(" is 100% of ps-0's bytes")[0]
    assert shown.startswith("…") and shown.endswith("/a kernel") and len(shown) <= 60


def test_only_the_leaders_placement_counts() -> None:
    seen, _ = run(HOT, placement=None)
    seen = seen.with_entry(as_entry("worker-0", 2.0, "placement", {"variables": FAT}))
    assert seen.loads.variables == {}


def test_the_fix_depends_on_the_program() -> None:
    only = [{"name": "kernel", "on": "ps-0", "bytes": 524_288}]
    split = [{"name": "kernel/part_0", "on": "ps-0", "bytes": 262_144}]
    small = [{"name": "kernel", "on": "ps-0", "bytes": 524_287}]
    assert said_of(HOT, placement=small)[0].startswith("kernel is 100% of ps-0's bytes; ps-0 ")
    small.append({"name": "bias", "on": "ps-0", "bytes": 200_000})
    assert said_of(HOT, placement=small)[0].startswith(
        "kernel is 72% of ps-0's bytes: use 3 ps (`ps = 3`); "
    )
    assert said_of(HOT, placement=only)[0].startswith(
        "kernel is 100% of ps-0's bytes: split it (`MinSizePartitioner(max_shards=2)`); "
    )
    assert said_of(HOT, placement=split)[0].startswith(
        "kernel/part_0 is 100% of ps-0's bytes: use 3 ps (`ps = 3`); "
    )
    assert said_of(HOT, placement=only, program="classifier")[0].startswith(
        "kernel is 100% of ps-0's bytes: use 3 ps (`ps = 3`); "
    )


def test_the_optimizers_own_variables_are_not_counted() -> None:
    names = ("dense/kernel", "Adam/m/dense/kernel", "adam/dense_kernel_velocity")
    slots = dict.fromkeys(names, 8.0)
    assert hot_ps.fattest({**slots, "out/kernel": 2.0}) == ("dense/kernel", 0.8)
    assert hot_ps.fattest({"Variable": 8.0, "Variable_1": 8.0}) == ("Variable", 0.5)
    assert hot_ps.fattest({"others": 8.0}) is None and hot_ps.fattest({}) is None
    many = {f"layer_{number}/kernel": 1.0 for number in range(2_000)}
    assert hot_ps.fattest(many) == ("layer_0/kernel", 1 / 2_000)


def test_very_many_long_names_take_no_time() -> None:
    long = [f"{'_x' * 9_000}_{number}" for number in range(2_000)]
    placement = [{"name": name, "on": "ps-0", "bytes": 1} for name in long]
    held = hot_ps.variables_of(Placement(placement), ("ps-0",))["ps-0"]
    began = time.process_time()
    assert len(held) == hot_ps.MOST_VARIABLES and hot_ps.fattest(held)
    assert time.process_time() - began < 1


def test_before_and_after_training_nothing_is_named() -> None:
    begun = (0.0, "start", {"attempt": 1})
    validates = (begun, (1.0, "step", {"step": 1}), (15.0, "phase", {"name": "validation"}))
    assert said_of(HOT, says=validates) == []
    trains = (begun, (1.0, "phase", {"name": "training"}))
    assert len(said_of(HOT, says=trains)) == 1


def test_a_program_without_reported_steps_trains_if_its_ps_get_and_send() -> None:
    silent = ((0.0, "start", {"attempt": 1}),)
    assert len(said_of(HOT, says=silent)) == 1
    filled = {**HOT, "ps-0": (0.4, 96 * MBIT, MBIT)}
    assert said_of(filled, says=silent) == []
    assert len(said_of(filled)) == 1


def test_a_reported_ps_becomes_a_note_when_it_is_over() -> None:
    seen, made = run(HOT, seconds=30)
    seen = used(seen, dict.fromkeys(HOT, (0.0, 0.0, 0.0)), 60, since=31)
    assert remarks(seen.tasks.values()) == []
    [note] = notes_of(made, seen)
    assert note.endswith(", 29 s)")


def test_a_burst_is_not_reported() -> None:
    seen, made = run(dict.fromkeys(HOT, (0.0, 0.0, 0.0)), seconds=30)
    for second in range(31, 60):
        busy = max(0, min(second, 45) - 35)
        fields = {"memory": 1, "cpu_s": 0, "rx_bytes": busy * 96 * MBIT, "tx_bytes": 0}
        for task in HOT:
            here = fields if task == "ps-0" else {**fields, "rx_bytes": 0}
            seen = seen.with_usage(as_entry(task, second + 0.01, "usage", here))
    assert notes_of(made, seen) == []


def test_missing_figures_are_not_reported() -> None:
    lacking = {task: rates for task, rates in HOT.items() if task != "ps-1"}
    assert said_of(lacking) == []
    assert hot_ps.variables_of(Placement(None), ("ps-0",)) == {}
    assert said_of(HOT, seconds=15) == []


def test_many_ps_are_summarized() -> None:
    rates = {**HOT, **{f"ps-{index}": (0.05, MBIT, MBIT) for index in range(1, 9)}}
    [line] = said_of(rates, ps=9)
    assert "use 10 ps" in line and line.endswith("; and 5 more ps") and "ps-4" not in line
