"""The fault matrix: its cells, how they are run, and how each is judged."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster_kit.drill.injector import drill
from cluster_kit.drill.measure import Result
from cluster_kit.drill.result import NOTHING, Drill, seconds
from cluster_kit.drill.scenario_file import KINDS, At, Fault, Scenario, Written
from cluster_kit.host import Host
from cluster_kit.manifest.load import find
from cluster_kit.manifest.schema import Manifest
from cluster_kit.platforms.engine import Engine, Inventory
from cluster_kit.platforms.platform import load
from cluster_kit.report.lanes import lost as lost_words
from cluster_kit.resolved import Cluster
from cluster_kit.roles import EVALUATOR, ROLES, WORKER
from cluster_kit.run.request import Request
from cluster_kit.run.verdict import Reason
from cluster_kit.show.view import View
from cluster_kit.util.paths import FILES
from cluster_kit.workspace import Workspace, write_atomically

RESTARTS = 40
"""Enough for one restart per fault of a run, and for further attempts of its program."""
JOB_S = 1800


@dataclass(frozen=True)
class System:
    """A manifest by its name or path, and its overrides in the matrix.

    `length` is the argument for the training's length, "" for an unknown program. Its value is
    `least` units, and `for_each` more for each fault, since the training must outlast all faults.
    For roles in `goes_on_without` it is `for_each_beside` for each fault, since training continues
    without their tasks.
    """

    manifest: str
    length: str = ""
    least: int = 0
    for_each: int = 0
    for_each_beside: int = 0
    goes_on_without: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.manifest).stem

    def overrides(self, role: str, faults: int, times: int = 1) -> Mapping[str, Any]:
        """The keys that a run with this number of faults of a role overrides.

        Args:
            times: how many times the usual length.
        """
        each = self.for_each_beside if role in self.goes_on_without else self.for_each
        length = [self.length, str(times * (self.least + each * faults))] if self.length else []
        return {
            "name": f"{self.name[:33]}-matrix",
            "retries": RESTARTS,
            "deadline": {"job": JOB_S},
            "extra_args": [*length, *self.args],
        }


SMALL_DETECTION = (
    "--set", "model.image_size=32", "--set", "train_config.batch_size=8",
    "--set", "train_config.learning_rate.warmup_steps=0",
    "--set", "eval_config.num_examples=50", "--log-steps", "10", "--save-secs", "5",
    "--pause-ms", "50",
)  # fmt: skip
SAVES_OFTEN = ("--save-secs", "2")
"""Seconds between checkpoints: shorter than between faults, so that a checkpoint exists to return
to."""
ASYNC, SYNC = (WORKER.name, EVALUATOR.name), (EVALUATOR.name,)
SYSTEMS = (
    System("quickstart", "--epochs", 5, 5, 9, ASYNC),
    System("linear-regression", "--steps", 1000, 350, 700, ASYNC, SAVES_OFTEN),
    System("detection-sync", "--steps", 30, 25, 60, SYNC, SMALL_DETECTION),
    System("all-reduce", "--epochs", 5, 4, 9, SYNC),
    System("clones", "--epochs", 5, 4, 9, SYNC, SAVES_OFTEN),
)
"""The systems, with lengths for two cores; on a faster machine a run ends earlier, and a further
run gets the remaining faults.
"""
MOST_TIMES = 8
"""Runs without a fault are repeated with twice the length, up to this many times the usual one."""


LEADER = "leader"
PLACES = (
    LEADER,
    *(n for n, role in ROLES.items() if not (role.leads and role.most == 1) and not role.feeds),
)
"""The roles of the matrix; the leader is a separate role, whatever its role in the cluster. No
system has data workers."""
CALM_S = 3.0
"""Seconds between the end of a fault and the next fault, in which late reports arrive."""


@dataclass(frozen=True)
class Break:
    """A way to break a task: a kind of fault, and how many seconds it lasts (None: for good)."""

    kind: str
    lasts: float | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.lasts:g} s" if self.lasts else self.kind


BREAKS = (
    Break("crash"), Break("stop"), Break("freeze", 60), Break("freeze", 10), Break("cut", 60),
    Break("cut", 10), Break("cut", 1), Break("slow", 10), Break("memory"),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One fault of one role of one system."""

    system: System
    role: str
    fault: Break

    @property
    def ends_job(self) -> bool:
        """Whether the fault must end the job: a leader that gets SIGTERM ends its job."""
        return self.role == LEADER and KINDS[self.fault.kind].spares_leader

    def __str__(self) -> str:
        return f"{self.system.name} {self.role} {self.fault}"

    @property
    def key(self) -> str:
        """The name of the cell's file."""
        return f"{self.system.name}.{self.role}.{str(self.fault).replace(' ', '-')}"


def roles_of(manifest: Manifest) -> list[str]:
    """The roles that a system has; `worker` only if a worker exists that is not the leader."""
    leads = next(name for name, role in ROLES.items() if role.leads and manifest.count(name))
    return [LEADER, *(name for name in ROLES if manifest.count(name) > (name == leads))]


def task_of(role: str, cluster: Cluster) -> str:
    """The task of a role to break: the last one, so that it is not the leader."""
    return cluster.leader.name if role == LEADER else cluster.of(role)[-1].name


def groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The groups of cells that share a run: all cells of a role that do not end the job, or one
    that does."""
    runs: dict[object, list[Cell]] = {}
    for cell in cells:
        runs.setdefault((cell.system, cell.role, cell.ends_job and cell), []).append(cell)
    return list(runs.values())


def scenario(cells: Sequence[Cell], cluster: Cluster) -> Written:
    """The faults of these cells, each after the cluster has recovered from the one before it."""
    faults = tuple(
        Fault.model_validate(
            {"kind": cell.fault.kind, "task": task_of(cell.role, cluster), "at": At(calm=CALM_S)}
            | ({"for": cell.fault.lasts} if cell.fault.lasts else {})
        )
        for cell in cells
    )
    numbers = tuple(range(1, len(faults) + 1))
    return Written(Scenario(fault=faults), f"matrix: {cells[0].role}", numbers=numbers)


def line(facts: Mapping[str, Any]) -> str:
    """A line for a cell: the fault, the verdict, the measurements, and the misses."""
    by = f" ({facts['detected_by']})" if facts["detected_by"] else ""
    lost = NOTHING if facts["steps_lost"] is None else facts["steps_lost"]
    figures = (
        f"detected {seconds(facts['detected_after_s'])}{by},"
        f" going on {seconds(facts['going_on_after_s'])}, lost {lost}"
    )
    text = f"{facts['system']} {facts['role']} {facts['fault']}: {facts['verdict']}; {figures}"
    return f"{text}; MISS: {'; '.join(facts['misses'])}" if facts["misses"] else text


DETECTED_WITHIN_S = 12.0
GOING_ON_WITHIN_S = 6.0
"""Maximum seconds until training continues, from the detection, or from the fault's end if that is
earlier."""
WENT_ON, ENDED, WRONG, NOT_REACHED = "went on", "ended", "wrong", "not reached"
HARMLESS = ("slow",)
"""Faults that need not be detected, since a slow task is not lost."""
SOON_OVER_S = 10.0
"""`deadline.silent`: a fault that ends earlier need not be detected."""


@dataclass(frozen=True)
class Judged:
    """A cell after its run. `misses` are sentences; `verdict` is one of the four above."""

    cell: Cell
    verdict: str
    misses: tuple[str, ...]
    result: Result | None = None
    drill: Drill | None = None
    left: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The cell's result as it is saved as JSON."""
        result, outcome = self.result, self.drill.outcome if self.drill else None
        return {
            "system": self.cell.system.name,
            "role": self.cell.role,
            "fault": str(self.cell.fault),
            "task": result.fault.task if result else None,
            "verdict": self.verdict,
            "misses": list(self.misses),
            "detected_after_s": result.detected_after if result else None,
            "detected_by": result.detected_by or None if result else None,
            "going_on_after_s": result.going_on_after if result else None,
            "steps_lost": result.steps_lost if result else None,
            "steps_at_risk": result.steps_at_risk if result else None,
            "restarts": result.restarts if result else None,
            "reason": outcome.reason if outcome else None,
            "exit_code": outcome.exit_code if outcome else None,
            "blame": outcome.blame if outcome else None,
            "message": outcome.message if outcome else None,
            "left_behind": list(self.left),
            "run": Path(outcome.run).name if outcome else None,
        }


def judged(cells: Sequence[Cell], done: Drill, left_behind_names: Sequence[str]) -> list[Judged]:
    """The judged cells whose faults were injected, and not just before the end of the job. If a run
    failed, the last of them counts as the cause.

    Args:
        left_behind_names: containers and networks that still existed after the run.
    """
    pairs = zip(cells, done.results, strict=True)
    hit = [(cell, r) for cell, r in pairs if not (r.why_not or r.at_end or _too_short(cell, r))]
    last = max((result.injected_at or 0.0 for _, result in hit), default=0.0)
    return [
        _judged(cell, result, done, left_behind_names, last=(result.injected_at or 0.0) == last)
        for cell, result in hit
    ]


def _too_short(cell: Cell, result: Result) -> bool:
    """Whether the job ended before the fault had to be detected, and it was not."""
    soon = result.before_end is not None and result.before_end < DETECTED_WITHIN_S
    return soon and result.detected_after is None and _must_be_detected(cell.fault)


def not_reached(cell: Cell, done: Drill) -> Judged:
    """A cell whose run ended before any fault, or just after a fault."""
    why = f"{done.results[0].why_not or 'the job ended just after'}; {_end(done)}"
    return Judged(cell, NOT_REACHED, (why,), None, done)


def _judged(cell: Cell, result: Result, done: Drill, left: Sequence[str], *, last: bool) -> Judged:
    outcome = done.outcome
    ended = last and not outcome.success
    remains = tuple(left)
    misses = [f"left behind: {', '.join(remains)}"] if remains else []
    if cell.ends_job:
        right = ended and outcome.reason == Reason.STOPPED
        misses += [] if right else [f"the job should end as stopped; {_end(done)}"]
        return Judged(cell, ENDED if right else WRONG, tuple(misses), result, done, remains)
    if ended:
        misses.append(_end(done))
    elif result.going_on_after is None:
        misses.append("the training never continued")
    verdict = WRONG if ended or result.going_on_after is None else WENT_ON
    return Judged(cell, verdict, (*misses, *_of_figures(cell, result)), result, done, remains)


def _of_figures(cell: Cell, result: Result) -> Iterator[str]:
    """Yields a sentence for each measurement that misses its aim."""
    lasts, detected, went_on = cell.fault.lasts, result.detected_after, result.going_on_after
    if detected is None and _must_be_detected(cell.fault):
        yield "never detected"
    if detected is not None and detected > DETECTED_WITHIN_S:
        yield f"detected after {detected:.1f} s"
    since = detected if detected is not None else lasts or 0.0
    if went_on is not None and went_on - since > GOING_ON_WITHIN_S:
        since_what = "its detection" if detected is not None else "its end"
        yield f"going on {went_on - since:.1f} s after {since_what}"
    lost, most = result.steps_lost, result.steps_at_risk
    if lost is not None and most is not None and lost > most:
        yield f"{lost_words(lost)}, {most} since the last checkpoint"


def _must_be_detected(fault: Break) -> bool:
    return fault.kind not in HARMLESS and (fault.lasts is None or fault.lasts > SOON_OVER_S)


def _end(done: Drill) -> str:
    """A clause about how the run ended."""
    outcome = done.outcome
    if outcome.success:
        return "the run succeeded"
    blame = f", blame {outcome.blame}" if outcome.blame else ""
    return f"the run ended ({outcome.reason}{blame}): {outcome.message.partition(chr(10))[0]}"


NewView = Callable[[], View]


def cells_of(systems: Sequence[System], workspace: Workspace) -> list[Cell]:
    """All cells of these systems.

    Raises:
        UsageError: a manifest was not found.
        ManifestError: it cannot be read.
    """
    return [
        Cell(system, role, fault)
        for system in systems
        for role in roles_of(load(find(system.manifest, workspace.manifests)).manifest)
        for fault in BREAKS
    ]


def run_all(
    host: Host, cells: Sequence[Cell], workspace: Workspace, new_view: NewView
) -> Iterator[Judged]:
    """Yields each judged cell as soon as its run has ended.

    Raises:
        Interrupted: Ctrl-C was pressed; the cluster was removed.
        KitError: a run failed before a verdict.
    """
    for group in groups(cells):
        yield from _until_all_are_done(host, group, workspace, new_view)


def _until_all_are_done(
    host: Host, cells: Sequence[Cell], workspace: Workspace, new_view: NewView
) -> Iterator[Judged]:
    """Run the cells; if a run ends before all of its faults, run the others in a further run, and
    if it succeeds before its first one, in a longer run."""
    pending, times = list(cells), 1
    while pending:
        done = _run(host, pending, workspace, new_view, times)
        judged_now = judged(pending, done, left_behind(host.connect(), done.outcome.cluster))
        can_be_longer = cells[0].system.length and times < MOST_TIMES
        if not judged_now and done.outcome.success and can_be_longer:
            times *= 2
            continue
        judged_now = judged_now or [not_reached(cell, done) for cell in pending]
        yield from judged_now
        pending = [cell for cell in pending if cell not in [result.cell for result in judged_now]]


def _run(
    host: Host, cells: Sequence[Cell], workspace: Workspace, new_view: NewView, times: int = 1
) -> Drill:
    def written(cluster: Cluster) -> Written:
        return scenario(cells, cluster)

    system, view = cells[0].system, new_view()
    host.interrupts.interrupt_once()  # the end of the previous run ignores interrupts
    try:
        request = Request(system.manifest, system.overrides(cells[0].role, len(cells), times))
        return drill(host, request, written, 0, workspace, view)
    finally:
        view.close()


def left_behind(engine: Engine, cluster: str) -> list[str]:
    """The names of the cluster's existing containers and networks; raises EngineError."""
    try:
        known = engine.networks() if isinstance(engine, Inventory) else ()
        networks = [name for name, of, _ in known if of == cluster]
        return [*(container.name for container in engine.containers(cluster)), *networks]
    finally:
        engine.close()


ALL = "matrix.json"
"""The file with the results of all cells."""


class Store:
    """The results below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, cell: Cell) -> bool:
        return self._file(cell).exists()

    def save(self, host: Host, judged: Judged, engine: Mapping[str, Any]) -> None:
        """Write a cell's result, and all results together; raises OSError.

        Args:
            engine: what `docker info` shows.
        """
        facts = judged.facts() | {
            "time": datetime.fromtimestamp(host.clock.time(), UTC).isoformat(timespec="seconds"),
            "commit": commit(host),
            "machine": machine(engine),
            "load": round(os.getloadavg()[0], 1),
        }
        write_atomically(self._file(judged.cell), _text(facts))

    def gather(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """The saved results of these cells, in order."""
        return [json.loads(self._file(cell).read_text()) for cell in cells if self.has(cell)]

    def write_all(self, cells: Sequence[Cell]) -> None:
        """Write the results of these cells into one file; raises OSError."""
        write_atomically(self._folder / ALL, _text(self.gather(cells)))

    def _file(self, cell: Cell) -> Path:
        return self._folder / f"{cell.key}.json"


def _text(facts: Any) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def commit(host: Host) -> str:
    """The commit of the kit's clone, with a + if files differ from it; "" outside of a clone."""
    revision = host.processes.run(("git", "rev-parse", "--short", "HEAD"), cwd=str(FILES))
    if not revision.ok:
        return ""
    tracked = ("git", "status", "--porcelain", "--untracked-files=no")
    return revision.output.strip() + (
        "+" if host.processes.run(tracked, cwd=str(FILES)).output else ""
    )


def machine(engine: Mapping[str, Any]) -> str:
    """A short description of the machine on which the figures were measured."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    memory = engine.get("MemTotal", 0) / 2**30
    return (
        f"{os.cpu_count()} cores ({next(names, platform.machine())}), {memory:.0f} GiB,"
        f" Docker {engine.get('ServerVersion', '?')}"
    )
