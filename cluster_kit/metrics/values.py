"""The values of a run's metrics, from what was seen of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cluster_kit.metrics.table import PREFIX, SILENT, STATES
from cluster_kit.metrics.tally import RunFacts, Tally, TaskFacts, rows
from cluster_kit.observe.figures import number
from cluster_kit.observe.task_view import State

SILENT_S = 15.0
"""A task writes down what it uses every second, or every five: after so long it does not run."""
_UP = (State.RUNNING, State.READY, State.TRAINING, State.SCORING, State.PAUSED)

Named = tuple[str, Mapping[str, str], float]
"""The end of a metric's name, further labels, the value."""


def known(*rows: tuple[str, float | None]) -> Iterator[Named]:
    """Those that have a value."""
    return ((name, {}, value) for name, value in rows if value is not None)


@dataclass(frozen=True)
class Seen:
    """One task, from all sides."""

    run: RunFacts
    facts: TaskFacts
    tally: Tally
    outcome: Mapping[str, Any]
    now: float

    @property
    def state(self) -> str:
        if self.run.over:
            return State.ENDED
        told, usage = self.tally.state, self.tally.usage
        engine = self.run.engine.get(self.facts.name)
        if engine is not None:
            works = engine == State.RUNNING and told in _UP and told != State.PAUSED
            return told if works else engine
        stale = usage is not None and self.now - usage.time > SILENT_S
        return SILENT if stale and told in _UP and told != State.PAUSED else told

    @property
    def up(self) -> bool:
        return self.state in _UP

    def values(self) -> Iterator[Named]:
        facts, tally, state = self.facts, self.tally, self.state
        yield "info", {"ip": facts.ip, "gpus": ",".join(facts.gpus)}, 1
        yield "up", {}, self.up
        yield from (("state", {"state": one}, one == state) for one in STATES)
        yield from known(
            ("exit_code", None if self.up else self._exit_code()),
            ("restarts_total", max(number(self.outcome.get("restarts")) or 0.0, tally.restarts)),
            ("cpu_limit_cores", facts.cpus),
            ("memory_limit_bytes", facts.memory),
            ("gpus", len(facts.gpus)),
            ("straggler", float(self.up and facts.name in self.run.stragglers)),
            ("last_told_time_seconds", tally.last_told),
        )
        yield from self._use()
        yield from self._progress()

    def _exit_code(self) -> float | None:
        told = (self.outcome.get("exit_code"), self.tally.exit_code)
        return next((code for one in told if (code := number(one)) is not None), None)

    def _use(self) -> Iterator[Named]:
        tally, usage = self.tally, self.tally.usage
        if usage is None:
            return
        yield from known(
            ("cpu_seconds_total", tally.cpu_s.total),
            ("network_receive_bytes_total", tally.received.total),
            ("network_transmit_bytes_total", tally.sent.total),
            ("memory_peak_bytes", tally.memory_peak),
        )
        if self.up:
            yield from known(
                ("memory_bytes", usage.memory),
                ("gpu_busy_ratio", usage.gpu_busy),
                ("gpu_memory_bytes", usage.gpu_memory),
            )

    def _progress(self) -> Iterator[Named]:
        tally, figures = self.tally, self.tally.figures
        steps = None if tally.step is None else tally.steps.total
        yield from known(
            ("steps_total", steps),
            ("step", tally.step),
            ("steps_per_second", figures.get("steps_per_s") if self.up else None),
            ("epoch", figures.get("epoch")),
            ("loss", figures.get("loss")),
            ("accuracy_ratio", figures.get("accuracy")),
            ("map_50_ratio", figures.get("map_50")),
            ("staleness_updates", figures.get("staleness")),
            ("evaluated_step", tally.evaluated),
        )


_BY_STEP = re.compile(r"(?:model|manual)\.ckpt-(\d+)")


@dataclass(frozen=True)
class Value:
    """A sample: the full name of its metric, its labels, the number."""

    name: str
    labels: Mapping[str, str]
    value: float
    reported: bool = False
    """Whether a label is a program's word that no outcome has, where such words are masked."""


def values_of(run: RunFacts, tallies: Mapping[str, Tally], now: float) -> Iterator[Value]:
    """Yields all values of a run.

    Args:
        tallies: by task.
        now: Unix seconds.
    """
    outcomes = {row.get("name"): row for row in rows(run.outcome)}
    up = False
    for task in run.tasks:
        seen = Seen(run, task, tallies[task.name], outcomes.get(task.name, {}), now)
        labels = {"cluster": run.cluster, "run": run.run, "role": task.role, "task": task.name,
                  "index": str(task.index)}  # fmt: skip
        up = up or seen.up
        for name, more, value in seen.values():
            yield Value(f"{PREFIX}task_{name}", {**labels, **more}, value)
    labels = {"cluster": run.cluster, "run": run.run}
    for name, more, value in _of_run(run, tallies, now, up):
        yield Value(f"{PREFIX}run_{name}", {**labels, **more}, value)
    judged = _numbers(run.outcome.get("metrics"))
    reported = {name: value for tally in tallies.values() for name, value in tally.metrics.items()}
    for name, value in {**reported, **judged}.items():
        more = {**labels, "metric": name}
        yield Value(f"{PREFIX}run_metric", more, value, reported=name not in judged)


def _of_run(run: RunFacts, tallies: Mapping[str, Tally], now: float, up: bool) -> Iterator[Named]:
    outcome, leader = run.outcome, tallies.get(run.leader)
    timings = _numbers(outcome.get("timings_s"))
    began = run.since
    yield "info", {"image": run.image, "style": run.style, "kit": run.kit}, 1
    yield "up", {}, up and not outcome
    yield from known(
        ("start_time_seconds", began),
        ("duration_seconds", timings.pop("total", None) if outcome else began and now - began),
        ("target_steps", leader.target if leader else None),
        ("retries_total", leader.retries if leader else None),
    )
    yield from (("phase_seconds", {"phase": name}, value) for name, value in timings.items())
    if outcome:
        yield from _ended(outcome)
    if run.checkpoint is not None:
        at, name = run.checkpoint
        named = _BY_STEP.fullmatch(name)
        step = int(named[1]) if named else leader.step_at(at) if leader else None
        yield from known(("checkpoint_time_seconds", at), ("checkpoint_step", step))


def _ended(outcome: Mapping[str, Any]) -> Iterator[Named]:
    success, reason = bool(outcome.get("success")), str(outcome.get("reason") or "")
    verdict = "success" if success else "stopped" if reason == "stopped" else "failed"
    blame = str(outcome.get("blame") or "")
    yield "success", {}, success
    yield from known(("exit_code", number(outcome.get("exit_code"))))
    yield "verdict_info", {"verdict": verdict, "reason": reason, "blame": blame}, 1


def _numbers(told: Any) -> dict[str, float]:
    items = told.items() if isinstance(told, dict) else ()
    return {str(name): value for name, one in items if (value := number(one)) is not None}
