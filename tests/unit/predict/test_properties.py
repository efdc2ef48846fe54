"""Whatever the machines: better ones are never slower, and who does not wait is not slower."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.predict.profiles import profile, simulated

NOISE = {"async-ps": 0.96}
"""A hundred steps of a few asynchronous workers are no exact mean."""
ways = st.sampled_from(["async-ps", "sync-ps", "ring", "hierarchical"])
cases = st.fixed_dictionaries(
    {
        "way": ways,
        "workers": st.sampled_from([1, 2, 3, 5, 8]),
        "ps": st.integers(1, 3),
        "spread": st.sampled_from([0.0, 0.02, 0.1, 0.3]),
        "overlap": st.sampled_from([0.0, 0.5, 1.0]),
        "gbit": st.floats(0.5, 40),
        "devices": st.sampled_from([1, 2, 4]),
        "seconds": st.floats(0.02, 2),
        "apply": st.sampled_from([0, 0.01, 0.1]),
        "on": st.sampled_from(["apart", "beside"]),
        "scale": st.floats(0.1, 1),
    }
)


def speed(case: dict[str, Any]) -> float:
    """Images per second."""
    found = profile(
        way=case["way"],
        step={"seconds": case["seconds"], "spread": case["spread"]},
        exchange={"overlap": case["overlap"], "push": case["scale"], "pull": case["scale"]},
        machines={
            "bandwidth": f"{case['gbit']:.6f}gbit",
            "devices_per_host": case["devices"],
            "ps": case["on"],
        },
        ps={"apply": case["apply"]},
    )
    return simulated(found, case["workers"], case["ps"]).images_per_s


def least(case: dict[str, Any]) -> float:
    """What is not slower, apart from noise."""
    return NOISE.get(case["way"], 0.995) * speed(case)


@given(cases, st.floats(1, 10))
def test_more_bandwidth_is_never_slower(case: dict[str, Any], times: float) -> None:
    assert speed({**case, "gbit": case["gbit"] * times}) >= least(case)


@given(cases, st.floats(1, 10))
def test_faster_devices_are_never_slower(case: dict[str, Any], times: float) -> None:
    assert speed({**case, "seconds": case["seconds"] / times}) >= least(case)


def test_a_full_link_is_as_fast_whatever_the_short_steps_of_its_workers_take() -> None:
    """Equal transfers fell into one of two rhythms, 753 or 577 images/s."""
    case = {
        "way": "async-ps", "workers": 5, "ps": 2, "spread": 0.0, "overlap": 1.0, "gbit": 7.533,
        "devices": 1, "apply": 0.01, "on": "apart", "scale": 0.5,
    }  # fmt: skip
    speeds = [speed({**case, "seconds": 0.01 + 0.0025 * n}) for n in range(12)]
    assert max(speeds) < 1.03 * min(speeds)


@given(cases, st.floats(0.1, 1))
def test_fewer_bytes_are_never_slower(case: dict[str, Any], part: float) -> None:
    assert speed({**case, "scale": case["scale"] * part}) >= least(case)


@given(cases, st.floats(0, 1))
def test_faster_cpus_of_the_ps_are_never_slower(case: dict[str, Any], part: float) -> None:
    assert speed({**case, "apply": case["apply"] * part}) >= least(case)


@given(cases)
def test_asynchronous_updates_are_never_slower_than_synchronous_ones(case: dict[str, Any]) -> None:
    assert speed({**case, "way": "async-ps"}) >= 0.96 * speed({**case, "way": "sync-ps"})


@given(cases)
def test_no_more_images_than_devices_and_links_allow(case: dict[str, Any]) -> None:
    assert 0 < speed(case) <= 1.05 * 32 * case["workers"] / case["seconds"]
