"""The short runs that measure a manifest: which they are, what they override, and their errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_kit.compare import short_runs
from cluster_kit.compare.short_runs import Short, first_runs, overrides, slower
from cluster_kit.predict.measure import Moved, figures_of, profile_of
from tests.unit.predict.test_measure import limited, recorded


def test_one_and_two_workers_on_the_manifests_links() -> None:
    assert first_runs(by_ps=True) == (Short(1, 1), Short(2, 1))
    assert first_runs(by_ps=False) == (Short(1, 0), Short(2, 0))
    assert first_runs(by_ps=True, least=2) == (Short(2, 1), Short(3, 1))
    assert overrides(Short(2, 1), 60, has_chief=True) == {
        "worker": 2, "ps": 1, "evaluator": 0, "deadline": {"job": "60s"},
    }  # fmt: skip


def test_communication_takes_half_a_step_on_the_slower_link() -> None:
    """2 MB in a step of 0.5 s: 64 Mbit/s; and at most half of the manifest's bandwidth."""
    figures = figures_of(*recorded(limited(1), step_s=0.5))
    assert slower(figures) == Short(1, 1, 50)
    assert slower(replace(figures, bandwidth=None)) == Short(1, 1, 64)
    assert slower(replace(figures, workers=2)).workers == 2
    assert slower(replace(figures, way="ring", ps=0)).workers == 2
    assert slower(replace(figures, used={})) == Short(1, 1, 1)


def test_each_role_that_trains_gets_the_slower_link() -> None:
    roles = overrides(Short(1, 1, 50), 60, has_chief=True)["role"]
    assert roles == {"worker": {"bandwidth": "50mbit"}, "ps": {"bandwidth": "50mbit"}}
    roles = overrides(Short(2, 0, 50), 60, has_chief=True)["role"]
    assert roles == {"worker": {"bandwidth": "50mbit"}, "chief": {"bandwidth": "50mbit"}}
    assert Short(2, 1, 50).title == "2 workers, 1 ps, 50 Mbit/s"


def test_the_transports_limit_is_part_of_the_profile() -> None:
    profile = profile_of([figures_of(*recorded(limited()))], Moved(5e9, 8e9))
    assert (profile.transport.connection, profile.transport.ps) == (5e9, 8e9)


def test_the_transfers_program_and_manifest_are_there() -> None:
    assert short_runs.TRANSFER.is_file() and short_runs.TRANSFER.with_name("transfer.py").is_file()


@pytest.mark.parametrize("known", [True, False])
def test_a_link_that_changes_little_tells_nothing_of_overlap(known: bool) -> None:
    """1 MB each way: 16 ms at 1 Gbit/s and 20 ms at 800 Mbit/s, in a step of 0.5 s."""
    fast, slow = ("100mbit", "50mbit") if known else ("1gbit", "800mbit")
    runs = [
        figures_of(*recorded(limited(1, bandwidth=one), step_s=step), name=one)
        for one, step in ((fast, 0.5), (slow, 0.52))
    ]
    assert (profile_of(runs).exchange.overlap is not None) == known
