"""Finds what a profile does not know from its calibrating rows: at most two, the smallest. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from cluster_kit.errors import ManifestError, Problem
from cluster_kit.predict.plan import Change, Fitted, is_async, setup
from cluster_kit.predict.profile import PS_WAYS, Measured, Profile
from cluster_kit.predict.simulate import simulate

EXACT = 1e-4
STEPS = 60
ASYNC_STEPS = 400
TRANSFERS = 6400
"""The most steps of each worker, and the most transfers in all: a row of many workers has more
steps in the same time, so its mean is as exact with fewer of each."""
LEAST_STEPS = 10
HALVINGS = 40
LEAST = 0.01
"""The part of a measured step that is at least computation."""
SLOWEST_RATE = 1e4
"""Bytes per second: no slower link is found."""


@functools.lru_cache(maxsize=64)
def fit(profile: Profile, overlap: float, grows: bool) -> Fitted:
    """What the rows say, if this part of the communication is hidden.

    The smallest row gives the seconds of a step, unless the profile has them. If the larger one is
    slower than the model, the difference either grows with the number of workers or it does not.
    If it grows, it gives a rate: of the devices of a host if all are on one, otherwise of a ps, or
    of a connection of an all-reduce. If it does not, it is added to each step. If the row is faster
    than the model, it gives the least part of the communication that is hidden; if it is faster
    even so, the seconds of a step are between what both rows say.

    Args:
        overlap: 0 to 1, used if the profile does not have one.
        grows: the slow end of what is not known; the fast end has links that move transfers in
            turn.
    Raises:
        ManifestError: the communication of a row takes longer than its steps.
    """
    fitted = _fit(profile, overlap, grows)
    if profile.calibrating and fitted.seconds < LEAST * _step_s(profile, profile.calibrating[0]):
        first = profile.calibrating[0]
        rule = (
            f"{first.images_per_s:g} images/s with {first.workers} are more than the profile's "
            "links can move the gradients for"
        )
        hint = "check bandwidth, bytes and batch, or set `overlap`"
        raise ManifestError(profile.name or "profile", [Problem("measured", "", rule, hint)])
    return fitted


def _fit(profile: Profile, overlap: float, grows: bool) -> Fitted:
    rows, known = profile.calibrating, profile.step.mean
    if not rows:
        return Fitted(known or 0.0, in_turn=not grows)
    first, last = rows[0], rows[-1]

    def complete(fitted: Fitted) -> Fitted:
        """With the seconds of a step that give the first row, if the profile has none."""
        if known is not None:
            return replace(fitted, seconds=known)
        return replace(fitted, seconds=_seconds(profile, first, fitted, overlap))

    fitted = complete(Fitted(known or 0.0, in_turn=not grows))
    if known is None and len(rows) == 1:
        return fitted
    target = _step_s(profile, last)
    excess = target - _predicted(profile, last, fitted, overlap)
    if abs(excess) < EXACT * target:
        return fitted
    one_host = last.workers <= profile.machines.devices_per_host
    if excess < 0:
        if profile.exchange.overlap is None and overlap < 1:
            fitted = _hidden(profile, last, complete, fitted, target)
        return fitted if known is not None else _between(profile, first, last, fitted, overlap)
    if not grows:
        return replace(fitted, extra=excess, extra_of_hosts=not one_host)
    among_devices = one_host and (profile.way not in PS_WAYS or profile.machines.ps == "beside")

    def slower(rate: float) -> Fitted:
        change = {"device_link": rate} if among_devices else {"remote": rate}
        return complete(replace(fitted, **change))  # type: ignore[arg-type]

    return _slowed(profile, last, slower, target, overlap)


def _slowed(
    profile: Profile,
    row: Measured,
    slower: Callable[[float], Fitted],
    target: float,
    overlap: float,
) -> Fitted:
    """The rate at which the row takes the measured time, by halving on a scale of powers."""
    low, high = SLOWEST_RATE, profile.bytes * 1e6
    fitted = slower(high)
    for _ in range(HALVINGS):
        rate = (low * high) ** 0.5
        fitted = slower(rate)
        predicted = _predicted(profile, row, fitted, overlap)
        if abs(predicted / target - 1) < EXACT:
            break
        low, high = (rate, high) if predicted > target else (low, rate)
        if high < low * (1 + EXACT):
            break
    return fitted


def _hidden(
    profile: Profile,
    row: Measured,
    complete: Callable[[Fitted], Fitted],
    fitted: Fitted,
    target: float,
) -> Fitted:
    """The part that must be hidden for the row to be so fast; all of it if that is not enough."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fitted = complete(replace(fitted, overlap=middle))
        predicted = _predicted(profile, row, fitted, middle)
        if abs(predicted / target - 1) < EXACT:
            break
        low, high = (middle, high) if predicted > target else (low, middle)
        if high - low < EXACT:
            break
    return fitted


def _between(
    profile: Profile, first: Measured, last: Measured, fitted: Fitted, overlap: float
) -> Fitted:
    """If the larger row is faster than the smaller one allows: seconds as far from both."""
    ratio = _step_s(profile, last) / _predicted(profile, last, fitted, overlap)
    if ratio > 1 - EXACT:
        return fitted
    row = first.model_copy(update={"images_per_s": first.images_per_s / ratio**0.5})
    return replace(fitted, seconds=_seconds(profile, row, fitted, overlap))


def _step_s(profile: Profile, row: Measured) -> float:
    """Seconds in which each worker makes a step."""
    return profile.batch * row.workers / row.images_per_s


def _predicted(profile: Profile, row: Measured, fitted: Fitted, overlap: float) -> float:
    machines = profile.machines
    if row.bandwidth is not None:
        machines = machines.model_copy(update={"bandwidth": row.bandwidth})
        profile = profile.model_copy(update={"machines": machines})
    change = Change(straggler=row.slowest)
    planned = setup(profile, fitted, row.workers, row.ps or 0, overlap, change)
    most = ASYNC_STEPS if is_async(profile.way) else STEPS
    transfers = 2 * row.workers * max(1, len(planned.shards))
    result = simulate(planned, max(LEAST_STEPS, min(most, TRANSFERS // transfers)))
    return profile.batch * row.workers / result.images_per_s


def _seconds(profile: Profile, row: Measured, fitted: Fitted, overlap: float) -> float:
    """The seconds of a step with which the row takes the measured time.

    Less than the part LEAST of that time, which `fit` refuses, if the row takes longer even then.
    """
    target = _step_s(profile, row)
    low, high = 0.0, target
    seconds = target
    for _ in range(HALVINGS):
        tried = replace(fitted, seconds=seconds)
        error = _predicted(profile, row, tried, overlap) - target
        if abs(error) < EXACT * target / 10:
            return seconds
        low, high = (low, seconds) if error > 0 else (seconds, high)
        seconds -= error
        if not low < seconds < high:
            seconds = (low + high) / 2
        if high - low < EXACT * target / 10 or high < LEAST * target:
            break
    return seconds
