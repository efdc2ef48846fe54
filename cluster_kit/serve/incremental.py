"""Reads a running job from its directory: first everything, then only new parts."""

from __future__ import annotations

import contextlib
import json
import math
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cluster_kit.contract.events import Step
from cluster_kit.errors import EngineError, HostError
from cluster_kit.observe import absences, user_requests
from cluster_kit.observe.progress import USAGE, Entry, ProgressReader, fields_of, without_values
from cluster_kit.observe.reconcile import is_told
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from cluster_kit.observe.usage import sample_of
from cluster_kit.observe.user_requests import Asked
from cluster_kit.platforms.engine import Event, Subscription
from cluster_kit.report.facts import (
    FIGURES,
    Curves,
    Traffic,
    facts_with,
    means,
    points_facts,
    traffic_facts,
)
from cluster_kit.report.page import Evidence, checkpoints_of
from cluster_kit.resolved import Cluster
from cluster_kit.run.known_secrets import Known, known_by
from cluster_kit.run.outcome import metrics, task_outcome
from cluster_kit.run.run_directory import Record, read_events
from cluster_kit.run.run_report import text_of
from cluster_kit.serve.site import Site
from cluster_kit.util.masking import masked_facts, masker
from cluster_kit.version import __version__
from cluster_kit.workspace import RunDirectory

TICK_S = 0.002
"""Seconds; longer than the rounding of times."""
Facts = dict[str, Any]
HEADINGS = [{"id": one.id, "title": one.title, "unit": one.unit} for one in FIGURES]


@dataclass(frozen=True)
class About:
    """Facts from those of a run's files that do not grow."""

    name: str
    manifest: str = ""
    kit: str = ""


class Growing:
    """Collects events in pieces of any size; `whole` and `news` return them in report.json's
    form."""

    def __init__(self, cluster: Cluster, about: About) -> None:
        self._cluster, self._about = cluster, about
        self.seen = RunState.of(cluster)
        self._curves = Curves([task.name for task in cluster.tasks])
        self._traffic = Traffic()
        self._steps: set[str] = set()
        """Tasks whose last entry was a step: they can write many steps a second, and the first of
        several in a row is enough for lanes and marks."""
        self._repeats: dict[str, Entry] = {}
        self._before: dict[str, float] = {}
        """When each task reported the step before its last one."""
        self._began, self._until = float("inf"), 0.0
        self.checkpoints: Sequence[tuple[float, str]] = ()
        self._told: dict[tuple[str, str], int] = {}
        self._shown: dict[str, TaskView] = {}
        self._changed, self._sent_more, self._told_began = True, False, 0.0

    def add(
        self, events: Sequence[Event], entries: Sequence[Entry], usage: Sequence[Entry]
    ) -> None:
        """Add the events and entries since the last call, each oldest first."""
        came: list[Event | Entry] = [*events, *entries]
        for one in sorted(came, key=lambda one: one.time):
            if isinstance(one, Event):
                self._happened(one)
            else:
                self._reported(one)
        for task in list(self._repeats):
            self._catch_up(task)
        hot_before = set(self.seen.loads.lasting)
        for line in usage:
            self.seen = self.seen.with_usage(line)
            if sample := sample_of(line):
                self._curves.used(sample)
                self._sent_more |= self._traffic.add(sample)
                self._until = max(self._until, sample.time)
        self._changed |= set(self.seen.loads.lasting) != hot_before
        self._note([*(e.time for e in events), *(e.time for e in entries)])

    def _happened(self, event: Event) -> None:
        self._catch_up(event.task)
        late = any(one.time > event.time for one in reversed(self.seen.events))
        self.seen = self.seen.with_missed([event]) if late else self.seen.with_event(event)
        self._steps.discard(event.task)
        self._changed = True

    def _reported(self, entry: Entry) -> None:
        """A step after another step changes only figures, so the last one of each piece is
        enough."""
        self._curves.told(entry)
        if isinstance(entry.event, Step) and entry.task in self._steps:
            before = self._repeats.get(entry.task)
            if before is not None:
                self._before[entry.task] = before.time
            event = replace(before.event, **fields_of(entry.event)) if before else entry.event
            self._repeats[entry.task] = replace(entry, event=event)
            return
        self._catch_up(entry.task)
        self.seen = self.seen.with_entry(entry)
        if isinstance(entry.event, Step):
            self._steps.add(entry.task)
        else:
            self._steps.discard(entry.task)
        self._changed = True

    def _catch_up(self, task: str) -> None:
        if entry := self._repeats.pop(task, None):
            seen = self.seen.with_entry(entry)
            view, before = seen.tasks[task], self._before.pop(task, None)
            if before is not None:
                view = replace(view, every_s=entry.time - before)
            tasks = {**seen.tasks, task: view}
            self.seen = replace(seen, tasks=tasks, entries=self.seen.entries)

    def note_checkpoints(self, checkpoints: Sequence[tuple[float, str]]) -> None:
        """Set the checkpoints that exist now."""
        self._changed |= list(checkpoints) != list(self.checkpoints)
        self.checkpoints = checkpoints

    def note_requests(self, requests: Sequence[Asked]) -> None:
        """Set the users' requests of this run."""
        self._changed |= tuple(requests) != self.seen.requests
        self.seen = replace(self.seen, requests=tuple(requests))

    def whole(self) -> Facts:
        """All facts, and `now`: the current state of each task."""
        facts = self._facts()
        facts["charts"] = [
            {"id": chart.id, "title": chart.title, "unit": chart.unit, "curves": [
                {"name": curve.name, **points_facts(curve.points, self._began)}
                for curve in chart.curves
            ]}
            for chart in self._curves.charts()
        ]  # fmt: skip
        now = self._now(self.seen.tasks.values())
        return {"run": facts, "now": now, "figures": HEADINGS, "stopped": self._is_stopped}

    def news(self) -> Facts | None:
        """The changes since the last call; None if there are none.

        `run`: all facts except the curves, and `stopped`, if one of these has changed. `points`:
        the points to add to curves; they replace all points from number `at` on.
        """
        new: Facts = {}
        if self._changed or self._began != self._told_began:
            new["run"] = self._facts()
            del new["run"]["charts"]
            new["stopped"] = self._is_stopped
            self._changed, self._told_began = False, self._began
        if self._sent_more:
            new["traffic"] = traffic_facts(self._traffic.edges())
            self._sent_more = False
        if points := list(self._new_points()):
            new["points"] = points
        tasks = [one for name, one in self.seen.tasks.items() if self._shown.get(name) is not one]
        if tasks:
            new["now"] = self._now(tasks)
            self._shown = dict(self.seen.tasks)
        return {**new, "seconds": self._seconds} if new else None

    def _new_points(self) -> Iterable[Facts]:
        for key, points in self._curves.points.items():
            sent = self._told.get(key, 0)
            if sent == len(points):
                continue
            if len(points) > 2 * self._curves.most:
                points[:] = means(points, self._curves.most)
                sent = 0
            self._told[key] = len(points)
            yield {"id": key[0], "name": key[1], "at": sent,
                   **points_facts(points[sent:], self._began)}  # fmt: skip

    def _facts(self) -> Facts:
        seen = self.seen
        outcome = {
            "tasks": [asdict(task_outcome(name, seen, None)) for name in seen.tasks],
            "metrics": metrics(seen),
            "notes": [one.message for one in seen.loads.lasting.values()],
        }
        run = Evidence(
            self._about.name, self._cluster, outcome,
            sorted(seen.events, key=lambda event: event.time), seen.entries, (), self.checkpoints,
            manifest=self._about.manifest, kit=self._about.kit, requests=seen.requests,
        )  # fmt: skip
        facts = facts_with(run, (), self._traffic.edges(), self._until + TICK_S)
        return _open(facts, self._seconds)

    @property
    def _is_stopped(self) -> bool:
        """Whether all tasks were stopped on request, until `start`."""
        request = absences.pending_request(self.seen)
        return request is not None and request.what == user_requests.STOP

    def _now(self, tasks: Iterable[TaskView]) -> dict[str, Facts]:
        own_steps = sum(one.all_own_steps for one in self.seen.tasks.values())
        return {one.name: {**now_of(one), "share": share_of(one, own_steps)} for one in tasks}

    def _note(self, times: Sequence[float]) -> None:
        if times:
            if min(times) < self._began:  # later reports count from there
                self._began = min(times)
                self._told.clear()
            self._until = max(self._until, *times)

    @property
    def _seconds(self) -> float:
        return round(max(0.0, self._until - self._began), 3)


def _open(facts: Facts, seconds: float) -> Facts:
    """The facts as of `seconds`. They were computed until a moment later: a state that lasts until
    then continues, and is marked `open`."""
    for task in facts["tasks"]:
        for span in (*task["spans"], *task["over"]):
            if span["end"] > seconds:
                span.update(end=seconds, open=True)
    return {**facts, "seconds": seconds}


def share_of(task: TaskView, own_steps: int) -> float | None:
    """The task's share of all tasks' own steps, 0 to 1; None if it has made none."""
    return task.all_own_steps / own_steps if task.all_own_steps and own_steps else None


def now_of(task: TaskView) -> Facts:
    """A task's current state, as a page shows it."""
    use = task.shown_usage
    return {
        "state": str(task.state),
        "straggler": task.lags,
        "exit_code": task.exit_code,
        "restarts": task.restarts,
        "step": task.shown_step,
        "steps_per_s": task.shown_speed,
        "loss": str(task.loss) if task.diverged else task.loss,
        "cpus": use and use.cpus,
        "memory": use and use.memory,
        "rx_bps": use and use.rx_bps,
        "tx_bps": use and use.tx_bps,
        "gpu_busy": use and use.gpu_busy,
    }


AGAIN_S = 2.0
"""Seconds to wait after a stream has ended: the engine was lost, or is about to be."""


class Happened:
    """Returns each event once. An unwatched run has only the engine's events."""

    def __init__(self, site: Site, run: RunDirectory, record: Record) -> None:
        self._site, self._run, self._record = site, run, record
        self._arrived: queue.Queue[Event] = queue.Queue()
        self._told: list[Event] = []
        self._size = -1
        self._hears = False
        self._again_at = 0.0
        self._subscription = Subscription()

    def listen(self) -> None:
        """Subscribe to new events, and to those that the engine still has; further calls do
        nothing.
        """
        if not self._hears and time.monotonic() >= self._again_at:
            self._hears = True
            threading.Thread(target=self._hear, daemon=True).start()

    def close(self) -> None:
        """Stop listening; the thread ends."""
        self._again_at = math.inf
        self._subscription.end()

    def poll(self) -> list[Event]:
        """The new events, oldest first."""
        events = []
        while not self._arrived.empty():
            events.append(self._arrived.get_nowait())
        if (size := self._saved()) != self._size:
            self._size = size
            events += read_events(self._run, self._record.since)
        new = []
        for event in sorted(events, key=lambda event: event.time):
            if event.time >= self._record.since and not is_told(event, self._told):
                self._told.append(event)
                new.append(event)
        return new

    def _saved(self) -> int:
        try:
            return (self._run.path / "events.jsonl").stat().st_size
        except OSError:
            return 0

    def _hear(self) -> None:
        try:
            engine, name = self._site.engine(), self._record.cluster.name
            until = self._subscription
            for event in engine.events(name, self._record.since, self._record.id, until):
                self._arrived.put(event)
        except (EngineError, HostError):
            pass  # the page says so: see `Site.trouble`
        finally:
            self._again_at = max(self._again_at, time.monotonic() + AGAIN_S)
            self._hears = False


CHECKPOINTS_S = 5.0
ASK_S = 1.0
"""Seconds between checks for containers that do not exist yet."""
SHARE = 0.01
"""Maximum share of one core for reading the files of a run."""


class Reading:
    """Reads a run of a running cluster, piece by piece."""

    def __init__(self, site: Site, run: RunDirectory, record: Record) -> None:
        self._site, self._run, self._record = site, run, record
        about = run.output, record.since, record.sizes
        tasks = [task.name for task in record.cluster.tasks]
        self._progress = ProgressReader(*about, tasks=tasks)
        self._usage = ProgressReader(*about, tasks=tasks, suffix=USAGE)
        self._happened = Happened(site, run, record)
        self._growing = Growing(
            record.cluster, About(run.path.name, text_of(run.manifest), __version__)
        )
        self._known, self._ask_at = Known(frozenset(), are_all=False), 0.0
        self._checkpoints_at = 0.0

    def read(self) -> None:
        """Read the new parts of the run's files."""
        self._happened.listen()
        self._ask()
        entries = self._progress.poll()
        if not self._known.are_all:
            entries = [without_values(entry, self._known.mask) for entry in entries]
        asked = user_requests.read(self._run.path)
        self._growing.note_requests([one for one in asked if one.time >= self._record.since])
        self._growing.add(self._happened.poll(), entries, self._usage.poll())
        began = time.monotonic()
        if began >= self._checkpoints_at:
            with contextlib.suppress(OSError):  # the directory is being removed
                checkpoints = checkpoints_of(self._run.output, self._record.since)
                self._growing.note_checkpoints(checkpoints)
            now = time.monotonic()
            self._checkpoints_at = now + max(CHECKPOINTS_S, (now - began) / SHARE)

    def close(self) -> None:
        """Stop listening to the engine."""
        self._happened.close()

    def whole(self) -> Facts:
        return self._growing.whole()

    def news(self) -> Facts | None:
        return self._growing.news()

    def as_text(self, facts: Facts) -> str:
        """JSON without any secret's value."""
        mask, text = masker(self._known.values), json.dumps(facts, separators=(",", ":"))
        if mask(text) == text:
            return text
        return json.dumps(masked_facts(facts, mask), separators=(",", ":"))

    def _ask(self) -> None:
        """Ask for the secrets of containers, which start one after the other, until all have
        started.

        Until then, all texts from tasks are masked if the cluster has secrets.
        """
        if time.monotonic() < self._ask_at:
            return
        cluster, id_ = self._record.cluster, self._record.id
        try:
            engine = self._site.engine()
            containers = [
                *engine.containers(cluster.name, id_),
                *engine.sidecars(cluster.name, id_),
            ]
        except (EngineError, HostError):
            containers = []
        secrets = known_by(cluster, containers)
        self._known = Known(
            self._known.values | secrets.values, self._known.are_all or secrets.are_all
        )
        lacks = {task.name for task in cluster.tasks} - {one.name for one in containers}
        self._ask_at = time.monotonic() + ASK_S if lacks else math.inf
