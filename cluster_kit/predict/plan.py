"""What is simulated: machines, links, and which ps has which variables. Pure.

Sizes are bytes, times seconds, and rates bytes per second.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cluster_kit.errors import UsageError
from cluster_kit.predict.profile import (
    ASYNC,
    PS_WAYS,
    SYNC,
    Profile,
    Step,
    Variable,
)

FREE = math.inf
"""The rate of what costs no time."""


@dataclass(frozen=True)
class Shard:
    """What one ps holds: bytes sent to and received from one worker in a step, and its size.

    `tensors` is how many variables, or parts of variables, travel.
    `largest` is the variable that is most of them, with its bytes in both directions. A part of a
    split variable has `is_part`; `is_small` is a whole one that a partitioner leaves whole.
    """

    pull: float
    push: float
    size: float
    largest: str = ""
    largest_bytes: float = 0.0
    is_part: bool = False
    is_small: bool = False
    tensors: int = 0

    @property
    def share(self) -> float:
        """The largest variable's part of the bytes."""
        return self.largest_bytes / (self.pull + self.push) if self.pull + self.push else 0.0


@dataclass(frozen=True)
class Unit:
    """What sends a gradient: a worker, or a host with the sum of its devices'."""

    host: int
    devices: int = 1
    speed: float = 1.0


@dataclass(frozen=True)
class Setup:
    """One training on one set of machines, ready to be simulated.

    Rates are those of one direction. `ps_hosts` has the host of each ps, which has a worker if the
    number is below `hosts`.
    """

    way: str
    workers: int
    batch: int
    seconds: float
    step: Step
    overlap: float
    units: tuple[Unit, ...]
    hosts: int
    shards: tuple[Shard, ...]
    ps_hosts: tuple[int, ...]
    bytes: float
    link: float
    ps_link: float
    ps_cap: float
    connection: float
    device_link: float
    latency: float
    apply: float
    cpu_per_byte: float
    cpu_per_tensor: float
    dispatch: float
    work: float = 0.0
    extra: float = 0.0
    backup: int = 0
    in_turn: bool = False
    """A link moves its transfers one after the other, not all at once. Only where a transfer uses
    one shared link: with two, each would wait for the other's order."""

    @property
    def machines(self) -> int:
        """Hosts of workers, ps and chief."""
        return len({*range(self.hosts), *self.ps_hosts}) + (self.dispatch > 0)


@dataclass(frozen=True)
class Fitted:
    """What calibration has found: seconds of a step, and rates that the profile does not know.

    `remote` is the most that one ps, or one connection of an all-reduce, was seen to move, and
    `extra` are seconds of each step that do not grow: from 2 devices of a host on, or, if
    `extra_of_hosts`, from 2 hosts on. `overlap` is the least that must be hidden. `in_turn` is
    an assumption: with synchronous ps, a link moves its transfers one after the other.
    """

    seconds: float
    device_link: float | None = None
    remote: float | None = None
    extra: float = 0.0
    extra_of_hosts: bool = False
    overlap: float = 0.0
    in_turn: bool = False


@dataclass(frozen=True)
class Change:
    """How the machines of a prediction differ from those of the profile; None: not at all.

    `speed` is how many times as fast the workers' devices are, `straggler` the speed of one of
    them, `failures` how often a machine fails in a second.
    """

    way: str | None = None
    cpus: float | None = None
    speed: float = 1.0
    bandwidth: float | None = None
    latency: float | None = None
    devices_per_host: int | None = None
    straggler: float | None = None
    backup: int = 0
    failures: float = 0.0
    placement: str | None = None
    ps: str | None = None
    overlap: float | None = None


def changed(profile: Profile, change: Change) -> Profile:
    """The profile on other machines; raises UsageError if it does not say enough for that.

    The speed of the devices and the straggler are not part of a profile: see `setup`.
    """
    machines = profile.machines
    given = {
        "bandwidth": change.bandwidth,
        "latency": change.latency,
        "devices_per_host": change.devices_per_host,
        "ps": change.ps,
    }
    machines = machines.model_copy(update={k: v for k, v in given.items() if v is not None})
    ps = profile.ps
    if change.bandwidth is not None:
        ps = ps.model_copy(update={"bandwidth": None})
    profile = profile.model_copy(
        update={
            "way": change.way or profile.way,
            "placement": change.placement or profile.placement,
            "machines": machines,
            "ps": ps,
        }
    )
    if change.overlap is not None:
        exchange = profile.exchange.model_copy(update={"overlap": change.overlap})
        profile = profile.model_copy(update={"exchange": exchange})
    return profile


def setup(
    profile: Profile,
    fitted: Fitted,
    workers: int,
    ps: int,
    overlap: float,
    change: Change | None = None,
) -> Setup:
    """One training on this many workers and ps (0 for an all-reduce).

    Args:
        profile: as `changed` returns it.
        fitted: what `calibrate` found on the profile's own machines.
        overlap: 0 to 1, used if the profile does not have one.
        change: the speed of devices and CPUs, stragglers and backup workers.
    Raises:
        UsageError: the profile lacks what the prediction needs.
    """
    change = change or Change()
    machines, transport = profile.machines, profile.transport
    by_ps = profile.way in PS_WAYS
    per_host = machines.devices_per_host
    hosts = math.ceil(workers / per_host)
    held = shards(profile, ps) if by_ps else ()
    beside = machines.ps == "beside"
    ps_hosts = tuple(one % hosts if beside else hosts + one for one in range(len(held)))
    if machines.bandwidth is None and (hosts > 1 or (by_ps and not beside)):
        raise UsageError(
            "the profile does not say how fast a host's link is",
            'give it: --bandwidth 10gbit, or `[machines] bandwidth = "10gbit"` in the profile',
        )
    slower = 1.0 if change.straggler is None else change.straggler
    if by_ps and profile.exchange.per == "worker":
        units = [Unit(one // per_host) for one in range(workers)]
    else:
        units = [Unit(h, min(per_host, workers - h * per_host)) for h in range(hosts)]
    units[0] = replace(units[0], speed=slower)
    wire = transport.goodput / 8
    link = machines.bandwidth * wire if machines.bandwidth else FREE
    remote = fitted.remote or FREE
    connection = transport.connection / 8 if transport.connection else FREE
    device_link = machines.device_bandwidth / 8 if machines.device_bandwidth else FREE
    more, slow_part = _cpu_factor(profile, change), profile.step.parallel
    known = profile.exchange.overlap
    has_extra = hosts > 1 if fitted.extra_of_hosts else workers > 1
    return Setup(
        way=profile.way,
        workers=workers,
        batch=profile.batch,
        seconds=fitted.seconds * (1 - slow_part + slow_part / more) / change.speed,
        step=profile.step,
        overlap=max(overlap, fitted.overlap) if known is None else known,
        units=tuple(units),
        hosts=hosts,
        shards=held,
        ps_hosts=ps_hosts,
        bytes=profile.bytes * profile.exchange.push,
        link=link,
        ps_link=profile.ps.bandwidth * wire if profile.ps.bandwidth else link,
        ps_cap=min(transport.ps / 8 if transport.ps else FREE, remote if by_ps else FREE),
        connection=connection if by_ps else min(connection, remote),
        device_link=fitted.device_link or device_link,
        latency=machines.latency,
        apply=profile.ps.apply / more,
        cpu_per_byte=transport.cpu_per_gb / 1e9 / more,
        cpu_per_tensor=transport.cpu_per_tensor / more,
        dispatch=profile.chief.dispatch if by_ps else 0.0,
        work=0.0 if by_ps else profile.exchange.work / more / change.speed,
        extra=fitted.extra if has_extra else 0.0,
        backup=change.backup,
        in_turn=fitted.in_turn and profile.way == SYNC and not beside and per_host == 1,
    )


def _cpu_factor(profile: Profile, change: Change) -> float:
    """How many times as many CPUs there are as where the step was measured."""
    if change.cpus is None:
        return 1.0
    if profile.machines.cpus is None:
        raise UsageError(
            f"--cpus {change.cpus:g}: the profile does not say on how many CPUs it was measured",
            "write `[machines] cpus = 4` into it, or give how many times as fast the new "
            "machines are: --speed 2",
        )
    return change.cpus / profile.machines.cpus


def shards(profile: Profile, ps: int) -> tuple[Shard, ...]:
    """What each of so many ps holds, by the profile's rule of placement; raises UsageError."""
    exchange = profile.exchange
    return _shards(
        profile.variables, profile.placement, profile.min_shard, exchange.pull, exchange.push, ps
    )


@dataclass(frozen=True)
class _Piece:
    name: str
    size: float
    pull: float
    push: float
    ps: int | None = None
    is_part: bool = False
    is_small: bool = False


@functools.lru_cache(maxsize=512)
def _shards(
    variables: tuple[Variable, ...],
    placement: str,
    min_shard: int,
    pull: float,
    push: float,
    ps: int,
) -> tuple[Shard, ...]:
    sizes = [0.0] * ps
    pulls, pushes, largest = sizes.copy(), sizes.copy(), [_Piece("", 0, 0, 0)] * ps
    tensors = [0] * ps
    for number, piece in enumerate(
        _pieces(variables, ps if placement == "split" else 1, min_shard)
    ):
        at = number % ps
        if placement == "greedy":
            at = min(range(ps), key=lambda one: sizes[one])
        elif placement == "explicit":
            if piece.ps is None or piece.ps >= ps:
                place = "no ps of its own" if piece.ps is None else f"ps {piece.ps}"
                raise UsageError(
                    f"{piece.name} has {place} in the profile, and there are {ps} ps",
                    "choose a rule: --placement round-robin, greedy or split",
                )
            at = piece.ps
        sizes[at] += piece.size
        tensors[at] += piece.pull + piece.push > 0
        pulls[at] += piece.pull * pull
        pushes[at] += piece.push * push
        if piece.pull + piece.push > largest[at].pull + largest[at].push:
            largest[at] = piece
    return tuple(
        Shard(
            p,
            q,
            size,
            one.name,
            one.pull * pull + one.push * push,
            one.is_part,
            one.is_small,
            count,
        )
        for p, q, size, one, count in zip(pulls, pushes, sizes, largest, tensors, strict=True)
    )


def _pieces(variables: tuple[Variable, ...], most: int, min_shard: int) -> Iterator[_Piece]:
    """Yields the variables in their order, or their parts: at most `most` of each.

    TensorFlow's MinSizePartitioner makes the same number, by the smallest size of a part and by
    the longest axis.
    """
    for variable in variables:
        size = float(variable.size)
        possible = max(1, int(size // max(1, min_shard)))
        if variable.shape is not None:
            possible = min(possible, max(1, max(variable.shape, default=1)))
        parts = min(most, possible)
        for number in range(variable.count):
            name = variable.name if variable.count == 1 else f"{variable.name}_{number}"
            for part in range(parts):
                yield _Piece(
                    name if parts == 1 else f"{name}/part_{part}",
                    size / parts,
                    variable.pulled / parts,
                    variable.pushed / parts,
                    variable.ps,
                    parts > 1,
                    possible == 1,
                )


def is_async(way: str) -> bool:
    """Whether each gradient is applied as it comes."""
    return way == ASYNC
