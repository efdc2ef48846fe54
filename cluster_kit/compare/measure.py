"""Trains the variants of a comparison, and computes their figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

from cluster_kit.contract.events import Evaluation, Step
from cluster_kit.errors import Interrupted, KitError
from cluster_kit.host import Host
from cluster_kit.observe.progress import Entry, ProgressReader
from cluster_kit.roles import CHIEF, EVALUATOR, PS, ROLES, WORKER
from cluster_kit.run.launch import launch
from cluster_kit.run.outcome import Outcome, TaskOutcome
from cluster_kit.run.request import Request
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory, Workspace, write_atomically

GRADIENTS = 2
"""Workers or clones that compute gradients at the same time."""
BATCH = 32
TRAINING_PART = 0.8
"""Fraction of the host's CPUs for the training tasks; the rest is for the evaluator."""
STRAGGLER_CPUS = 0.2
MACHINE_CPUS, MACHINE_GB = 2.0, 8.0
MACHINE_MBIT = 100
MACHINE_BANDWIDTH = f"{MACHINE_MBIT}mbit"
LEAST_GB = 1.5
"""Minimum memory of a task in GB, which TensorFlow's client with a small model needs."""


@dataclass(frozen=True)
class Variant:
    """One way of training: tasks, each role's part of the CPU budget, and arguments."""

    key: str
    title: str
    args: tuple[str, ...]
    parts: Mapping[str, float]
    """The fraction of the CPU budget of each task, by role; there are one chief and one ps."""
    workers: int
    synchronous: bool
    style: str = "auto"

    def count(self, role: str) -> int:
        """The number of tasks of a role that the variant has."""
        return self.workers if role == WORKER.name else 1

    @property
    def batches_per_update(self) -> int:
        """The number of workers' batches that go into one update of the model."""
        return GRADIENTS if self.synchronous else 1


# About each role's part of the CPU time, and the same for a ps in both ways: at the goal of equal
# speeds no way is limited by one role while the CPUs of another are idle.
ALL = {CHIEF.name: 0.2, PS.name: 0.26, WORKER.name: 0.27}
GRAPH = {PS.name: 0.26, WORKER.name: 0.37}
ALONE = {WORKER.name: 1.0}
HALVES = {WORKER.name: 0.5}
COORDINATED = ("--strategy", "parameter-server")
BETWEEN_GRAPH = ("--strategy", "graph")

VARIANTS = (
    Variant("ps-async", "ps async, coordinator", (*COORDINATED, "--update", "async"), ALL, 2,
            False),
    Variant("ps-sync", "ps sync, coordinator", (*COORDINATED, "--update", "sync"), ALL, 2, True),
    Variant("graph-async", "ps async, graph mode", (*BETWEEN_GRAPH, "--update", "async"), GRAPH, 2,
            False, "all-tasks"),
    Variant("graph-sync", "ps sync, graph mode", (*BETWEEN_GRAPH, "--update", "sync"), GRAPH, 2,
            True, "all-tasks"),
    Variant("all-reduce", "all-reduce", ("--strategy", "all-reduce"), HALVES, 2, True),
    Variant("clones", "2 clones in one task", (*BETWEEN_GRAPH, "--num-clones", str(GRADIENTS),
            "--clone-on-cpu", "--batch-size", str(BATCH * GRADIENTS)), ALONE, 1, True),
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """The circumstances of a comparison."""

    key: str
    title: str


EVEN = Scenario("even", "equal workers")
STRAGGLER = Scenario("straggler", f"worker-1 at {STRAGGLER_CPUS:g} CPU")
SYSTEM_A = Scenario("system-a", f"system A's machine, {MACHINE_BANDWIDTH}/s")
SCENARIOS = (EVEN, STRAGGLER, SYSTEM_A)


@dataclass(frozen=True)
class Length:
    """The length of each run: updates of one worker's batch per epoch, and epochs."""

    steps: int
    epochs: int

    def images(self) -> int:
        """The number of images that the model is trained on in the whole run."""
        return self.steps * self.epochs * BATCH


@dataclass(frozen=True)
class Run:
    """One run of the comparison; `skipped` is the reason why it is not run, "" if it is run."""

    variant: Variant
    scenario: Scenario
    overrides: Mapping[str, Any]
    cpus: float
    """Sum of the training tasks' limits, in cores."""
    images: int
    """The images that the model is trained on."""
    skipped: str = ""

    @property
    def key(self) -> str:
        return f"{self.scenario.key}/{self.variant.key}"


def plan_runs(
    variants: tuple[Variant, ...], scenarios: tuple[Scenario, ...], length: Length, cpus: float
) -> list[Run]:
    """All runs, scenario by scenario.

    Args:
        cpus: the host's CPUs in cores.
    """
    return [_run(variant, scenario, length, cpus) for scenario in scenarios for variant in variants]


def _run(variant: Variant, scenario: Scenario, length: Length, cpus: float) -> Run:
    limits: dict[str, dict[str, Any]] = {
        role: {"cpus": round(part * cpus * TRAINING_PART, 3)}
        for role, part in variant.parts.items()
    }
    total = sum(limits[role]["cpus"] * variant.count(role) for role in limits)
    tables: dict[str, Any] = {"role": limits}
    skipped = ""
    if scenario is STRAGGLER and variant.workers < 2:
        skipped = "there is no second worker"
    elif scenario is STRAGGLER:
        total += STRAGGLER_CPUS - limits[WORKER.name]["cpus"]
        tables["task"] = {"worker-1": {"cpus": STRAGGLER_CPUS}}
    if scenario is SYSTEM_A:
        for limit in limits.values():
            limit["cpus"] = min(limit["cpus"], MACHINE_CPUS)
            fraction = limit["cpus"] / MACHINE_CPUS
            limit["memory"] = f"{max(LEAST_GB, MACHINE_GB * fraction):.2f}g"
            limit["bandwidth"] = MACHINE_BANDWIDTH
        total = sum(limits[role]["cpus"] * variant.count(role) for role in limits)
    limits[EVALUATOR.name] = {"cpus": round(cpus * (1 - TRAINING_PART), 3)}
    steps = max(1, length.steps // variant.batches_per_update)
    overrides = {
        "name": f"compare-{variant.key}",
        CHIEF.name: int(CHIEF.name in variant.parts),
        WORKER.name: variant.workers,
        PS.name: int(PS.name in variant.parts),
        "style": variant.style,
        "extra_args": [
            *("--epochs", str(length.epochs), "--steps-per-epoch", str(steps)),
            *variant.args,
        ],
        **tables,
    }
    return Run(variant, scenario, overrides, round(total, 3), length.images(), skipped)


Curve: TypeAlias = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Measured:
    """The figures of a successful run; None if a figure was not measured."""

    images_per_s: float | None
    """From the first step to the last checkpoint, saving included: the programs' own figures do not
    all count the same seconds."""
    updates: int | None
    staleness_mean: float | None
    staleness_max: int | None
    accuracy: float | None
    """Validation accuracy of the last checkpoint."""
    seconds_to_accuracy: float | None
    """Seconds from the first step to the first checkpoint with the accuracy; None: never."""
    curve: Curve
    """(seconds since the first step, validation accuracy) of every checkpoint."""
    bytes_per_update: Mapping[str, float]
    """The bytes that all containers of a role received and sent per update, by role."""
    seconds: float
    """The whole run, from `up` to the end."""


@dataclass(frozen=True)
class Result:
    """The result of one run: its figures, or the reason why there are none."""

    run: Run
    measured: Measured | None = None
    failed: str = ""

    def facts(self) -> dict[str, Any]:
        """The values for compare.json."""
        return {
            "scenario": self.run.scenario.key,
            "variant": self.run.variant.key,
            "title": self.run.variant.title,
            "cpus": self.run.cpus,
            "skipped": self.run.skipped or None,
            "failed": self.failed or None,
            "measured": asdict(self.measured) if self.measured else None,
        }


def result(run: Run, outcome: Outcome, entries: Sequence[Entry], accuracy: float) -> Result:
    """The result of a run that has ended.

    Args:
        entries: of all tasks' progress files, oldest first.
        accuracy: the validation accuracy to reach, 0 to 1.
    """
    if not outcome.success:
        names_it = not outcome.blame or outcome.message.startswith(f"{outcome.blame} ")
        blame = "" if names_it else f"{outcome.blame}: "
        return Result(run, failed=f"{blame}{outcome.message}")
    metrics = outcome.metrics
    updates = metrics.get("updates", metrics.get("global_step"))
    steps = (
        (entry.time, entry.event.step)
        for entry in entries
        if isinstance(entry.event, Step) and entry.event.step is not None  # a worker counts its own
    )
    start, first_step = next(steps, (None, None))
    curve = () if start is None else _curve(entries, start)
    reached = [seconds for seconds, scored in curve if scored >= accuracy]
    return Result(
        run,
        Measured(
            images_per_s=_speed(run.images, updates, first_step, curve),
            updates=updates,
            staleness_mean=metrics.get("staleness_mean"),
            staleness_max=metrics.get("staleness_max"),
            accuracy=metrics.get("validation_accuracy"),
            seconds_to_accuracy=reached[0] if reached else None,
            curve=curve,
            bytes_per_update=_traffic(outcome.tasks, updates),
            seconds=outcome.timings_s["total"],
        ),
    )


def _speed(
    images: int, updates: int | None, first_step: float | None, curve: Curve
) -> float | None:
    """Images per second from the first step to the last checkpoint; None if one is unknown."""
    if not updates or first_step is None or not curve or curve[-1][0] <= 0:
        return None
    return round(images * (updates - first_step) / updates / curve[-1][0], 2)


def _curve(entries: Sequence[Entry], start: float) -> Curve:
    """(seconds, accuracy) of each checkpoint, by when it was written; it is scored later."""
    points: list[tuple[float, float]] = []
    for entry in entries:
        scored = entry.event
        if isinstance(scored, Evaluation) and scored.accuracy is not None:
            written = entry.time if scored.written is None else scored.written
            points.append((round(float(written) - start, 2), float(scored.accuracy)))
    return tuple(sorted(points))


def _traffic(tasks: Sequence[TaskOutcome], updates: int | None) -> dict[str, float]:
    """Bytes per update by role, without tasks that counted none; a restarted task counts from 0."""
    traffic: dict[str, float] = {}
    for task in tasks:
        received, sent = task.rx_bytes, task.tx_bytes
        if not ROLES[task.role].trains or received is None or sent is None or not updates:
            continue
        traffic[task.role] = traffic.get(task.role, 0.0) + (received + sent) / updates
    return traffic


COLUMNS = ("way", "CPUs", "images/s", "to {:.0%}", "accuracy", "updates", "staleness", "per update")
NOTHING = "-"


def tables(results: Sequence[Result], accuracy: float) -> list[Table]:
    """One table for each scenario with a run."""
    by_scenario = {
        scenario: [result for result in results if result.run.scenario == scenario]
        for scenario in SCENARIOS
    }
    return [_table(scenario, rows, accuracy) for scenario, rows in by_scenario.items() if rows]


def _table(scenario: Scenario, results: Sequence[Result], accuracy: float) -> Table:
    table = Table(title=scenario.title, title_justify="left", title_style="bold", pad_edge=False)
    for heading in COLUMNS:
        is_text = heading in ("way", "per update")
        table.add_column(heading.format(accuracy), justify="left" if is_text else "right")
    for result in results:
        table.add_row(*_row(result))
    return table


def _row(result: Result) -> list[Text | str]:
    head: list[Text | str] = [result.run.variant.title, f"{result.run.cpus:g}"]
    if result.measured is None:
        why = result.failed or result.run.skipped
        label, style = ("FAILED", "bold red") if result.failed else ("left out", "dim")
        return [*head, Text(label, style=style), *[""] * 4, Text(why, style="dim")]
    measured = result.measured
    return [
        *head,
        number(measured.images_per_s, 0),
        number(measured.seconds_to_accuracy, 1, " s"),
        number(measured.accuracy, 3),
        number(measured.updates, 0),
        staleness(measured),
        traffic(measured),
    ]


def number(value: float | None, digits: int, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}{unit}"


def staleness(measured: Measured) -> str:
    """`0.98 (max 3)`."""
    if measured.staleness_mean is None:
        return NOTHING
    most = "" if measured.staleness_max is None else f" (max {measured.staleness_max})"
    return f"{measured.staleness_mean:.2f}{most}"


def traffic(measured: Measured) -> str:
    """`ps 4.9 MB, worker 5.0 MB`."""
    roles = measured.bytes_per_update.items()
    return ", ".join(f"{role} {size / 1e6:.2f} MB" for role, size in sorted(roles)) or NOTHING


def facts(
    results: Sequence[Result], accuracy: float, length: Length, cpus: float
) -> dict[str, Any]:
    """The content of compare.json."""
    return {
        "host_cpus": cpus,
        "accuracy": accuracy,
        "images": length.images(),
        "epochs": length.epochs,
        "results": [result.facts() for result in results],
    }


BASE = Path(__file__).with_name("base.toml")
NewView = Callable[[], View]


def run_all(
    host: Host, runs: Sequence[Run], workspace: Workspace, new_view: NewView, accuracy: float
) -> Iterator[Result]:
    """Yields the result of each run; a failed run yields a Result, too.

    Raises:
        Interrupted: Ctrl-C was pressed; the running cluster was removed.
    """
    for run in runs:
        yield Result(run) if run.skipped else _run_one(host, run, workspace, new_view(), accuracy)


def _run_one(host: Host, run: Run, workspace: Workspace, view: View, accuracy: float) -> Result:
    request = Request(str(BASE), run.overrides)
    host.interrupts.interrupt_once()  # the end of the previous run ignored these signals
    try:
        outcome = launch(host, request, workspace, view, keep=False, resume=False)
    except KitError as error:
        return Result(run, failed=error.message)
    finally:
        view.close()
    if outcome.exit_code == Interrupted.exit_code:
        raise Interrupted("the comparison was interrupted", "what was measured so far is shown")
    tasks = [task.name for task in outcome.tasks]
    entries = ProgressReader(RunDirectory(Path(outcome.run)).output, tasks=tasks).poll()
    return result(run, outcome, entries, accuracy)


def write_json(facts: dict[str, Any], file: Path) -> None:
    """Write facts to a file as JSON; raises OSError."""
    write_atomically(file, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
