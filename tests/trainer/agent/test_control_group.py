"""Limits as control groups of both versions report them, or do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.agent import usage

PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=7\n"
VERSION_1 = {
    "cpu/cpu.cfs_quota_us": "20000\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n",
}
VERSION_2 = {
    "cpu.max": "20000 100000\n",
    "cpu.stat": "usage_usec 9\nnr_periods 9\nnr_throttled 3\nthrottled_usec 2500000\n",
    "memory.pressure": PRESSURE,
}


def mounted(at: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (at / name).parent.mkdir(exist_ok=True)
        (at / name).write_text(text)
    return at


def told(mount: Path) -> tuple[float | None, float, float | None]:
    return (
        usage.cpu_limit(mount),
        usage.cpu_throttled_s(mount),
        usage.memory_waited_s(mount),
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (VERSION_1, (0.2, 2.5, None)),
        (VERSION_2, (0.2, 2.5, 1.5)),
        (VERSION_1 | {"cpu/cpu.cfs_quota_us": "-1\n"}, (None, 2.5, None)),
        (VERSION_2 | {"cpu.max": "max 100000\n"}, (None, 2.5, 1.5)),
        ({}, (None, 0.0, None)),
    ],
    ids=["version 1", "version 2", "version 1 without", "version 2 without", "nothing"],
)
def test_limits_that_are_reported(files, expected, tmp_path):
    assert told(mounted(tmp_path, files)) == expected


def test_the_control_group_of_this_machine_can_be_read():
    limit, throttled_s, memory_s = told(usage.MOUNT)
    assert limit is None or limit > 0
    assert throttled_s >= 0 and (memory_s is None or memory_s >= 0)
