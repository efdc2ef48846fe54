"""Gives every task its GPUs, or says everything that is wrong with the wish. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cluster_kit.facts import HostFacts
from cluster_kit.plan.gpus.devices import Device, devices, find
from cluster_kit.plan.gpus.request import Wish
from cluster_kit.problem import Problem, Setting
from cluster_kit.roles import ROLES
from cluster_kit.util.toml_text import written

HEADROOM = 0.9
"""The part of a shared GPU's memory that TensorFlow's allocators may take; CUDA needs the rest."""
MIB = 2**20
AUTO, NONE = Setting("gpus", "auto"), Setting("gpus", "none")
SHARED = Setting("share_gpus", True)
READS = (*ROLES, "gpus", "gpus_per_worker", "share_gpus", "role", "task")
"""What decides how many GPUs are needed, and by whom."""


@dataclass(frozen=True)
class Given:
    """What one task gets: ids for the engine, names for people, and TensorFlow's limit in MiB."""

    ids: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    memory_mib: int | None = None


Chosen = list[tuple[Device, str]]
"""Devices, each with the name it was asked for by ("" for "auto")."""


def assign(name: str, wish: Wish, facts: HostFacts) -> tuple[dict[str, Given], list[Problem]]:
    """Who gets what. Tasks that get nothing are left out.

    Every worker gets the same number; nobody gets a GPU that another task, or another cluster of
    ours, has, unless sharing is asked for.

    Args:
        name: the cluster's; GPUs that it holds itself are free for it.
    """
    there = devices(facts.gpus)
    asked = bool(any(wish.own.values())) or isinstance(wish.pool, tuple)
    if facts.gpu_refusal and asked:
        cure = ("`cluster-kit doctor` says what is missing; or write ", AUTO, " or ", NONE)
        rule = f"the engine refuses: {facts.gpu_refusal}"
        return {}, [Problem("gpus", _shown(wish.pool), rule, cure)]
    taken = _taken(name, there, facts.gpus_taken)
    own, problems = _own(wish, there, taken)
    held = {device for chosen in own.values() for device, _ in chosen}
    pool, pool_problems = _pool(wish, there, taken, held, refused=bool(facts.gpu_refusal))
    problems += pool_problems
    chosen = own
    if not problems:
        chosen = own | _share_out(wish, pool)
        problems = _uneven(wish, chosen) + _crowded(wish, chosen)
    if problems:
        return {}, problems
    limits = _limits(wish, chosen)
    return {
        task: Given(
            ids=tuple(device.engine_id(facts.gpu_driver, asked) for device, asked in devs),
            described=tuple(f"GPU {device.described}" for device, _ in devs),
            memory_mib=limits[task],
        )
        for task, devs in chosen.items()
        if devs
    }, []


def _taken(
    name: str, there: Sequence[Device], held: Iterable[tuple[str, str]]
) -> dict[Device, str]:
    """Which cluster, other than this one, has a device; in the devices' order."""
    holders = {find(device_id, there): cluster for device_id, cluster in held if cluster != name}
    return {device: holders[device] for device in there if device in holders}


def _own(
    wish: Wish, there: Sequence[Device], taken: Mapping[Device, str]
) -> tuple[dict[str, Chosen], list[Problem]]:
    """What single tasks ask for by name."""
    own: dict[str, Chosen] = {}
    problems: list[Problem] = []
    for task, names in wish.own.items():
        place = wish.places[task]
        chosen, found = _named(place, names, there, {} if wish.share else taken)
        own[task] = chosen
        problems += found
        if not found:
            problems += _twice(place, names, chosen)
    return own, problems


def _pool(
    wish: Wish,
    there: Sequence[Device],
    taken: Mapping[Device, str],
    held: set[Device],
    *,
    refused: bool,
) -> tuple[Chosen, list[Problem]]:
    """The devices that the other workers are served from, empty where they get none."""
    workers = len(wish.pooled)
    if wish.pool == "none" or (wish.pool == "auto" and (refused or not there)):
        return [], []
    if isinstance(wish.pool, str):
        free = [d for d in there if d not in taken and d not in held]
        others = [d for d in there if d not in free] if wish.share else []
        pool: Chosen = [(device, "") for device in free + others]
        return pool, _too_few(wish, len(pool), workers, _shown("auto"), taken)
    if not wish.pool:
        cure = ("list one GPU per worker, or write ", NONE, " or ", AUTO)
        return [], [Problem("gpus", "[]", "an empty list", cure)]
    pool, problems = _named("gpus", wish.pool, there, {} if wish.share else taken)
    if len(pool) == len(wish.pool):
        problems += _twice("gpus", wish.pool, pool)
        problems += _too_few(wish, len(wish.pool), workers, _shown(wish.pool), {})
    each = wish.each or max(1, len(wish.pool) // max(1, workers))
    if not problems and workers and not wish.share and len(pool) != workers * each:
        rule = f"{len(pool)} GPUs do not divide evenly among {workers} workers with {each} each"
        more = f"list {workers * each} GPUs, or change `worker` or `gpus_per_worker`"
        problems.append(Problem("gpus", _shown(wish.pool), rule, more, READS))
    return pool, problems


def _named(
    place: str, names: Sequence[str], there: Sequence[Device], taken: Mapping[Device, str]
) -> tuple[Chosen, list[Problem]]:
    chosen: Chosen = []
    problems = []
    for name in names:
        device = find(name, there)
        if device is None:
            have = ", ".join(device.described for device in there) or "none"
            rule = f"this host has no such GPU; it has: {have}"
            there_are = ("list GPUs that exist, or write ", AUTO, " (CPU only if there is none)")
            problems.append(Problem(place, f'"{name}"', rule, there_are))
            continue
        chosen.append((device, name))
        if device in taken:
            rule = f"the cluster {taken[device]} has GPU {device.described}"
            cure = (f"choose another, `cluster-kit down {taken[device]}`, or ", SHARED)
            problems.append(Problem(place, f'"{name}"', rule, cure, ("name", "share_gpus")))
    return chosen, problems


def _twice(place: str, names: Sequence[str], chosen: Chosen) -> list[Problem]:
    cure = "list each GPU once: by its index or its UUID"
    return [
        Problem(place, _shown(names), f"{device.uuid} {count} times: one GPU for two tasks", cure)
        for device, count in Counter(device for device, _ in chosen).items()
        if count > 1
    ]


def _too_few(
    wish: Wish, have: int, workers: int, value: str, taken: Mapping[Device, str]
) -> list[Problem]:
    each = wish.each or 1
    needed = each if wish.share else workers * each
    if have >= needed:
        return []
    rule = f"{workers} workers with {each} GPU(s) each need {needed}, there are {have}"
    if taken:
        rule += " free; " + ", ".join(f"{d.short} is {c}'s" for d, c in taken.items())
    cure: list[str | Setting] = ["write "]
    if have // each:
        cure += [Setting("worker", have // each), ", or "]
    if (have or taken) and not wish.share:
        cure += [SHARED, " to put several on one, or "]
    return [Problem("gpus", value, rule, (*cure, NONE, " to train on the CPU"), READS)]


def _share_out(wish: Wish, pool: Chosen) -> dict[str, Chosen]:
    """Consecutive devices for each worker; from the start again where they are shared."""
    if not pool:
        return {}
    workers = wish.pooled
    each = wish.each or (1 if wish.pool == "auto" else max(1, len(pool) // max(1, len(workers))))
    return {
        worker: [pool[(turn * each + step) % len(pool)] for step in range(each)]
        for turn, worker in enumerate(workers)
    }


def _uneven(wish: Wish, chosen: Mapping[str, Chosen]) -> list[Problem]:
    """TensorFlow's strategies take workers for equals: all have the same number."""
    counts = {worker: len(chosen.get(worker, [])) for worker in wish.workers}
    if len(set(counts.values())) <= 1:
        return []
    name = next((worker for worker in wish.workers if worker in wish.own), wish.workers[0])
    shown = ", ".join(f"{task}: {count}" for task, count in list(counts.items())[:8])
    rule = f"all workers need the same number of GPUs, but have {shown}"
    place, value = wish.places.get(name, "gpus"), _shown(wish.own.get(name, ()))
    return [Problem(place, value, rule, "give every worker as many", READS)]


def _crowded(wish: Wish, chosen: Mapping[str, Chosen]) -> list[Problem]:
    """One GPU for two tasks, or more memory promised on one than it has."""
    users: dict[Device, list[str]] = {}
    for task, devs in chosen.items():
        for device, _ in devs:
            users.setdefault(device, []).append(task)
    problems = []
    for device, tasks in users.items():
        if len(tasks) > 1 and not wish.share:
            rule = f"one GPU for two tasks: {device.described} for {' and '.join(tasks)}"
            apart = ("give each its own, or write ", SHARED)
            place = next((wish.places[task] for task in tasks if task in wish.own), "gpus")
            problems.append(Problem(place, f'"{device.short}"', rule, apart, READS))
        elif wish.memory and wish.memory * len(tasks) > device.memory:
            rule = (
                f"{len(tasks)} task(s) on GPU {device.short}, which has {device.memory // MIB} MiB"
            )
            cure = f"at most {device.memory // MIB // len(tasks)} MiB each"
            problems.append(Problem("gpu_memory", f"{wish.memory // MIB} MiB", rule, cure, READS))
    return problems


def _limits(wish: Wish, chosen: Mapping[str, Chosen]) -> dict[str, int | None]:
    """MiB per GPU of each task: as asked, or an even part of a shared GPU; None for no limit."""
    if wish.memory is not None:
        return dict.fromkeys(chosen, wish.memory // MIB)
    if not wish.share:
        return dict.fromkeys(chosen, None)
    users = Counter(device for devs in chosen.values() for device, _ in devs)
    return {
        task: min((int(d.memory * HEADROOM) // users[d] // MIB for d, _ in devs), default=None)
        for task, devs in chosen.items()
    }


def _shown(names: str | Sequence[str]) -> str:
    return written(names if isinstance(names, str) else list(names))
