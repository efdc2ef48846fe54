"""Sizes in powers of 1024, durations in seconds, bandwidths in powers of 1000."""

from __future__ import annotations

import pytest

from cluster_kit.manifest.field_types import bandwidth, duration, size


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [
        ("512m", 512 * 2**20),
        ("2g", 2**31),
        (" 1.5GiB ", 3 * 2**29),
        ("4Gi", 2**32),
        (10_000_000, 10**7),
    ],
)
def test_a_size_is_in_powers_of_1024(written: object, bytes_: int) -> None:
    assert size(written) == bytes_


@pytest.mark.parametrize(
    ("written", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1.5 h", 5400.0), (0.5, 0.5), (7, 7.0)]
)
def test_a_duration_is_in_seconds(written: object, seconds: float) -> None:
    assert duration(written) == seconds


@pytest.mark.parametrize(
    ("written", "bits"), [("500kbit", 5 * 10**5), ("100 Mbit", 10**8), ("1gbit", 10**9)]
)
def test_a_bandwidth_is_in_powers_of_1000(written: object, bits: int) -> None:
    assert bandwidth(written) == bits


@pytest.mark.parametrize("wrong", [True, None, [], "", "1x", "-1", "nan", "1e3"])
def test_invalid_units_are_refused_by_all(wrong: object) -> None:
    for read in (size, duration, bandwidth):
        with pytest.raises(ValueError, match=r"^a (size|duration|bandwidth) is "):
            read(wrong)


@pytest.mark.parametrize("wrong", ["5m", "2000000t", 0])
def test_a_size_that_is_too_large_for_the_engine_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="at least 6 MiB"):
        size(wrong)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "9000h"])
def test_a_duration_is_above_zero_and_at_most_a_year(wrong: object) -> None:
    with pytest.raises(ValueError, match="a duration is"):
        duration(wrong)
