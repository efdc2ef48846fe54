"""Simulates a training step by step, as discrete events in virtual time. Pure: the same seed and
setup give the same result.

A link divides its rate equally among the transfers that use it at a moment, as TCP's connections
do. A transfer uses the link of its sender and the link of its receiver, and is over when the slower
of them is through with it. The CPU of a ps and the chief do one thing after the other.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from cluster_kit.predict.plan import FREE, Setup, Unit
from cluster_kit.predict.profile import ASYNC, PS_WAYS, RING, SYNC, Step, mean_of_quantiles

MOST_STEPS: Mapping[str, int] = {ASYNC: 1000}
USUAL_STEPS, LEAST_STEPS = 100, 10
TRANSFERS = 40_000
"""So many transfers are simulated at most: fewer steps of many workers are as exact a mean."""
MIXING, TRANSFERS_MIX = 0.8, 0.3
"""Steps of n asynchronous workers differ at least by the first part of 1/n, their transfers by the
second part (standard deviation by mean).

Equal steps and transfers keep the workers' places among each other for ever, and few steps tell
only of these places. The mean speed does not depend on how much they differ: links that are shared
equally are insensitive to it (Baskett, Chandy, Muntz, Palacios 1975).
"""
_VARIANCE = math.log1p(TRANSFERS_MIX**2)
MIX = -_VARIANCE / 2, math.sqrt(_VARIANCE)
WARM_UP = 0.2
SEED = 28


@dataclass(frozen=True)
class Simulated:
    """The result: images per second, seconds of a step by part, and how busy each thing was.

    `parts` are the mean seconds of a worker's step: dispatch, pull, compute, push, wait. `busy` has
    the share of the time by thing: `ps-0 sends`, `ps-0 receives`, `ps-0 CPU`, `chief`,
    `host-3 sends` ... `staleness` counts updates by how many others came between their read and
    their write.
    """

    images_per_s: float
    steps: int
    parts: Mapping[str, float]
    busy: Mapping[str, float] = field(default_factory=dict)
    staleness: Mapping[int, int] = field(default_factory=dict)

    @property
    def step_s(self) -> float:
        """The mean seconds of a worker's step."""
        return sum(self.parts.values())


def simulate(setup: Setup, steps: int | None = None, seed: int = SEED) -> Simulated:
    """Simulate so many steps of each worker (by default as many as are exact enough)."""
    if setup.way in PS_WAYS:
        return _Servers(setup, steps or _enough(setup), seed).run()
    return _all_reduce(setup, steps or USUAL_STEPS, seed)


def cost(setup: Setup) -> int:
    """How many transfers, or lengths of steps, the fewest steps of this setup take."""
    return 2 * setup.workers * max(1, len(setup.shards)) * LEAST_STEPS


def _enough(setup: Setup) -> int:
    transfers = 2 * len(setup.units) * len(setup.shards)
    most = MOST_STEPS.get(setup.way, USUAL_STEPS)
    return max(LEAST_STEPS, min(most, TRANSFERS // transfers))


class _Factors:
    """The lengths of one unit's steps, by their mean; the same for each setup with this seed."""

    def __init__(self, step: Step, unit: int, devices: int, seed: int, least: float = 0.0) -> None:
        self._random = random.Random(seed * 1_000_003 + unit)
        self._devices = devices
        spread = max(step.spread or 0.0, least)
        self._sigma = math.sqrt(math.log1p(spread * spread))
        self._mu = -self._sigma * self._sigma / 2
        self._quantiles: Sequence[float] = ()
        if step.shape:
            mean = mean_of_quantiles(step.shape)
            self._quantiles = [one / mean for one in step.shape]

    def next(self) -> float:
        """The next step's length; of several devices, the slowest one's."""
        return max(self._one() for _ in range(self._devices))

    def _one(self) -> float:
        if self._quantiles:
            at = self._random.random() * (len(self._quantiles) - 1)
            low = int(at)
            one, other = self._quantiles[low], self._quantiles[low + 1]
            return one + (other - one) * (at - low)
        if not self._sigma:
            return 1.0
        return self._random.lognormvariate(self._mu, self._sigma)


def in_host(setup: Setup, devices: int) -> float:
    """Seconds in which the devices of one host sum their gradients: a ring."""
    if devices < 2 or setup.device_link == FREE:
        return 0.0
    return 2 * (devices - 1) / devices * setup.bytes / setup.device_link


def ring_seconds(setup: Setup) -> float:
    """Seconds of an all-reduce alone: 2 (n-1)/n of the bytes pass the slowest link of the ring.

    A ring over all devices passes each host's link once in each direction. A hierarchical one sums
    inside each host first, and has a ring over hosts.
    """
    count, hosts = setup.workers, setup.hosts
    if count == 1:
        return 0.0
    cpu = 1 / (2 * setup.cpu_per_byte) if setup.cpu_per_byte else FREE
    between = min(setup.link, setup.connection, cpu)
    if setup.way == RING or hosts == 1:
        slowest = min(setup.device_link, between) if hosts > 1 else min(setup.device_link, cpu)
        latency = setup.latency if hosts > 1 else 0.0
        return 2 * (count - 1) / count * setup.bytes / slowest + 2 * (count - 1) * latency
    inside = in_host(setup, max(unit.devices for unit in setup.units))
    across = 2 * (hosts - 1) / hosts * setup.bytes / between
    return inside + across + 2 * (hosts - 1) * setup.latency


def _all_reduce(setup: Setup, steps: int, seed: int) -> Simulated:
    """Each step is as long as its slowest worker's, and what is not hidden of the all-reduce.

    What a worker's own device works for the all-reduce is part of its step.
    """
    factors = [_Factors(setup.step, n, unit.devices, seed) for n, unit in enumerate(setup.units)]
    together = ring_seconds(setup)
    work = setup.work * 2 * (setup.workers - 1) / setup.workers
    total = mean = exposed = 0.0
    for _ in range(steps):
        each = [
            (setup.seconds * one.next() + work) / unit.speed
            for one, unit in zip(factors, setup.units, strict=True)
        ]
        slowest = max(each)
        # The last gradient comes out at the end of the step.
        hidden = setup.overlap * min(together, setup.step.backward * slowest)
        exposed += together - hidden + setup.extra
        total += slowest + together - hidden + setup.extra
        mean += sum(each) / len(each)
    compute = mean / steps
    parts = {
        "compute": compute,
        "push": exposed / steps,
        "wait": max(0.0, (total - exposed) / steps - compute),
    }
    busy = {"all-reduce": min(1.0, together * steps / total), "devices": mean / total}
    return Simulated(setup.workers * setup.batch * steps / total, steps, parts, busy)


class _Link:
    """A link in one direction, or a ps's own limit: weighted processor sharing in virtual time.

    `work` is the work done so far for a transfer of weight 1. If the link moves its transfers
    `in_turn`, it is the work done for all of them, and `last` is the work after the last one.
    """

    __slots__ = (
        "at", "due", "in_turn", "last", "name", "rate", "served", "transfers", "weight", "work",
    )  # fmt: skip

    def __init__(self, name: str, rate: float, in_turn: bool) -> None:
        self.name, self.rate, self.in_turn = name, rate, in_turn
        self.at = self.work = self.weight = self.served = self.last = 0.0
        self.due = math.inf
        self.transfers: list[tuple[float, int, float, _Flow]] = []


class _Flow:
    """A transfer: how many links are not through with it, and when it is over at the earliest."""

    __slots__ = ("floor", "left", "ps", "unit")

    def __init__(self, unit: _Worker, ps: int, floor: float) -> None:
        self.unit, self.ps, self.floor, self.left = unit, ps, floor, 0


class _Worker:
    """The state of one unit of the simulation."""

    __slots__ = (
        "asked", "at_update", "computed", "factors", "number", "pending", "phase", "pulled",
        "ready", "round", "seconds", "unit",
    )  # fmt: skip

    def __init__(self, number: int, unit: Unit, factors: _Factors) -> None:
        self.number, self.unit, self.factors = number, unit, factors
        self.pending = self.phase = self.round = self.at_update = 0
        self.asked = self.pulled = self.computed = self.ready = self.seconds = 0.0


_LINK, _BEGIN, _PULLED, _PUSH, _ARRIVED, _PUSHED, _SEND, _ROUND = range(8)
_PULL_PHASE, _PUSH_PHASE = 0, 1
_ROUNDING = 1e-6
"""Bytes."""


class _Servers:
    """A training with ps: events in the order of their times, and what they do."""

    def __init__(self, setup: Setup, steps: int, seed: int) -> None:
        self.setup = setup
        self.events: list[tuple[float, int, int, object, int]] = []
        self.count = self.updates = 0
        count = len(setup.units)
        mixes = setup.way == ASYNC and count > 1
        least = MIXING / count if mixes else 0.0
        self.mixing = random.Random(seed) if mixes else None
        self.workers = [
            _Worker(n, unit, _Factors(setup.step, n, unit.devices, seed, least))
            for n, unit in enumerate(setup.units)
        ]
        self.extra = [setup.extra + in_host(setup, unit.devices) for unit in setup.units]
        self.links: list[_Link] = []
        self._make_links()
        everything = sum(shard.size for shard in setup.shards) or 1.0
        self.apply = [setup.apply * shard.size / everything for shard in setup.shards]
        calls = [shard.tensors * setup.cpu_per_tensor for shard in setup.shards]
        self.sends = [
            shard.pull * setup.cpu_per_byte + call
            for shard, call in zip(setup.shards, calls, strict=True)
        ]
        gets = [
            shard.push * setup.cpu_per_byte + call
            for shard, call in zip(setup.shards, calls, strict=True)
        ]
        self.takes = [work + get for work, get in zip(self.apply, gets, strict=True)]
        self.worker_cpu = sum(self.sends), sum(gets)
        """A worker has as much to do for all ps as each of them has for it."""
        self.ps_free = [0.0] * len(setup.shards)
        self.ps_work = [0.0] * len(setup.shards)
        self.chief_free = self.chief_work = 0.0
        self.quorum = max(1, len(self.workers) - setup.backup)
        self.round = self.in_round = self.images_of_round = 0
        self.waiting: list[_Worker] = []
        self.late: list[_Worker] = []
        self.target = steps * (1 if setup.way == SYNC else len(self.workers))
        self.warm = max(1, int(self.target * WARM_UP))
        self.done = self.images = 0
        self.since = 0.0
        self.before = [0.0] * len(self.links)
        self.ps_before, self.chief_before = self.ps_work.copy(), 0.0
        self.parts = {"dispatch": 0.0, "pull": 0.0, "compute": 0.0, "push": 0.0, "wait": 0.0}
        self.measured = 0
        self.staleness: Counter[int] = Counter()
        self.stopped = -1.0

    def _make_links(self) -> None:
        """The links that a transfer between a host and a ps uses, by host and ps.

        A host's link on which only one worker and no ps is has no rival: its time is a floor.
        """
        setup = self.setup
        users = Counter(unit.host for unit in setup.units)
        with_ps = set(setup.ps_hosts)
        hosts: dict[int, tuple[_Link, _Link]] = {}

        def link(name: str, rate: float) -> _Link:
            self.links.append(one := _Link(name, rate, setup.in_turn))
            return one

        for host in sorted({*users, *with_ps}):
            shared = users[host] > 1 or host in with_ps
            rate = setup.link if host in users else setup.ps_link
            if not shared or rate == FREE:
                continue
            here = [n for n, on in enumerate(setup.ps_hosts) if on == host]
            name = f"ps-{here[0]}" if host not in users and len(here) == 1 else f"host-{host}"
            hosts[host] = link(f"{name} sends", rate), link(f"{name} receives", rate)
        inside = {
            host: link(f"host-{host} inside", setup.device_link)
            for host in (sorted(with_ps & set(users)) if setup.device_link < FREE else ())
        }
        caps = [
            (link(f"ps-{n} sends", setup.ps_cap), link(f"ps-{n} receives", setup.ps_cap))
            if setup.ps_cap < FREE
            else None
            for n in range(len(setup.shards))
        ]
        self.paths: dict[tuple[int, int], tuple[tuple[_Link, ...], tuple[_Link, ...], bool]] = {}
        for host in users:
            for n, on in enumerate(setup.ps_hosts):
                if on == host:
                    both = (inside[host],) if host in inside else ()
                    self.paths[host, n] = both, both, False
                    continue
                out, into = [], []
                for place, ways in ((on, (0, 1)), (host, (1, 0))):
                    if place in hosts:
                        out.append(hosts[place][ways[0]])
                        into.append(hosts[place][ways[1]])
                if (cap := caps[n]) is not None:
                    out.append(cap[0])
                    into.append(cap[1])
                self.paths[host, n] = tuple(out), tuple(into), True
        self.answer = {
            host: setup.latency if any(on != host for on in setup.ps_hosts) else 0.0
            for host in users
        }
        self.alone = {
            host: (0.0, 0.0)
            if host in hosts
            else (
                sum(shard.pull for shard in setup.shards) / setup.link,
                sum(shard.push for shard in setup.shards) / setup.link,
            )
            for host in users
        }

    def run(self) -> Simulated:
        events, now = self.events, 0.0
        # Asynchronous workers are at different places of their steps. Steps of equal length would
        # keep a common beginning for ever, so that no two directions of a link were used at once.
        apart = self.setup.seconds / len(self.workers) if self.setup.way == ASYNC else 0.0
        for worker in self.workers:
            self._at(worker.number * apart, _BEGIN, worker)
        while self.stopped < 0:
            now, _, kind, one, ps = heappop(events)
            if kind == _LINK:
                self._progress(one, now)  # type: ignore[arg-type]
            elif kind == _BEGIN:
                self._begin(one, now)  # type: ignore[arg-type]
            elif kind == _SEND:
                self._send(one, ps, now)  # type: ignore[arg-type]
            elif kind == _PULLED:
                self._compute(one, now)  # type: ignore[arg-type]
            elif kind == _PUSH:
                self._push(one, now)  # type: ignore[arg-type]
            elif kind == _ARRIVED:
                self._arrived(one, ps, now)  # type: ignore[arg-type]
            elif kind == _PUSHED:
                self._pushed(one, now)  # type: ignore[arg-type]
            else:
                self._next_round(now)
        return self._result(now)

    def _at(self, time: float, kind: int, one: object = None, ps: int = 0) -> None:
        self.count += 1
        heappush(self.events, (time, self.count, kind, one, ps))

    # A worker's step: dispatch, pull, compute, push.

    def _begin(self, worker: _Worker, now: float) -> None:
        """The chief schedules the step, if there is one; the worker asks each ps."""
        worker.ready = now
        if self.setup.dispatch:
            self.chief_free = max(now, self.chief_free) + self.setup.dispatch
            self.chief_work += self.setup.dispatch
            self._at(self.chief_free + self.setup.latency, _SEND, worker, -1)
        else:
            self._ask(worker, now)

    def _send(self, worker: _Worker, ps: int, now: float) -> None:
        if ps < 0:
            self._ask(worker, now)
        else:
            self._transfer(worker, ps, now, _PULL_PHASE)

    def _ask(self, worker: _Worker, now: float) -> None:
        worker.asked = worker.pulled = now
        worker.at_update, worker.round = self.updates, self.round
        worker.phase, worker.pending = _PULL_PHASE, len(self.sends)
        for ps, work in enumerate(self.sends):
            if work:
                self.ps_free[ps] = max(now, self.ps_free[ps]) + work
                self.ps_work[ps] += work
                self._at(self.ps_free[ps], _SEND, worker, ps)
            else:
                self._transfer(worker, ps, now, _PULL_PHASE)

    def _compute(self, worker: _Worker, now: float) -> None:
        setup = self.setup
        seconds = setup.seconds * worker.factors.next() / worker.unit.speed
        forward = (1 - setup.step.backward) * setup.overlap
        ends = max(now + (1 - forward) * seconds, worker.asked + seconds)
        ends += self.extra[worker.number]
        worker.pulled, worker.seconds, worker.computed = now, seconds, ends
        begins = ends - setup.step.backward * setup.overlap * seconds
        self._at(max(now, begins), _PUSH, worker)

    def _push(self, worker: _Worker, now: float) -> None:
        worker.phase, worker.pending = _PUSH_PHASE, len(self.takes)
        worker.ready = worker.computed
        for ps in range(len(self.takes)):
            self._transfer(worker, ps, now, _PUSH_PHASE)

    def _transfer(self, worker: _Worker, ps: int, now: float, phase: int) -> None:
        """Begin to move the bytes between a worker and a ps, in one direction."""
        setup, shard = self.setup, self.setup.shards[ps]
        host = worker.unit.host
        size = shard.pull if phase == _PULL_PHASE else shard.push
        if self.mixing:
            size *= self.mixing.lognormvariate(*MIX)
        out, into, is_remote = self.paths[host, ps]
        floor = now
        if is_remote:
            floor += size / setup.connection
            # A pull is asked for and answered; a push is only answered: see `_applied`.
            ways = 2 if phase == _PULL_PHASE else 1
            floor = max(floor, now + self.alone[host][phase]) + ways * setup.latency
        floor = max(floor, now + self.worker_cpu[phase])
        if phase == _PUSH_PHASE:
            floor = max(floor, worker.computed)
        flow = _Flow(worker, ps, floor)
        links = out if phase == _PULL_PHASE else into
        if not size or not links:
            self._moved(flow, now)
            return
        flow.left = len(links)
        for link in links:
            self._join(link, now, size, flow)

    def _join(self, link: _Link, now: float, size: float, flow: _Flow) -> None:
        if link.weight:
            link.work += (now - link.at) * link.rate / link.weight
        else:
            link.work = link.last = 0.0
        link.at = now
        link.weight = 1 if link.in_turn else link.weight + 1
        link.last = (link.last if link.in_turn else link.work) + size
        link.served += size
        self.count += 1
        heappush(link.transfers, (link.last, self.count, size, flow))
        due = now + (link.transfers[0][0] - link.work) * link.weight / link.rate
        if due < link.due:
            link.due = due
            heappush(self.events, (due, self.count, _LINK, link, 0))

    def _progress(self, link: _Link, now: float) -> None:
        """The link may be through with transfers; one that joined since may have delayed them."""
        if now != link.due:
            return  # a shorter transfer came: another event took this one's place
        link.work += (now - link.at) * link.rate / link.weight
        link.at = now
        transfers = link.transfers
        through = link.work + _ROUNDING + link.work * 1e-12
        while transfers and transfers[0][0] <= through:
            flow = heappop(transfers)[3]
            link.weight -= not link.in_turn
            flow.left -= 1
            if not flow.left:
                self._moved(flow, now)
        if not transfers:
            link.due = math.inf
            link.weight = 0
            return
        due = now + (transfers[0][0] - link.work) * link.weight / link.rate
        if due <= now:
            due = math.nextafter(now, math.inf)
        link.due = due
        self.count += 1
        heappush(self.events, (due, self.count, _LINK, link, 0))

    def _moved(self, flow: _Flow, now: float) -> None:
        """A transfer is through all its links."""
        worker = flow.unit
        ends = max(now, flow.floor)
        if worker.phase == _PUSH_PHASE:
            if self.takes[flow.ps]:
                self._at(ends, _ARRIVED, worker, flow.ps)
            else:
                self._applied(worker, ends)
            return
        worker.pulled = max(worker.pulled, ends)
        worker.pending -= 1
        if not worker.pending:
            self._at(worker.pulled, _PULLED, worker)

    def _arrived(self, worker: _Worker, ps: int, now: float) -> None:
        """The ps applies a gradient, or adds it to the others: one after the other."""
        self.ps_free[ps] = max(now, self.ps_free[ps]) + self.takes[ps]
        self.ps_work[ps] += self.takes[ps]
        self._applied(worker, self.ps_free[ps])

    def _applied(self, worker: _Worker, now: float) -> None:
        worker.ready = max(worker.ready, now)
        worker.pending -= 1
        if not worker.pending:
            worker.ready += self.answer[worker.unit.host]
            self._at(worker.ready, _PUSHED, worker)

    def _pushed(self, worker: _Worker, now: float) -> None:
        """All ps have the gradient of a step."""
        if self.setup.way == ASYNC:
            self.updates += 1
            self._count_step(worker, now)
            self._finished(worker.unit.devices, now)
            self._begin(worker, now)
            return
        if worker.round != self.round:  # too late: dropped, and the worker joins the others
            self._begin(worker, now)
            return
        if self.in_round == self.quorum:  # the others are enough: it waits for the next round
            self.late.append(worker)
            return
        self.in_round += 1
        self.images_of_round += worker.unit.devices
        self.waiting.append(worker)
        if self.in_round == self.quorum:
            ends = now
            for ps, work in enumerate(self.apply):
                if work:  # the sum of all gradients is applied once
                    self.ps_free[ps] = max(now, self.ps_free[ps]) + work
                    self.ps_work[ps] += work
                    ends = max(ends, self.ps_free[ps])
            self._at(ends, _ROUND)

    def _next_round(self, now: float) -> None:
        self.updates += 1
        self.round += 1
        counted = self.waiting
        images, self.in_round, self.images_of_round, self.waiting = self.images_of_round, 0, 0, []
        for worker in counted:
            self._count_step(worker, now)
        self._finished(images, now)
        late, self.late = self.late, []
        for worker in (*counted, *late):
            self._begin(worker, now)

    def _count_step(self, worker: _Worker, now: float) -> None:
        if self.done < self.warm:
            return
        parts = self.parts
        extra = self.extra[worker.number]
        pull = max(0.0, worker.computed - worker.asked - worker.seconds - extra)
        parts["pull"] += pull
        parts["compute"] += worker.seconds
        parts["push"] += max(0.0, worker.ready - worker.computed) + extra
        parts["wait"] += now - worker.ready
        self.measured += 1
        if self.setup.way == ASYNC:
            self.staleness[self.updates - worker.at_update - 1] += 1

    def _finished(self, devices: int, now: float) -> None:
        """Count an update; the first ones only warm up."""
        self.done += 1
        if self.done > self.warm:
            self.images += devices * self.setup.batch
        elif self.done == self.warm:
            self.since = now
            self.before = [link.served for link in self.links]
            self.ps_before, self.chief_before = self.ps_work.copy(), self.chief_work
        if self.done >= self.target:
            self.stopped = now

    def _result(self, now: float) -> Simulated:
        seconds = now - self.since
        steps = max(1, self.measured)
        parts = {name: total / steps for name, total in self.parts.items()}
        speed = self.images / seconds
        if self.setup.way == ASYNC:
            # What is neither pull, compute nor push of a step is the wait for its dispatch.
            each = len(self.workers) * seconds / max(1, self.done - self.warm)
            parts["dispatch"] = max(0.0, each - sum(parts.values()))
        busy: dict[str, float] = {}
        for link, before in zip(self.links, self.before, strict=True):
            share = (link.served - before) / link.rate / seconds
            busy[link.name] = min(1.0, max(share, busy.get(link.name, 0.0)))
        for ps, work in enumerate(self.ps_work):
            if work:
                busy[f"ps-{ps} CPU"] = min(1.0, (work - self.ps_before[ps]) / seconds)
        if self.chief_work:
            busy["chief"] = min(1.0, (self.chief_work - self.chief_before) / seconds)
        return Simulated(speed, self.done, parts, busy, dict(self.staleness))
