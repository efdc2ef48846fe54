"""Which worker gets which GPU. Pure: inventory and wishes in, device ids out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cluster_kit.errors import Problem
from cluster_kit.facts import Gpu

Assignment = tuple[tuple[str, ...], ...]
"""Device ids of worker 0, worker 1, …"""


def assign(
    wish: str | Sequence[str],
    per_worker: int | None,
    workers: int,
    inventory: Sequence[Gpu],
    refusal: str = "",
) -> tuple[Assignment, list[Problem]]:
    """Give each worker its own GPUs, the same number each, in the order listed.

    Args:
        wish: "none", "auto" or device ids (indexes or UUIDs).
        per_worker: GPUs of each worker; None divides a list evenly, and means 1 for "auto".
        refusal: why the engine cannot hand them out, "" where it can.
    Returns:
        One tuple of device ids per worker (empty tuples on a CPU-only host with "auto"), and what
        is wrong with the wish.
    """
    nothing: Assignment = ((),) * workers
    if wish == "none" or (wish == "auto" and (refusal or not inventory)):
        return nothing, []
    if refusal:
        cure = 'cluster-kit doctor says what is missing; or write `gpus = "auto"` or "none"'
        return nothing, [Problem("gpus", str(wish), f"the engine refuses: {refusal}", cure)]
    if wish == "auto":
        each = per_worker or 1
        ids = [str(gpu.index) for gpu in inventory][: workers * each]
        problems = _too_few(len(inventory), workers, each, "auto")
    elif not wish:
        cure = 'list one GPU per worker, or write `gpus = "none"` or "auto"'
        return nothing, [Problem("gpus", "[]", "an empty list", cure)]
    else:
        ids = list(wish)
        each = per_worker or max(1, len(ids) // max(1, workers))
        problems = _unknown(ids, inventory) + _twice(ids, inventory)
        problems += _too_few(len(ids), workers, each, str(ids))
        if not problems and workers and len(ids) != workers * each:
            rule = f"{len(ids)} GPUs do not divide evenly among {workers} workers with {each} each"
            cure = f"list {workers * each} GPUs, or change `worker` or `gpus_per_worker`"
            problems.append(Problem("gpus", str(ids), rule, cure))
    if problems:
        return nothing, problems
    return tuple(tuple(ids[i * each : (i + 1) * each]) for i in range(workers)), []


def resolve(device_id: str, inventory: Sequence[Gpu]) -> Gpu | None:
    """The GPU an index or UUID means, None where there is none."""
    return next((gpu for gpu in inventory if device_id in (str(gpu.index), gpu.uuid)), None)


def _unknown(ids: Sequence[str], inventory: Sequence[Gpu]) -> list[Problem]:
    have = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in inventory) or "none"
    return [
        Problem(
            "gpus",
            f'"{wanted}"',
            f"this host has no such GPU; it has: {have}",
            'list GPUs that are there, or write `gpus = "auto"` (CPU only where there is none)',
        )
        for wanted in ids
        if resolve(wanted, inventory) is None
    ]


def _twice(ids: Sequence[str], inventory: Sequence[Gpu]) -> list[Problem]:
    names = [gpu.uuid if (gpu := resolve(wanted, inventory)) else wanted for wanted in ids]
    cure = "list each GPU once: by its index or its UUID"
    return [
        Problem("gpus", str(list(ids)), f"{name} {count} times: one GPU for two tasks", cure)
        for name, count in Counter(names).items()
        if count > 1
    ]


def _too_few(have: int, workers: int, each: int, value: str) -> list[Problem]:
    if have >= workers * each:
        return []
    rule = f"{workers} workers with {each} GPU(s) each need {workers * each}, there are {have}"
    most = have // each
    cure = 'write `gpus = "none"` to train on the CPU'
    if most:
        cure = f"write `worker = {most}`, or {cure.removeprefix('write ')}"
    return [Problem("gpus", value, rule, cure)]
