"""Two simple predictors from the same two rows, to which the model is compared. Pure."""

from __future__ import annotations

import math

from cluster_kit.predict.limits import fullest
from cluster_kit.predict.plan import shards
from cluster_kit.predict.profile import PS_WAYS, Measured, Profile

LINE, FORMULA = "straight line", "formula"


def line(profile: Profile, workers: int) -> float:
    """Images per second on the straight line through the calibrating rows; one gives a ray."""
    rows = profile.calibrating
    first, last = rows[0], rows[-1]
    if first is last:
        return first.images_per_s * workers / first.workers
    slope = (last.images_per_s - first.images_per_s) / (last.workers - first.workers)
    return first.images_per_s + slope * (workers - first.workers)


def formula(profile: Profile, workers: int, ps: int | None) -> float:
    """Images per second by one formula.

    For an all-reduce t(N) = t(1) + c 2 (N-1)/N, where N counts hosts, or workers if all rows are on
    one host, and c is from the calibrating rows. For ps the step on one worker, or the time in
    which the fullest ps moves its bytes over its link, whichever is longer.
    """
    rows = profile.calibrating
    if profile.way in PS_WAYS:
        first, wire = rows[0], profile.machines.bandwidth
        seconds = _step_s(profile, rows[-1] if _one_host(profile, rows[-1]) else first)
        senders = workers
        if profile.exchange.per == "host":
            senders = math.ceil(workers / profile.machines.devices_per_host)
        if wire and senders > 1:
            moved = fullest(shards(profile, ps or 1)) / 2 * senders
            seconds = max(seconds, moved / (wire / 8))
        return profile.batch * workers / seconds
    per_host = profile.machines.devices_per_host

    def count(number: int) -> int:
        hosts = math.ceil(number / per_host)
        return number if all(_one_host(profile, row) for row in profile.measured) else hosts

    def share(number: int) -> float:
        return 2 * (count(number) - 1) / count(number)

    first, last = rows[0], rows[-1]
    step, more = _step_s(profile, first), share(last.workers) - share(first.workers)
    c = (_step_s(profile, last) - step) / more if more else 0.0
    if not more:
        step = _step_s(profile, last)
    return profile.batch * workers / (step + c * (share(workers) - share(first.workers)))


def _one_host(profile: Profile, row: Measured) -> bool:
    return row.workers <= profile.machines.devices_per_host


def _step_s(profile: Profile, row: Measured) -> float:
    return profile.batch * row.workers / row.images_per_s
