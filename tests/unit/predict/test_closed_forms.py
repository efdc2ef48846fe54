"""The simulation agrees with what can be computed by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import product

import pytest

from cluster_kit.predict.failures import Away, checkpoint_interval, replay, useful_share
from cluster_kit.predict.plan import Change, Fitted, setup
from cluster_kit.predict.simulate import simulate
from tests.unit.predict.profiles import profile, setup_of, simulated

MB, LINK = 1e6, 10e9 / 8
NO_BYTES = [{"name": "v", "bytes": 1}]
EXPONENTIAL = [-math.log1p(-k / 4001) for k in range(4001)]


@pytest.mark.parametrize("way", ["async-ps", "sync-ps"])
def test_one_worker_pulls_computes_pushes_and_the_ps_applies(way: str) -> None:
    found = profile(way=way, ps={"apply": 0.05})
    expected = 0.3 + 2 * 100 * MB / LINK + 4e-6 + 0.05 * (2 if way == "sync-ps" else 1)
    assert simulated(found, 1).images_per_s == pytest.approx(32 / expected, rel=1e-6)


def test_one_worker_of_an_all_reduce_only_computes() -> None:
    assert simulated(profile(way="ring"), 1).images_per_s == pytest.approx(32 / 0.3)


def test_a_full_link_of_a_ps_is_the_limit_whatever_the_number_of_workers() -> None:
    """Gradients have half the size: with both directions full, the queue is now in one of them,
    now in the other, and neither is quite full.
    """
    full = LINK / (100 * MB) * 32
    for workers in (16, 32, 64):
        result = simulated(profile(exchange={"push": 0.5}), workers, steps=100)
        assert result.images_per_s == pytest.approx(full, rel=0.02)
        assert result.busy["ps-0 sends"] > 0.98


def test_a_full_link_of_the_fullest_of_two_ps_is_the_limit() -> None:
    result = simulated(profile(exchange={"push": 0.5}), 32, ps=2, steps=100)
    assert result.images_per_s == pytest.approx(LINK / (80 * MB) * 32, rel=0.02)
    assert result.busy["ps-1 sends"] == pytest.approx(0.25, abs=0.03)


def test_workers_of_one_host_share_its_link() -> None:
    found = profile(machines={"devices_per_host": 8}, way="sync-ps")
    result = simulated(found, 8, ps=2, steps=20)
    assert result.parts["pull"] == pytest.approx(8 * 100 * MB / LINK, rel=0.01)


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_round_is_shorter_if_a_link_moves_one_transfer_after_the_other(in_turn: bool) -> None:
    """Else all pulls end together, and so do the pushes; here computation is shorter than both."""
    workers, moves = 8, 100 * MB / LINK
    planned = replace(setup_of(profile(way="sync-ps"), workers), in_turn=in_turn)
    result = simulate(planned, 20)
    seconds = 0.3 + (workers + 1 if in_turn else 2 * workers) * moves
    assert result.images_per_s == pytest.approx(workers * 32 / seconds, rel=0.001)


def test_transfers_are_moved_in_turn_only_by_synchronous_ps_on_hosts_of_their_own() -> None:
    assumed = Fitted(0.3, in_turn=True)

    def is_in_turn(way: str, **machines: object) -> bool:
        return setup(profile(way=way, machines=machines), assumed, 8, 1, 0.0).in_turn

    assert is_in_turn("sync-ps")
    assert not is_in_turn("async-ps")
    assert not is_in_turn("sync-ps", ps="beside")
    assert not is_in_turn("sync-ps", devices_per_host=2)


def test_bytes_to_a_ps_of_the_same_host_use_no_link() -> None:
    found = profile(machines={"ps": "beside"})
    assert simulated(found, 1).images_per_s == pytest.approx(32 / 0.3, rel=1e-6)


def test_a_gradient_that_hides_behind_the_backward_pass_takes_no_time() -> None:
    found = profile(exchange={"overlap": 1.0})
    # 80 ms each way fit into the forward pass of 100 ms and the backward pass of 200 ms.
    assert simulated(found, 1).images_per_s == pytest.approx(32 / 0.3, rel=1e-4)


@pytest.mark.parametrize("workers", [2, 8, 32])
def test_a_barrier_waits_for_the_largest_of_n_exponential_times(workers: int) -> None:
    found = profile(way="sync-ps", variable=NO_BYTES)
    step = found.step.model_copy(
        update={"seconds": None, "spread": None, "quantiles": tuple(EXPONENTIAL)}
    )
    found = found.model_copy(update={"step": step})
    harmonic = sum(1 / k for k in range(1, workers + 1))
    seconds = 32 * workers / simulated(found, workers, steps=12_000 // workers).images_per_s
    assert seconds == pytest.approx(harmonic, rel=0.05)


def test_a_backup_worker_leaves_the_slowest_time_out() -> None:
    """The largest but one of n exponential times is H(n) - 1; of the largest of n-1 it is H(n-1).

    It is between them, since a late worker first ends its step, and its gradient is dropped.
    """
    found = profile(way="sync-ps", variable=NO_BYTES)
    step = found.step.model_copy(
        update={"seconds": None, "spread": None, "quantiles": tuple(EXPONENTIAL)}
    )
    found = found.model_copy(update={"step": step})
    result = simulated(found, 8, steps=1000, change=Change(backup=1))
    harmonic = sum(1 / k for k in range(1, 9))
    assert harmonic - 1 < 32 * 7 / result.images_per_s < harmonic - 1 / 8


@pytest.mark.parametrize("workers", [2, 4, 7, 16])
def test_a_ring_moves_two_times_n_minus_1_by_n(workers: int) -> None:
    seconds = 32 * workers / simulated(profile(way="ring"), workers).images_per_s
    moved = 2 * (workers - 1) / workers * 100 * MB / LINK
    assert seconds == pytest.approx(0.3 + moved + 2 * (workers - 1) * 1e-6, rel=1e-6)


def test_work_for_the_messages_of_a_ring_makes_a_step_longer_and_a_slower_worker_more_so() -> None:
    found = profile(way="ring", exchange={"work": 0.1, "overlap": 1.0})
    assert simulated(found, 1).images_per_s == pytest.approx(32 / 0.3, rel=1e-6)
    for speed in (1.0, 0.5):
        result = simulated(found, 4, change=Change(straggler=speed))
        assert 32 * 4 / result.images_per_s == pytest.approx((0.3 + 1.5 * 0.1) / speed, rel=1e-3)


def test_a_hierarchical_all_reduce_is_a_ring_of_hosts_after_one_in_each_host() -> None:
    found = profile(
        way="hierarchical", machines={"devices_per_host": 4, "device_bandwidth": "80gbit"}
    )
    seconds = 32 * 8 / simulated(found, 8).images_per_s
    inside, across = 2 * 3 / 4 * 100 * MB / 10e9, 2 * 1 / 2 * 100 * MB / LINK
    assert seconds == pytest.approx(0.3 + inside + across + 2e-6, rel=1e-6)


def test_a_queue_at_the_cpu_of_a_ps_is_as_long_as_of_m_d_1() -> None:
    """Many workers with exponential steps send nearly as a Poisson process does."""
    apply, workers = 0.0025, 200
    found = profile(variable=NO_BYTES, ps={"apply": apply}, machines={"latency": 1e-9})
    step = found.step.model_copy(
        update={"seconds": None, "spread": None, "quantiles": tuple(EXPONENTIAL)}
    )
    result = simulate(setup_of(found.model_copy(update={"step": step}), workers), 100)
    load = result.busy["ps-0 CPU"]
    assert load == pytest.approx(0.5, abs=0.03)
    wait = result.parts["push"] - apply
    assert wait == pytest.approx(load * apply / (2 * (1 - load)), rel=0.1)


def test_each_tensor_takes_cpu_at_both_ends_at_once() -> None:
    """The ps sends one after the other, while the worker receives."""
    variables = [{"name": "v", "bytes": 1, "count": 100}]
    found = profile(variable=variables, transport={"cpu_per_tensor": "1ms"})
    assert simulated(found, 1).images_per_s == pytest.approx(32 / (0.3 + 0.2 + 0.2), rel=0.01)
    many = simulated(found, 32, steps=60)
    assert many.images_per_s == pytest.approx(32 / 0.2, rel=0.02)
    assert many.busy["ps-0 CPU"] > 0.98


def test_the_chief_schedules_one_step_after_the_other() -> None:
    found = profile(chief={"dispatch": 0.01}, variable=NO_BYTES)
    assert simulated(found, 64, steps=50).images_per_s == pytest.approx(32 / 0.01, rel=0.01)


def test_a_straggler_slows_all_if_they_wait_and_only_itself_if_not() -> None:
    change = Change(straggler=0.5)
    waiting = simulated(profile(way="sync-ps", variable=NO_BYTES), 4, steps=200, change=change)
    alone = simulated(profile(variable=NO_BYTES), 4, steps=200, change=change)
    assert waiting.images_per_s == pytest.approx(4 * 32 / 0.6, rel=0.01)
    assert alone.images_per_s == pytest.approx(3.5 * 32 / 0.3, rel=0.02)


def test_with_n_equal_workers_each_gradient_is_n_minus_1_updates_old() -> None:
    staleness = simulated(profile(), 8, steps=100).staleness
    mean = sum(age * count for age, count in staleness.items()) / sum(staleness.values())
    assert mean == pytest.approx(7, abs=0.3)


def test_the_interval_is_youngs_for_cheap_checkpoints_and_the_best_of_dalys_otherwise() -> None:
    mtbf = 86_400.0
    assert checkpoint_interval(mtbf, 0.1) == pytest.approx(math.sqrt(2 * 0.1 * mtbf), rel=0.01)
    for checkpoint in (5.0, 600.0, 6000.0):
        best = checkpoint_interval(mtbf, checkpoint)
        share = useful_share(mtbf, checkpoint, 12, best)
        others = [useful_share(mtbf, checkpoint, 12, best * k) for k in (0.5, 0.8, 1.25, 2)]
        assert share >= max(others) - 1e-4


def test_the_useful_time_is_what_failures_and_checkpoints_leave() -> None:
    """For rare failures: 1 - C/T - T/(2M) - R/M."""
    share = useful_share(86_400, 5, 12, 900)
    assert share == pytest.approx(1 - 5 / 900 - 900 / 2 / 86_400 - 12 / 86_400, abs=1e-4)


def test_absences_leave_what_the_others_do_and_cost_what_was_not_saved() -> None:
    """Two workers, 100 s: one is away for 20 s, and works again 5 s after its return."""
    alone = [Away("worker-1", 10, 30, stops=False)]
    assert replay(alone, 100, 2, 5, None).share == pytest.approx(1 - 25 / 2 / 100)
    stopped = [Away("worker-1", 10, 30, stops=True)]
    assert replay(stopped, 100, 2, 5, 4).share == pytest.approx((100 - 25 - 2) / 100)
    assert replay(stopped, 100, 2, 5, 4).redone_s == pytest.approx(2)
    assert replay([], 100, 2, 5, 4).share == 1
    for_good = [Away("worker-1", 40, None, stops=True)]
    assert replay(for_good, 100, 2, 5, None).share == pytest.approx(0.4)
    both = [Away("worker-1", 0, 50, stops=False), Away("worker-2", 25, 75, stops=False)]
    assert replay(both, 100, 4, 0, None).share == pytest.approx(1 - 100 / 4 / 100)


def test_for_rare_random_failures_a_replay_agrees_with_daly() -> None:
    generator = random.Random(5)
    mtbf, restart, every, seconds = 500.0, 10.0, 40.0, 400_000.0
    absences, moment = [], 0.0
    while moment < seconds:
        moment += generator.expovariate(1 / mtbf)
        absences.append(Away("worker-1", moment, moment, stops=True))
        moment += restart
    share = replay(absences, seconds, 2, restart, every).share
    assert share == pytest.approx(useful_share(mtbf, 1e-9, restart, every), rel=0.02)


def test_links_are_shared_nearly_as_max_min_fair_rates_would() -> None:
    """Against a fluid model of TCP: rates that are max-min fair at every moment."""
    for workers, hosts, sizes in ((4, 4, (80, 20)), (8, 2, (60, 30, 10)), (6, 3, (25, 25, 25, 25))):
        variables = [{"name": f"v{k}", "bytes": int(s * MB)} for k, s in enumerate(sizes)]
        machines = {"devices_per_host": workers // hosts}
        found = profile(way="sync-ps", variable=variables, machines=machines)
        pulled = simulated(found, workers, ps=len(sizes), steps=5).parts["pull"]
        fluid = _max_min(workers, hosts, [s * MB for s in sizes])
        assert pulled == pytest.approx(fluid, rel=0.1)


def _max_min(workers: int, hosts: int, sizes: list[float]) -> float:
    """Seconds until a worker has pulled from all ps, in the mean, with max-min fair rates."""
    left = {(w, p): sizes[p] for w, p in product(range(workers), range(len(sizes)))}
    now, ends = 0.0, [0.0] * workers
    while left:
        rates = _rates(list(left), workers // hosts)
        step = min(left[flow] / rates[flow] for flow in left)
        now += step
        for flow in list(left):
            left[flow] -= rates[flow] * step
            if left[flow] <= 1e-3:
                del left[flow]
                ends[flow[0]] = now
    return sum(ends) / workers


def _rates(flows: list[tuple[int, int]], per_host: int) -> dict[tuple[int, int], float]:
    """The fair rate of each flow: the fullest link first gives each of its flows its share."""
    rates: dict[tuple[int, int], float] = {}
    waiting = {flow: (("host", flow[0] // per_host), ("ps", flow[1])) for flow in flows}
    free = {link: LINK for links in waiting.values() for link in links}
    while waiting:
        users = {
            link: [flow for flow, links in waiting.items() if link in links]
            for link in {link for links in waiting.values() for link in links}
        }
        link = min(users, key=lambda one: free[one] / len(users[one]))
        share = free[link] / len(users[link])
        for flow in users[link]:
            rates[flow] = share
            for one in waiting.pop(flow):
                free[one] -= share
    return rates


@pytest.mark.parametrize(("workers", "spread"), [(2, 0.0), (4, 0.02), (8, 0.3), (16, 0.02)])
def test_asynchronous_workers_are_as_fast_as_mean_value_analysis_says(
    workers: int, spread: float
) -> None:
    """Computation is a delay, each direction of the ps's link a queue that is shared equally.

    Reiser and Lavenberg 1980; it does not depend on how much the steps differ.
    """
    found = profile(step={"spread": spread}, machines={"bandwidth": "2gbit"})
    queues, link, speed = [0.0, 0.0], 100 * MB / (2e9 / 8), 0.0
    for count in range(1, workers + 1):
        times = [link * (1 + queue) for queue in queues]
        speed = count / (0.3 + sum(times))
        queues = [speed * time for time in times]
    assert simulated(found, workers).images_per_s == pytest.approx(32 * speed, rel=0.03)
