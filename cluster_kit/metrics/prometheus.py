"""A run's metrics: families, values, and Prometheus's text format. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cluster_kit.contract.events import (
    End,
    Epoch,
    Evaluation,
    Metrics,
    Retry,
    Start,
    Step,
    Training,
)  # fmt: skip
from cluster_kit.observe import lives
from cluster_kit.observe.progress import Entry, Figures, figures_of, number
from cluster_kit.observe.state import CLOCK_SLACK_S
from cluster_kit.observe.task_view import ALIVE, State, state_after
from cluster_kit.observe.usage import Sample
from cluster_kit.platforms.engine import Action, Event
from cluster_kit.resolved import Cluster
from cluster_kit.roles import ROLES

if TYPE_CHECKING:
    from prometheus_client import Metric


PREFIX = "clusterkit_"
OF_RUN = ("cluster", "run")
OF_TASK = (*OF_RUN, "role", "task", "index")
"""Not `job`: Prometheus uses that label itself, and would rename this one."""
_LABELS = {"run": OF_RUN, "task": OF_TASK, "engine": ()}
"""Units by the first word of a metric's name."""
SILENT = "silent"
"""The state of a task that has sent nothing for long if the engine reports no state for it."""
STATES = (*(str(state) for state in State), SILENT)

Kind = Literal["counter", "gauge"]


@dataclass(frozen=True)
class Family:
    """A metric; `labels` come in addition to those of its run or task. Its name ends with the
    unit."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def all_labels(self) -> tuple[str, ...]:
        return (*_LABELS[self.name.removeprefix(PREFIX).partition("_")[0]], *self.labels)


_ROWS: tuple[tuple[str, Kind, str, tuple[str, ...]], ...] = (
    ("engine_up", "gauge", "1 if the engine answers `cluster-kit serve`, else 0.", ()),
    ("run_info", "gauge", "What ran: always 1.", ("image", "style", "kit")),
    ("run_up", "gauge", "1 while the run has no verdict and a task of it is up, else 0.", ()),
    ("run_start_time_seconds", "gauge", "When its containers were started, Unix time.", ()),
    ("run_duration_seconds", "gauge", "How long the run took, or has taken so far.", ()),
    ("run_phase_seconds", "gauge", "How long a part of the run took; known at its end.",
     ("phase",)),
    ("run_success", "gauge", "1 if the run ended well, 0 if not; absent before its end.", ()),
    ("run_exit_code", "gauge", "The exit code of `up`; absent before its end.", ()),
    ("run_verdict_info", "gauge", "How the run ended: always 1, absent before its end.",
     ("verdict", "reason", "blame")),
    ("run_retries_total", "counter", "How often the leader restarted its program.", ()),
    ("run_checkpoint_time_seconds", "gauge", "When the newest checkpoint was complete, Unix time.",
     ()),
    ("run_checkpoint_step", "gauge", "The step of the newest checkpoint: of its name, or "
     "last reported before it was complete.", ()),
    ("run_target_steps", "gauge", "The global step at which the training ends, if it is known.",
     ()),
    ("run_metric", "gauge", "A final figure that a program reported, by its name.", ("metric",)),
    ("task_info", "gauge", "Where the task is: always 1.", ("ip", "gpus")),
    ("task_up", "gauge", "1 if the task's container runs, else 0.", ()),
    ("task_state", "gauge", "1 for the state that the task is in, 0 for each other one.",
     ("state",)),
    ("task_exit_code", "gauge", "The exit code of the task's last end; absent while it runs.", ()),
    ("task_restarts_total", "counter", "How often the task's container was restarted.", ()),
    ("task_cpu_seconds_total", "counter", "CPU time of all processes of the task.", ()),
    ("task_cpu_limit_cores", "gauge", "The task's CPU limit; absent without one.", ()),
    ("task_memory_bytes", "gauge", "Memory in use; absent while the task does not run.", ()),
    ("task_memory_peak_bytes", "gauge", "The highest memory use that was measured.", ()),
    ("task_memory_limit_bytes", "gauge", "The task's memory limit; absent without one.", ()),
    ("task_network_receive_bytes_total", "counter", "Bytes that the task's network received.", ()),
    ("task_network_transmit_bytes_total", "counter", "Bytes that the task's network sent.", ()),
    ("task_gpus", "gauge", "The number of GPUs assigned to the task.", ()),
    ("task_gpu_busy_ratio", "gauge", "The share of time in which its GPUs compute, 0 to 1.", ()),
    ("task_gpu_memory_bytes", "gauge", "Memory in use on its GPUs, by all processes.", ()),
    ("task_steps_total", "counter", "Steps that the task reported; repeated ones count again.", ()),
    ("task_step", "gauge", "The global step that the task last reported; functions of a "
     "coordinator that the kit counts begin anew when its program is started again.", ()),
    ("task_steps_per_second", "gauge", "The speed that the task last reported; absent while it "
     "does not run.", ()),
    ("task_epoch", "gauge", "The epoch that the task finished last, from 1.", ()),
    ("task_loss", "gauge", "The loss that the task last reported; NaN if it diverged.", ()),
    ("task_accuracy_ratio", "gauge", "The accuracy that the task last reported, 0 to 1.", ()),
    ("task_map_50_ratio", "gauge", "The mAP@0.5 that the task last reported, 0 to 1.", ()),
    ("task_staleness_updates", "gauge", "By how many updates gradients were late, on average.",
     ()),
    ("task_evaluated_step", "gauge", "The global step of the checkpoint that was scored last.",
     ()),
    ("task_straggler", "gauge", "1 while the task is much slower than others like it, else 0.",
     ()),
    ("task_last_told_time_seconds", "gauge", "When the task wrote a line last, Unix time.", ()),
)  # fmt: skip

FAMILIES = {PREFIX + row[0]: Family(PREFIX + row[0], *row[1:]) for row in _ROWS}
"""The families by name, in the order in which they are written."""


MOST_METRICS, LONGEST_NAME = 200, 100
"""The maximum number of names that a program can report: each is a series."""


@dataclass
class Counter:
    """A count that starts at 0 after each restart of its source; `total` never decreases."""

    before: float = 0.0
    now: float = 0.0

    @property
    def total(self) -> float:
        return self.before + self.now

    def see(self, value: float, anew: bool) -> None:
        if anew:
            self.before, self.now = self.total, 0.0
        self.now = max(self.now, value)


@dataclass
class Tally:
    """The counts of one task; add its reports, oldest first.

    Args:
        first_step: the step from which steps are counted: 0, or None if the run continues an
            earlier one (the first reported step then counts as the start).
    """

    first_step: int | None = 0
    cpu_s: Counter = field(default_factory=Counter)
    received: Counter = field(default_factory=Counter)
    sent: Counter = field(default_factory=Counter)
    steps: Counter = field(default_factory=Counter)
    figures: Figures = field(default_factory=Figures)
    """The newest of each."""
    metrics: dict[str, float] = field(default_factory=dict)
    usage: Sample | None = None
    memory_peak: float | None = None
    step: int | None = None
    evaluated: int | None = None
    target: int | None = None
    retries: int = 0
    last_told: float | None = None
    path: list[tuple[float, int]] = field(default_factory=list)
    """(Unix seconds, global step) of each report."""
    _lives: int = 1
    _container: lives.Lives = ()
    _first_attempts: int = 0
    _paused: bool = False
    _reported: tuple[float, State] | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the container's last end, None while it runs."""
        return self._container[-1].exit_code if self._container else None

    @property
    def restarts(self) -> int:
        """The number of restarts, by the engine's events or (of an unwatched run) the task's."""
        return max(len(lives.starts(self._container)), self._first_attempts, self._lives, 1) - 1

    @property
    def state(self) -> State:
        if self._paused:
            return State.PAUSED
        if self._container and self._container[-1].ended is not None:
            return State.ENDED
        since, state = self._reported or (0.0, State.RUNNING)
        if not self._container and self.last_told is None:
            return State.CREATED
        started = max(lives.starts(self._container)[-1:], default=0.0)
        return state if since >= started - CLOCK_SLACK_S else State.RUNNING

    def happened(self, event: Event) -> None:
        """Add an event of its container."""
        self._container = lives.after(self._container, event)
        if event.action in (Action.START, Action.DIE, Action.PAUSE, Action.UNPAUSE):
            self._paused = event.action == Action.PAUSE

    def used(self, sample: Sample) -> None:
        """Add a line of its usage file."""
        last, self.usage = self.usage, sample
        # What ended processes have used can be lost, so CPU time may fall a little by itself.
        anew = last is not None and (
            sample.rx_bytes < last.rx_bytes
            or sample.tx_bytes < last.tx_bytes
            or sample.cpu_s < last.cpu_s / 2
        )
        self._lives += anew
        self.cpu_s.see(sample.cpu_s, anew)
        self.received.see(sample.rx_bytes, anew)
        self.sent.see(sample.tx_bytes, anew)
        self.memory_peak = max(self.memory_peak or 0.0, sample.memory)
        self.last_told = max(self.last_told or 0.0, sample.time)

    def told(self, entry: Entry) -> None:
        """Add a line of its progress file, which a user's program may have written."""
        self.last_told = max(self.last_told or 0.0, entry.time)
        self._state(entry)
        reported = figures_of(entry.event)
        step, own_steps = _step(reported.step), _step(reported.own_steps)
        if own_steps is not None:
            self.steps.see(own_steps, anew=own_steps < self.steps.now)
        if step is not None:
            self._stepped(entry, step, counted=own_steps is not None)
        self.figures = self.figures.and_then(reported)
        match entry.event:
            case Metrics(values=values):
                self._reports(values)
            case Retry():
                self.retries += 1
            case Training(steps=steps):
                self.target = _step(steps)

    def step_at(self, moment: float) -> int | None:
        """The last step that the task reported before this Unix time."""
        return next((step for time, step in reversed(self.path) if time <= moment), None)

    def _state(self, entry: Entry) -> None:
        state = self._reported[1] if self._reported else State.RUNNING
        if isinstance(entry.event, Start):
            self._first_attempts += entry.event.attempt == 1
            state = State.RUNNING
        elif isinstance(entry.event, End):
            state = State.ENDED
        else:  # a server writes no `start` after a restart
            alive = State.RUNNING if state is State.ENDED else state
            state = state_after(alive, entry)
        self._reported = entry.time, state

    def _stepped(self, entry: Entry, step: int, counted: bool) -> None:
        if isinstance(entry.event, Evaluation):
            self.evaluated = step
            return
        before, self.step = self.step, step
        self.path.append((entry.time, step))
        if not counted and isinstance(entry.event, Step | Epoch):
            first = step if self.first_step is None else self.first_step
            self.steps.see(self.steps.now + max(step - (first if before is None else before), 0),
                           anew=False)  # fmt: skip

    def _reports(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            known = name in self.metrics or len(self.metrics) < MOST_METRICS
            if known and len(name) <= LONGEST_NAME and (value := number(value)) is not None:
                self.metrics[name] = value


def _step(value: object) -> int | None:
    step = number(value)
    return int(step) if step is not None and step >= 0 else None


@dataclass(frozen=True)
class TaskFacts:
    """A task as it was started; limits are None without one (cores, bytes)."""

    name: str
    role: str
    index: int
    ip: str = ""
    gpus: tuple[str, ...] = ()
    cpus: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class RunFacts:
    """A run's record, and its outcome.json, {} before its end.

    `since` is when its containers were started, Unix seconds. `engine` has the states of its
    containers, {} if unknown. `checkpoint` is (Unix seconds, name) of the newest one.
    """

    cluster: str
    run: str
    tasks: tuple[TaskFacts, ...]
    leader: str = ""
    since: float | None = None
    image: str = ""
    style: str = ""
    kit: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, State] = field(default_factory=dict)
    checkpoint: tuple[float, str] | None = None
    stragglers: frozenset[str] = frozenset()

    @property
    def over(self) -> bool:
        """Whether its containers have ended; False if they were kept."""
        return bool(self.outcome) and not self.outcome.get("kept")


def run_facts_of(cluster: Cluster, run: str, since: float) -> RunFacts:
    """The facts in a run's record."""
    tasks = tuple(
        TaskFacts(one.name, one.role, one.index, str(one.ip), one.gpus, one.cpus, one.memory)
        for one in cluster.tasks
    )
    return RunFacts(cluster.name, run, tasks, cluster.leader.name, since, cluster.image,
                    str(cluster.style), cluster.origin.kit)  # fmt: skip


def run_facts_of_outcome(outcome: Mapping[str, Any], cluster: str, run: str) -> RunFacts:
    """The facts of a run of which only the outcome exists."""
    tasks = tuple(
        TaskFacts(str(row["name"]), str(row.get("role", "")), _index(row), str(row.get("ip", "")))
        for row in rows(outcome)
        if row.get("name")
    )
    leads = (one.name for one in tasks if one.role in ROLES and ROLES[one.role].leads)
    leader = next(leads, "")
    return RunFacts(cluster, run, tasks, leader, outcome=outcome)


def rows(outcome: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tasks of outcome.json, which another version may have written otherwise."""
    tasks = outcome.get("tasks")
    return [row for row in tasks if isinstance(row, dict)] if isinstance(tasks, list) else []


def _index(row: Mapping[str, Any]) -> int:
    tail = str(row["name"]).rpartition("-")[2]
    return int(tail) if tail.isascii() and tail.isdecimal() else 0


SILENT_S = 15.0
"""A task records its usage every second, or every five; after this time it counts as not running.
"""
_UP = (*ALIVE, State.PAUSED)

Named = tuple[str, Mapping[str, str], float]
"""The end of a metric's name, further labels, the value."""


def known(*rows: tuple[str, float | None]) -> Iterator[Named]:
    """The rows that have a value."""
    return ((name, {}, value) for name, value in rows if value is not None)


@dataclass(frozen=True)
class Seen:
    """One task: its facts, its tally and its state from all sources."""

    run: RunFacts
    facts: TaskFacts
    tally: Tally
    outcome: Mapping[str, Any]
    now: float

    @property
    def state(self) -> str:
        if self.run.over:
            return State.ENDED
        reported, usage = self.tally.state, self.tally.usage
        engine = self.run.engine.get(self.facts.name)
        if engine is not None:
            works = engine == State.RUNNING and reported in _UP and reported != State.PAUSED
            return reported if works else engine
        stale = usage is not None and self.now - usage.time > SILENT_S
        return SILENT if stale and reported in _UP and reported != State.PAUSED else reported

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
        codes = (self.outcome.get("exit_code"), self.tally.exit_code)
        return next((code for one in codes if (code := number(one)) is not None), None)

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
        steps = None if tally.step is None and not tally.steps.total else tally.steps.total
        yield from known(
            ("steps_total", steps),
            ("step", tally.step),
            ("steps_per_second", figures.steps_per_s if self.up else None),
            ("epoch", figures.epoch),
            ("loss", figures.loss),
            ("accuracy_ratio", figures.accuracy),
            ("map_50_ratio", figures.map_50),
            ("staleness_updates", figures.staleness),
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
    """Whether a label is a program's text that is not in the outcome, in which such texts are
    masked."""


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


def _numbers(values: Any) -> dict[str, float]:
    items = values.items() if isinstance(values, dict) else ()
    return {str(name): value for name, one in items if (value := number(one)) is not None}


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Collected:
    """The object from which the Prometheus library collects the metrics."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        return self._metrics


def text(values: Iterable[Value]) -> str:
    """The exposition of all these values, of one run or several; families without one are left out.

    Characters that UTF-8 does not have, in what a program reported, become `?`.
    """
    # It imports an HTTP server and TLS, which no other command needs.
    from prometheus_client import CollectorRegistry, generate_latest

    families: dict[str, list[Value]] = {}
    for value in values:
        families.setdefault(value.name, []).append(value)
    registry = CollectorRegistry()
    registry.register(
        _Collected([_metric(name, families[name]) for name in FAMILIES if name in families])
    )
    return generate_latest(registry).decode()


def _metric(name: str, values: Sequence[Value]) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    family = FAMILIES[name]
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(name, family.help, labels=family.all_labels)
    rows = {
        tuple(_clean(value.labels[label]) for label in family.all_labels): value.value
        for value in values  # duplicates would make the whole text invalid
    }
    for labels, figure in rows.items():
        metric.add_metric(labels, figure)
    return metric


def _clean(label: str) -> str:
    return label.encode(errors="replace").decode()
