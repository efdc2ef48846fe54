"""What limits a training, in words that name the thing and what to change. Pure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cluster_kit.errors import UsageError
from cluster_kit.predict.plan import FREE, Setup, Shard, is_async, shards
from cluster_kit.predict.profile import PS_WAYS, RING, Profile
from cluster_kit.predict.simulate import Simulated, ring_seconds

MOSTLY = 0.8
"""The part of a step that makes computation the limit."""
FAT, ALL_OF_IT = 0.5, 0.9
"""The parts of a ps's bytes that make one variable the cause, and another ps useless."""
UNEVEN = 1.5
ROOM, HALF, WORTH, ALMOST, MOST_TRIED = 0.8, 0.55, 0.8, 0.9, 65
LARGER = "use larger batches"
LESS = f"send less (float16) or {LARGER}"
FEW_BYTES = 100_000
"""Fewer bytes of a step than this cost a ps less CPU than the calls that bring them."""
MOST_PIECES = 2_000_000
"""The maximum parts of variables that are placed to find out how many ps are enough."""
COMPUTE, LINK, CAP, CPU, OWN_LINK, CHIEF, SLOWEST, LATENCY, ALL_REDUCE = (
    "compute",
    "ps-link",
    "ps-transport",
    "ps-cpu",
    "worker-link",
    "chief",
    "slowest-worker",
    "latency",
    "all-reduce",
)
Load = Callable[[tuple[Shard, ...]], float]
"""The seconds of each step in which something is busy because of the fullest ps."""
OF_PS = (LINK, CAP, CPU)
"""Limits that more ps relieve."""
KINDS = (COMPUTE, LINK, CAP, CPU, OWN_LINK, CHIEF, SLOWEST, LATENCY, ALL_REDUCE)


@dataclass(frozen=True)
class Limit:
    """What limits: its kind, its name (`ps-3`), and a sentence with figures and what to do.

    `cause` is the sentence without what to do, of a ps; otherwise "".
    """

    kind: str
    name: str
    text: str
    cause: str = ""


def limit(profile: Profile, setup: Setup, result: Simulated) -> Limit:
    """What limits this training."""
    parts, total = result.parts, result.step_s or 1.0
    compute, wait = parts.get("compute", 0.0), parts.get("wait", 0.0)
    dispatch = parts.get("dispatch", 0.0)
    moving = parts.get("pull", 0.0) + parts.get("push", 0.0)
    if compute >= MOSTLY * total:
        share = f"{compute / total:.0%} of a step"
        return Limit(COMPUTE, "workers", f"the workers' own computation: {share}")
    in_turn = 0.0
    if not is_async(setup.way):  # those that are scheduled first wait for the last one
        in_turn = min(wait, setup.dispatch * (setup.workers - 1) / 2)
    full = result.busy.get("chief", 0.0) > 0.9
    if full or dispatch + in_turn > max(wait - in_turn, moving):
        each = f"{setup.dispatch * 1e3:g} ms for each step of each worker"
        several = "make several steps in each scheduled function, or " * is_async(setup.way)
        fewer = "fewer workers with larger batches"
        if not (full or in_turn):  # a worker waits for its own step only, however many there are
            each, fewer = f"{each}, {dispatch / total:.0%} of it", "larger batches"
        text = f"the chief: it schedules {each}; {several}use {fewer}"
        return Limit(CHIEF, "chief", text)
    if wait > moving:
        return _slowest(setup, wait / total)
    if setup.way not in PS_WAYS:
        return _ring(setup, moving / total)
    return _moving(profile, setup, result, moving)


def _slowest(setup: Setup, share: float) -> Limit:
    slow = [n for n, unit in enumerate(setup.units) if unit.speed < 1]
    name = f"worker-{slow[0]}" if slow else "workers"
    what = (
        f"{name} has {setup.units[slow[0]].speed:g} of the others' speed"
        if slow
        else ("steps differ in length")
    )
    text = f"waiting for the slowest worker: {share:.0%} of a step, since {what}"
    todo = f"use {'more ' * bool(setup.backup)}backup workers (--backup {setup.backup + 1}), or "
    todo += "asynchronous updates"
    return Limit(SLOWEST, name, f"{text}; {todo}" if setup.way in PS_WAYS else text)


def _ring(setup: Setup, share: float) -> Limit:
    count = setup.workers if setup.way == RING else setup.hosts
    cpu = 1 / (2 * setup.cpu_per_byte) if setup.cpu_per_byte else FREE
    rates = {
        "the devices' links": setup.device_link,
        "each host's link": setup.link if setup.hosts > 1 else FREE,
        "one connection": setup.connection if setup.hosts > 1 else FREE,
        "the CPUs": cpu,
    }
    slowest = min(rates, key=lambda name: rates[name])
    moved = 2 * (count - 1) / count if count > 1 else 0.0
    hops = 2 * (count - 1) * setup.latency
    if hops > 0.5 * ring_seconds(setup):
        text = f"latency: {2 * (count - 1)} hops of {setup.latency * 1e6:g} us in each step"
        todo = "use hosts with more devices"
        if setup.way == RING:  # its hops are those between all workers, wherever they are
            todo = f"{todo} and --way hierarchical"
        return Limit(LATENCY, "latency", f"{text}; {todo}")
    text = (
        f"the all-reduce: {moved:.2f} times {size(setup.bytes)} pass {slowest}"
        f" ({speed(rates[slowest])}), {share:.0%} of a step"
    )
    return Limit(ALL_REDUCE, slowest, f"{text}; send less (float16) or use larger batches")


def _moving(profile: Profile, setup: Setup, result: Simulated, moving: float) -> Limit:
    """Of the things on the way between workers and ps, the one that is used most."""
    loads = _loads(setup, result, moving)
    thing = max(loads, key=lambda name: loads[name], default="")
    share = loads.get(thing, 0.0)
    when = "of the time" if is_async(setup.way) else "of the communication"
    pull, push = sum(s.pull for s in setup.shards), sum(s.push for s in setup.shards)
    own = (pull + push) / setup.link / moving if moving and setup.link < FREE else 0.0
    connection = fullest(setup.shards) / setup.connection / moving if moving else 0.0
    latency = 4 * setup.latency / moving if moving else 0.0
    if latency > max(share, own, connection):
        text = f"latency: {4e6 * setup.latency:g} us in each step; use larger batches"
        return Limit(LATENCY, "latency", text)
    if connection > max(share, own):
        text = f"one connection's limit of {speed(setup.connection)} to each ps"
        todo, _ = _more_ps(profile, setup, lambda held: fullest(held) / setup.connection)
        return Limit(CAP, "connection", f"{text}; {todo}")
    if own > share:
        text = (
            f"each worker's own link: {size(pull + push)} in a step at {speed(setup.link)}; "
            "send less, or use larger batches"
        )
        return Limit(OWN_LINK, "workers", text)
    name, _, what = thing.partition(" ")
    here = _ps_of(setup, name)
    if what == "inside":
        text = f"the links between {name}'s devices are busy for {share:.0%} {when}"
        return Limit(OWN_LINK, name, f"{text}; use ps on other hosts (--ps-on apart)")
    if not here:
        todo = 'its workers share it: use fewer devices for each host, or `per = "host"`'
        return Limit(OWN_LINK, name, f"{name}'s link is busy for {share:.0%} {when}; {todo}")
    kind, words, busy = LINK, f"{name}'s link", functools.partial(_moves, setup)
    if what == "CPU":
        kind, words, busy = CPU, f"{name}'s CPU", functools.partial(_applies, setup)
    elif name.startswith("ps-") and setup.ps_cap < setup.ps_link:
        kind, words = CAP, f"{name}'s transport ({speed(setup.ps_cap)})"
    elif name.startswith("host-"):
        kept = f"ps-{here[0]}" if len(here) == 1 else f"{len(here)} ps"
        words = f"{name}'s link, shared by {kept} and workers,"
    why, todo = _why(profile, setup, here[0], busy)
    shard = setup.shards[here[0]]
    if kind == CPU and todo == LESS and shard.pull + shard.push < FEW_BYTES:
        todo = LARGER
    cause = f"{words} is busy for {share:.0%} {when}: {why}"
    return Limit(kind, f"ps-{here[0]}", f"{cause}; {todo}", cause)


def _loads(setup: Setup, result: Simulated, moving: float) -> dict[str, float]:
    """How much each thing is used: of the whole time, by the fuller direction of a link.

    With synchronous updates all workers pull, and later all push: then of the time in which bytes
    travel, both directions together.
    """
    loads: dict[str, float] = {}
    together = not is_async(setup.way)
    scale = result.step_s / moving if together and moving else 1.0
    for name, share in result.busy.items():
        if name == "chief":
            continue
        thing = name.removesuffix(" sends").removesuffix(" receives")
        before = loads.get(thing, 0.0)
        loads[thing] = before + share if together else max(before, share)
    return {thing: min(1.0, share * scale) for thing, share in loads.items()}


def _ps_of(setup: Setup, name: str) -> list[int]:
    """The ps of a thing's name, the fullest first."""
    kind, _, number = name.partition("-")
    if kind == "ps":
        return [int(number)]
    here = [n for n, host in enumerate(setup.ps_hosts) if host == int(number)]
    return sorted(here, key=lambda n: -(setup.shards[n].pull + setup.shards[n].push))


def _why(profile: Profile, setup: Setup, ps: int, busy: Load) -> tuple[str, str]:
    """Why this ps has so much to do, and what helps; `busy` as for `_more_ps`."""
    shard = setup.shards[ps]
    bytes_of_step = f"{size(shard.pull + shard.push)} for each worker in each step"
    # Synchronous transfers hide behind nothing: more ps make them shorter.
    if is_async(setup.way) and busy(setup.shards) <= _room(setup):
        return bytes_of_step, LESS
    todo, helps = _more_ps(profile, setup, busy)
    if shard.share >= FAT and not shard.is_part:
        fat = f"{shard.largest} is {shard.share:.0%} of its bytes"
        if profile.placement == "split" or shard.is_small:
            return fat, todo
        over = " over several ps" if len(setup.shards) == 1 else ""
        alone = shard.share >= ALL_OF_IT or not helps
        return fat, f"split it (MinSizePartitioner){over}{'' if alone else f' or {todo}'}"
    mean = sum(one.pull for one in setup.shards) / len(setup.shards)
    if len(setup.shards) > 1 and shard.pull > UNEVEN * mean and profile.placement == "round-robin":
        times = f"round robin gives it {shard.pull / mean:.1f} times the mean"
        return times, f"place by bytes (--placement greedy){f' or {todo}' if helps else ''}"
    return bytes_of_step, todo


def _more_ps(profile: Profile, setup: Setup, busy: Load) -> tuple[str, bool]:
    """How many ps are enough, and whether more ps help at all.

    They are enough if the fullest one is `busy` for less time than there is room for. If so many
    are not found, those that halve the load of the fullest, or that make it as small as it gets.
    """
    count, now, room = len(setup.shards), busy(setup.shards), _room(setup)
    pieces = sum(variable.count for variable in profile.variables)
    most = min(max(4 * count, MOST_TRIED), count + 2 + math.isqrt(2 * MOST_PIECES // pieces))
    loads = {count: now}
    try:
        for more in range(count + 1, most):
            loads[more] = busy(shards(profile, more))
            if loads[more] <= room:
                return f"use {more} ps", True
    except UsageError:  # explicit placement
        pass
    halved = next((more for more, load in loads.items() if load <= HALF * now), 0)
    enough = min(WORTH * now, min(loads.values()) / ALMOST)
    least = next((more for more, load in loads.items() if load <= enough), 0)
    if halved or least:
        on = " or more" if halved and least > halved else ""
        return f"use {halved or least} ps{on}", True
    return LESS, False


def _room(setup: Setup) -> float:
    """The seconds of each step in which a ps can be busy and holds nobody up.

    A worker computes so long, or its own link needs them, which more ps do not make faster.
    """
    own = sum(one.pull + one.push for one in setup.shards) / setup.link
    return ROOM * max(setup.seconds, own)


def _moves(setup: Setup, held: tuple[Shard, ...]) -> float:
    """The seconds in which the fullest ps moves its bytes for one step of every worker."""
    return len(setup.units) * fullest(held) / (2 * min(setup.ps_link, setup.ps_cap))


def _applies(setup: Setup, held: tuple[Shard, ...]) -> float:
    """The seconds of CPU of the busiest ps for one step of every worker."""
    everything, units = sum(shard.size for shard in held) or 1.0, len(setup.units)
    updates = units if is_async(setup.way) else 1
    return max(
        updates * setup.apply * shard.size / everything
        + units * setup.cpu_per_byte * (shard.pull + shard.push)
        + units * setup.cpu_per_tensor * 2 * shard.tensors
        for shard in held
    )


def fullest(held: tuple[Shard, ...]) -> float:
    """The bytes of the fullest ps in a step of one worker."""
    return max(shard.pull + shard.push for shard in held)


def size(number: float) -> str:
    """Bytes in words: `95.3 MB`, powers of 1000."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= 0.9995 * factor:  # 999.6 kB are 1 MB
            return f"{number / factor:.3g} {unit}"
    return f"{number:.0f} bytes"


def speed(rate: float) -> str:
    """Bytes per second as a link's rate: `9.5 Gbit/s`."""
    if rate == FREE or math.isinf(rate):
        return "no limit"
    bits = rate * 8
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits >= factor:
            return f"{bits / factor:.3g} {unit}"
    return f"{bits:.0f} bit/s"


def mean_of(results: tuple[Simulated, ...]) -> Simulated:
    """One result with the means of parts and loads of several."""

    def mean(tables: list[Mapping[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for table in tables for name in table)
        return {n: sum(table.get(n, 0.0) for table in tables) / len(tables) for n in names}

    return Simulated(
        len(results) / sum(1 / one.images_per_s for one in results),
        results[0].steps,
        mean([one.parts for one in results]),
        mean([one.busy for one in results]),
        results[0].staleness,
    )
