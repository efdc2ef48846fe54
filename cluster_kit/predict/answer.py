"""The answer: speeds with their band, limits, the best counts, and how sure it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.predict.calibrate import fit
from cluster_kit.predict.failures import checkpoint_interval, useful_share
from cluster_kit.predict.limits import COMPUTE, KINDS, OF_PS, Limit, limit, mean_of, speed
from cluster_kit.predict.plan import Change, Fitted, Setup, changed, is_async, setup
from cluster_kit.predict.profile import (
    PS_WAYS,
    SYNC,
    WAYS,
    Measured,
    Profile,
)
from cluster_kit.predict.question import MOST_POINTS, Question
from cluster_kit.predict.simulate import LEAST_STEPS, Simulated, cost, simulate
from cluster_kit.roles import WORKER
from cluster_kit.util.terminal import counted

FORMAT = 1
ENOUGH = 0.95
"""So few ps are enough that this part of the best speed is reached."""
PAYS = 0.5
"""More workers pay if they bring at least this part of what they would without limits."""
SPREADS = (0.04, 0.0)
"""How much steps differ from their mean if it was not measured, at the slow and the fast end."""
MOST_TRANSFERS, MOST_TOGETHER = 5_000_000, 50_000_000
"""Transfers that one point may take, about half a minute, and all points together."""
LEAST_USEFUL = 0.01
"""The useful part of the time below which there is no training."""
FAR = 8
"""A prediction is far from what was measured if it has so many times the workers."""


@dataclass(frozen=True)
class Staleness:
    """How many updates of others come between the read and the write of one."""

    mean: float
    p50: int
    p95: int
    max: int


@dataclass(frozen=True)
class Goodput:
    """The part of the time that failures leave, and how often to save a checkpoint (seconds)."""

    share: float
    checkpoint_every_s: float


@dataclass(frozen=True)
class Point:
    """The prediction for one count of workers and ps.

    `images_per_s` is between `low` and `high`, or None if the model does not hold there: then
    `unknown` says why. `efficiency` is the part of so many times one device alone. `measured` has
    the profile's row for these counts; `calibrates` says whether that row was an input.
    """

    workers: int
    ps: int | None
    machines: int
    images_per_s: float | None
    low: float | None = None
    high: float | None = None
    efficiency: float | None = None
    epoch_s: float | None = None
    staleness: Staleness | None = None
    limit: Limit | None = None
    parts_s: Mapping[str, float] = field(default_factory=dict)
    goodput: Goodput | None = None
    measured: float | None = None
    calibrates: bool = False
    unknown: str = ""

    @property
    def error(self) -> float | None:
        """The prediction's error against a row that did not calibrate it."""
        if self.measured is None or self.calibrates or self.images_per_s is None:
            return None
        return self.images_per_s / self.measured - 1


@dataclass(frozen=True)
class Answer:
    """All points, what follows from them, and how sure it is, as sentences."""

    name: str
    way: str
    points: tuple[Point, ...]
    advice: tuple[str, ...]
    sure: tuple[str, ...]
    unit: str = "images/s"


@dataclass(frozen=True)
class _End:
    """One end of what is not known: the profile with it, what its rows then say, the overlap."""

    profile: Profile
    fitted: Fitted
    overlap: float

    def on(self, change: Change) -> _End:
        """The same on other machines."""
        return replace(self, profile=changed(self.profile, change))


def _ends(profile: Profile) -> tuple[_End, _End]:
    """The slow end and the fast one: nothing is hidden, and all that can be."""
    step = profile.step
    known = step.spread is not None or step.shape
    slow, fast = (
        profile
        if known
        else profile.model_copy(update={"step": step.model_copy(update={"spread": spread})})
        for spread in SPREADS
    )
    return _End(slow, fit(slow, 0.0, True), 0.0), _End(fast, fit(fast, 1.0, False), 1.0)


def predict(profile: Profile, question: Question) -> Answer:
    """The answer to a question.

    Raises:
        UsageError: the profile lacks what it needs, or the question has too many points.
        ManifestError: the profile's measured rows contradict it.
    """
    change = question.change
    _refuse(profile, question)
    ends = [end.on(change) for end in _ends(profile)]  # the rows are of the profile's machines
    target = changed(profile, change)
    pairs = list(_pairs(target, question))
    _refuse_too_much(pairs, question)
    points = [_point(target, ends, workers, ps, question) for workers, ps in pairs]
    if change == Change():
        points = [_with_row(point, profile.measured) for point in points]
    advice = [*_advice(target, points), *_budget(target, ends, question)]
    sure = [*_calibrated(profile, ends), *_sure(profile, points), *_memory(change, profile)]
    return Answer(
        profile.name, target.way, tuple(points), tuple(advice), tuple(sure), _unit(profile)
    )


def _refuse(profile: Profile, question: Question) -> None:
    change = question.change
    way = change.way or profile.way
    if change.backup and way != SYNC:
        raise UsageError(
            f"--backup {change.backup}: only synchronous ps have backup workers, and this is {way}",
            "leave it out, or give --way sync-ps",
        )
    if change.backup >= min(question.workers):
        raise UsageError(
            f"--backup {change.backup} leaves no worker of {min(question.workers)}",
            f"leave such counts out: --workers {change.backup + 1},{2 * change.backup + 2}",
        )
    failures = profile.failures
    if change.failures and (failures.checkpoint is None or failures.restart is None):
        raise UsageError(
            "--failures: the profile does not say what a failure costs",
            'write `[failures]` with `checkpoint = "5s"` and `restart = "12s"` into it; '
            "`cluster-kit measure RUN` writes the profile of a run to a file",
        )
    if way in PS_WAYS and len(question.workers) * len(question.ps) > MOST_POINTS:
        raise UsageError(
            f"{len(question.workers) * len(question.ps)} points, and at most {MOST_POINTS} are "
            "predicted at once",
            "give fewer counts of workers or ps",
        )


def _refuse_too_much(pairs: Sequence[tuple[int, int | None]], question: Question) -> None:
    """Raise UsageError if all points together take too long."""
    steps = max(LEAST_STEPS, question.steps or 0)
    together = 2 * steps * sum(workers * (ps or 1) for workers, ps in pairs)
    if len(pairs) > 1 and together > MOST_TOGETHER:
        raise UsageError(
            f"{len(pairs)} points with up to {max(workers for workers, _ in pairs)} workers: "
            "too much to simulate",
            "give fewer counts, as in --workers 1,8,64, or fewer --steps",
        )


def _pairs(profile: Profile, question: Question) -> Iterator[tuple[int, int | None]]:
    for workers in question.workers:
        if profile.way not in PS_WAYS:
            yield workers, None
            continue
        for ps in question.ps:
            yield workers, ps


def _point(
    profile: Profile, ends: Sequence[_End], workers: int, ps: int | None, question: Question
) -> Point:
    change = question.change
    setups = [setup(end.profile, end.fitted, workers, ps or 0, end.overlap, change) for end in ends]
    machines = setups[0].machines
    if reason := _does_not_hold(profile, workers, change):
        return Point(workers, ps, machines, None, unknown=reason)
    unique = list(dict.fromkeys(setups))
    if max(map(cost, unique)) * max(1, (question.steps or 0) / LEAST_STEPS) > MOST_TRANSFERS:
        raise UsageError(
            f"{workers} workers{f' and {ps} ps' if ps else ''}: too much to simulate",
            "give fewer of them, or fewer --steps",
        )
    results = tuple(simulate(one, question.steps) for one in unique)
    mean = mean_of(results)
    speeds = sorted(one.images_per_s for one in results)
    goodput = _goodput(profile, setups[0], change) if change.failures else None
    share = goodput.share if goodput else 1.0
    if share < LEAST_USEFUL:
        reason = "machines fail more often than the training can save and restart"
        return Point(workers, ps, machines, None, unknown=reason)
    speed = mean.images_per_s * share
    alone = profile.batch * len(setups) / sum(one.seconds for one in setups)
    epoch = profile.epoch_images / speed if profile.epoch_images else None
    return Point(
        workers,
        ps,
        machines,
        speed,
        speeds[0] * share,
        speeds[-1] * share,
        mean.images_per_s / (alone * workers),
        epoch,
        _staleness(mean) if is_async(profile.way) else None,
        limit(profile, setups[0], mean),
        mean.parts,
        goodput,
    )


def _does_not_hold(profile: Profile, workers: int, change: Change) -> str:
    """Why the model says nothing here; "" if it holds."""
    machines = profile.machines
    if machines.network == "rdma" and profile.way in PS_WAYS:
        return "RDMA: gRPC's limits do not hold there, and verbs are not modelled"
    cpus = change.cpus
    if machines.numa_nodes > 1 and cpus and machines.cpus:
        in_node = machines.cpus / machines.numa_nodes
        if cpus > in_node and cpus != machines.cpus:
            return f"NUMA: a node has {in_node:g} CPUs, and memory of other nodes is slower"
    most = max((row.workers for row in profile.measured), default=1)
    if machines.input == "network" and workers > most:
        return "images come from network storage, whose limit is not known beyond " + _workers(most)
    return ""


def _staleness(result: Simulated) -> Staleness | None:
    total = sum(result.staleness.values())
    if not total:
        return None
    ordered = sorted(result.staleness.items())

    def quantile(part: float) -> int:
        seen = 0
        for value, count in ordered:
            seen += count
            if seen >= part * total:
                return value
        return ordered[-1][0]

    mean = sum(value * count for value, count in ordered) / total
    return Staleness(mean, quantile(0.5), quantile(0.95), ordered[-1][0])


def _goodput(profile: Profile, setup: Setup, change: Change) -> Goodput:
    """What failures leave: with asynchronous updates, a worker's failure stops only that worker."""
    checkpoint, restart = profile.failures.checkpoint or 0.0, profile.failures.restart or 0.0
    share, stopping = 1.0, setup.machines
    if is_async(setup.way):
        stopping = len(set(setup.ps_hosts)) + (setup.dispatch > 0)
        share = 1 / (1 + change.failures * restart)
    mtbf = 1 / (change.failures * stopping)
    every = checkpoint_interval(mtbf, checkpoint)
    return Goodput(share * useful_share(mtbf, checkpoint, restart, every), every)


def _with_row(point: Point, rows: Sequence[Measured]) -> Point:
    """The point with the measured speed of these counts, if there is a row."""
    for row in rows:
        if (
            row.workers == point.workers
            and row.bandwidth is None
            and row.slowest is None
            and (point.ps is None or row.ps == point.ps)
        ):
            return replace(point, measured=row.images_per_s, calibrates=row.calibrate)
    return point


def _advice(profile: Profile, points: Sequence[Point]) -> Iterator[str]:
    """Yields how many ps are enough for the most workers, and where more workers stop to pay."""
    known = [point for point in points if point.images_per_s]
    best: dict[int, Point] = {}
    for point in known:
        rival = best.get(point.workers)
        if rival is None or (point.images_per_s or 0) > (rival.images_per_s or 0):
            best[point.workers] = point
    if profile.way in PS_WAYS:
        for workers in list(best)[-1:]:
            of_these = [p for p in known if p.workers == workers]
            yield from _enough_ps(of_these, best[workers], _unit(profile))
    counts = sorted(best)
    for fewer, more in pairwise(counts):
        gained = (best[more].images_per_s or 0) / (best[fewer].images_per_s or 1) - 1
        if gained < PAYS * (more / fewer - 1):
            why = best[more].limit
            reason = f": {why.text}" if why and why.kind != COMPUTE else ""
            text = f"beyond {_workers(fewer)} more bring less than half of their speed"
            yield f"{text}: {more} are {_faster(gained)}{reason}"
            return


def _enough_ps(points: Sequence[Point], best: Point, unit: str) -> Iterator[str]:
    if len(points) < 2:
        return
    ordered = sorted(points, key=lambda point: point.ps or 0)
    enough = next(p for p in ordered if (p.images_per_s or 0) >= ENOUGH * (best.images_per_s or 0))
    speed = f"{enough.images_per_s:,.0f} {unit}"
    are = "are" if enough.ps != 1 else "is"
    text = f"{_workers(enough.workers)}: of these counts, {enough.ps} ps {are} enough, {speed}"
    fewer = [p for p in ordered if (p.ps or 0) < (enough.ps or 0)]
    if fewer:
        last = fewer[-1]
        lost = 1 - (last.images_per_s or 0) / (enough.images_per_s or 1)
        of_ps = last.limit if last.limit and last.limit.kind in OF_PS else None
        why = f": {of_ps.cause or of_ps.text}" if of_ps else ""
        text += f"; with {last.ps} ps {lost:.0%} less{why}"
    elif best.ps != enough.ps:
        more = (best.images_per_s or 0) / (enough.images_per_s or 1) - 1
        text += f"; {best.ps} ps are {_faster(more)}"
    limit_text = enough.limit.text if enough.limit and enough.limit.kind != COMPUTE else ""
    if enough is ordered[-1] and limit_text and limit_text not in text:
        text += f"; its limit: {limit_text}"
    yield text


def _faster(more: float) -> str:
    return f"{more:.0%} faster" if more >= 0.005 else "no faster"


def _unit(profile: Profile) -> str:
    """What the speeds count: a program that reports no batch has one image in a step."""
    return "images/s" if profile.batch > 1 else "steps/s"


def _workers(count: int) -> str:
    return counted(count, WORKER.name)


def _budget(profile: Profile, ends: Sequence[_End], question: Question) -> Iterator[str]:
    """Yields the fastest counts of workers and ps for this number of machines."""
    budget = question.budget
    if budget is None:
        return
    per_host = profile.machines.devices_per_host
    apart = profile.way in PS_WAYS and profile.machines.ps == "apart"
    chief = int(profile.chief.dispatch > 0 and profile.way in PS_WAYS)

    def point(ps: int | None) -> Point:
        hosts = budget - chief - ((ps or 0) if apart else 0)
        return _point(profile, ends, hosts * per_host, ps, question)

    least = 1 + chief + apart
    if budget < least:
        raise UsageError(
            f"--budget {budget}: at least {least} machines are needed", "give more machines"
        )
    most = max(1, (budget - chief) // 2) if profile.way in PS_WAYS else 1
    candidates = [point(ps if profile.way in PS_WAYS else None) for ps in _doubled(most)]
    candidates += [point(ps) for ps in _beside_best(candidates)]
    known = [point for point in candidates if point.images_per_s]
    if not known:
        yield f"{budget} machines: no figure, {candidates[0].unknown}"
        return
    best = max(known, key=lambda point: point.images_per_s or 0)
    ps_words = f" and {best.ps} ps" if best.ps is not None else ""
    where = " on the workers' hosts" if best.ps is not None and not apart else ""
    text = (
        f"{budget} machines: {_workers(best.workers)}{ps_words}{where} are fastest, "
        f"{best.images_per_s:,.0f} {_unit(profile)}"
    )
    yield f"{text}; their limit: {best.limit.text}" if best.limit else text


def _doubled(most: int) -> list[int]:
    """1, 2, 4 ... up to `most`."""
    return [2**power for power in range(most.bit_length())]


def _beside_best(candidates: Sequence[Point]) -> list[int]:
    """Counts of ps between the best one and its neighbours, at most six."""
    counts = [point.ps or 0 for point in candidates]
    speeds = [point.images_per_s or 0.0 for point in candidates]
    best = speeds.index(max(speeds))
    low, high = counts[max(0, best - 1)], counts[min(len(counts) - 1, best + 1)]
    step = max(1, (high - low) // 7)
    return [count for count in range(low + step, high, step) if count not in counts]


def _calibrated(profile: Profile, ends: Sequence[_End]) -> Iterator[str]:
    """Yields what the calibrating rows gave."""
    if not profile.calibrating:
        return
    parts: list[str] = []
    if profile.step.mean is None:
        low, high = sorted(end.fitted.seconds for end in ends)
        parts.append(f"a step of {low:.3g} s" + (f" to {high:.3g} s" if high > 1.005 * low else ""))
    for end, name in zip(ends, ("slow end", "fast end"), strict=True):
        fitted = end.fitted
        before = len(parts)
        if fitted.device_link:
            parts.append(f"{speed(fitted.device_link)} between the devices of a host")
        if fitted.remote:
            what = "of a ps" if profile.way in PS_WAYS else "of a connection"
            parts.append(f"{speed(fitted.remote)} {what}")
        if fitted.extra:
            hosts = "hosts" if fitted.extra_of_hosts else "devices"
            parts.append(f"{fitted.extra * 1e3:.3g} ms more in each step with several {hosts}")
        if fitted.overlap:
            parts.append(f"at least {fitted.overlap:.0%} of the communication is hidden")
        parts[before:] = [f"{part} ({name})" for part in parts[before:]]
    counts = " and ".join(_workers(row.workers) for row in profile.calibrating)
    yield f"calibrated on {counts}: {'; '.join(parts) or 'the profile says the same'}"
    slow = [row.slowest for row in profile.calibrating if row.slowest is not None]
    if slow:
        yield (
            f"calibrated with a straggler, one worker with {min(slow):g} of the others' speed: the "
            f"prediction has none (--straggler {min(slow):g} adds it)"
        )


def _sure(profile: Profile, points: Sequence[Point]) -> Iterator[str]:
    """Yields how sure the figures are, and why."""
    known = [point for point in points if point.images_per_s]
    if profile.batch == 1:
        yield (
            "steps/s: the steps of all workers together, since the profile has no batch "
            "(`cluster-kit measure RUN --batch 32` gives it one)"
        )
    if any(point.unknown for point in points):
        yield "no figure where the model does not hold: see the column"
    if profile.exchange.overlap is None and any(p.low != p.high for p in known):
        yield (
            "from … to: whether communication hides behind computation was not measured; "
            "`overlap` in the profile narrows it"
        )
    if profile.step.spread is None and not profile.step.shape:
        yield f"steps are assumed to differ by 0 to {SPREADS[0]:.0%}: `spread` was not measured"
    errors = sorted(abs(p.error) for p in known if p.error is not None)
    if errors:
        middle = errors[len(errors) // 2]
        count = counted(len(errors), "measured row")
        text = f"against {count} that did not calibrate"
        yield f"{text}: median error {middle:.1%}, worst {errors[-1]:.1%}"
    fewest = min((row.workers for row in profile.calibrating), default=1)
    if profile.step.mean is None and any(point.workers < fewest for point in known):
        yield (
            f"fewer than {fewest} workers can be much faster: what a step needs besides bytes "
            "counts as computation; `cluster-kit measure MANIFEST.toml` tells them apart"
        )
    most = max((row.workers for row in profile.measured), default=1)
    far = [point.workers for point in known if point.workers > FAR * most]
    if far:
        yield f"from {_workers(min(far))} on it is far from what was measured, {_workers(most)}"


def _memory(change: Change, profile: Profile) -> Iterator[str]:
    """Yields that memory is not predicted, if devices other than those measured may need more."""
    moves = change.way is not None and change.way not in PS_WAYS and profile.way in PS_WAYS
    if moves or change.speed != 1:
        yield "whether model and batch fit into the memory of these devices is not predicted"


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as plain data: docs/schemas/predict-1.json."""
    points = []
    for point in answer.points:
        facts = asdict(point)
        facts["parts_s"] = dict(point.parts_s)
        if facts["limit"]:
            del facts["limit"]["cause"]  # a part of its text
        facts["error"] = point.error
        points.append(facts)
    return {
        "format": FORMAT,
        "name": answer.name,
        "way": answer.way,
        "points": points,
        "advice": list(answer.advice),
        "sure": list(answer.sure),
    }


_NUMBER = {"type": ["number", "null"], "minimum": 0}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of what `predict --json` prints."""

    def table(**properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def or_none(schema: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [schema, {"type": "null"}]}

    count = {"type": "integer", "minimum": 0}
    texts = {"type": "array", "items": {"type": "string"}}
    point = table(
        workers={"type": "integer", "minimum": 1},
        ps=or_none({"type": "integer", "minimum": 1}),
        machines={"type": "integer", "minimum": 1},
        images_per_s=_NUMBER,
        low=_NUMBER,
        high=_NUMBER,
        efficiency=_NUMBER,
        epoch_s=_NUMBER,
        staleness=or_none(table(mean={"type": "number", "minimum": 0}, p50=count, p95=count,
                                max=count)),
        limit=or_none(table(kind={"enum": list(KINDS)}, name={"type": "string"},
                            text={"type": "string"})),
        parts_s={"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
        goodput=or_none(table(share={"type": "number", "minimum": 0, "maximum": 1},
                              checkpoint_every_s={"type": "number", "exclusiveMinimum": 0})),
        measured=_NUMBER,
        calibrates={"type": "boolean"},
        unknown={"type": "string"},
        error={"type": ["number", "null"]},
    )  # fmt: skip
    return table(
        format={"const": FORMAT},
        name={"type": "string"},
        way={"enum": list(WAYS)},
        points={"type": "array", "items": point},
        advice=texts,
        sure=texts,
    )
