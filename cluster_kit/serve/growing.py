"""A run that goes on, as facts of a report that grow: the whole, and what is new of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Event
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from cluster_kit.observe.usage import sample_of
from cluster_kit.report.curves import FIGURES, Curves, means
from cluster_kit.report.evidence import Evidence
from cluster_kit.report.facts import facts_with, points_facts, traffic_facts
from cluster_kit.report.traffic import Traffic
from cluster_kit.run.judging.outcome import metrics
from cluster_kit.run.judging.task_outcome import task_outcome

REPEATED = "step"
"""Many times a second at most; for lanes and marks the first of several in a row is enough."""
TICK_S = 0.002
"""Longer than times are rounded."""
Facts = dict[str, Any]
HEADINGS = [{"id": one.id, "title": one.title, "unit": one.unit} for one in FIGURES]


@dataclass(frozen=True)
class About:
    """What a run's files say of it that does not grow."""

    name: str
    manifest: str = ""
    kit: str = ""


class Growing:
    """Takes what is read, in any pieces; `whole` and `news` tell of it as report.json does."""

    def __init__(self, cluster: Cluster, about: About) -> None:
        self._cluster, self._about = cluster, about
        self.seen = RunState.of(cluster)
        self._curves = Curves([task.name for task in cluster.tasks])
        self._traffic = Traffic()
        self._last: dict[str, str] = {}
        self._repeats: dict[str, Entry] = {}
        self._began, self._until = float("inf"), 0.0
        self.checkpoints: Sequence[tuple[float, str]] = ()
        self._told: dict[tuple[str, str], int] = {}
        self._shown: dict[str, TaskView] = {}
        self._changed, self._sent_more, self._told_began = True, False, 0.0

    def add(
        self, events: Sequence[Event], entries: Sequence[Entry], usage: Sequence[Entry]
    ) -> None:
        """Add what was read since the last call, each oldest first."""
        came: list[Event | Entry] = [*events, *entries]
        for one in sorted(came, key=lambda one: one.time):
            if isinstance(one, Event):
                self._happened(one)
            else:
                self._reported(one)
        for task in list(self._repeats):
            self._catch_up(task)
        for line in usage:
            self.seen = self.seen.with_usage(line)
            if sample := sample_of(line):
                self._curves.used(sample)
                self._sent_more |= self._traffic.add(sample)
                self._until = max(self._until, sample.time)
        self._note([*(e.time for e in events), *(e.time for e in entries)])

    def _happened(self, event: Event) -> None:
        self._catch_up(event.task)
        late = any(one.time > event.time for one in reversed(self.seen.events))
        self.seen = self.seen.with_missed([event]) if late else self.seen.with_event(event)
        self._last.pop(event.task, None)
        self._changed = True

    def _reported(self, entry: Entry) -> None:
        """A step after a step changes nothing but figures: the last of a piece will do."""
        self._curves.told(entry)
        if self._last.get(entry.task) == entry.event == REPEATED:
            before = self._repeats.get(entry.task)
            fields = {**before.fields, **entry.fields} if before else entry.fields
            self._repeats[entry.task] = replace(entry, fields=fields)
            return
        self._catch_up(entry.task)
        self.seen = self.seen.with_entry(entry)
        self._last[entry.task] = entry.event
        self._changed = True

    def _catch_up(self, task: str) -> None:
        if entry := self._repeats.pop(task, None):
            self.seen = replace(self.seen.with_entry(entry), entries=self.seen.entries)

    def note_checkpoints(self, found: Sequence[tuple[float, str]]) -> None:
        """These are the checkpoints that are there now."""
        self._changed |= list(found) != list(self.checkpoints)
        self.checkpoints = found

    def whole(self) -> Facts:
        """All facts, and `now`: what each task does."""
        facts = self._facts()
        facts["charts"] = [
            {"id": chart.id, "title": chart.title, "unit": chart.unit, "curves": [
                {"name": curve.name, **points_facts(curve.points, self._began)}
                for curve in chart.curves
            ]}
            for chart in self._curves.charts()
        ]  # fmt: skip
        return {"run": facts, "now": self._now(self.seen.tasks.values()), "figures": HEADINGS}

    def news(self) -> Facts | None:
        """What is new since the last call of this; None if nothing is.

        `run` are all facts but the curves, where one of them has changed, `points` what is to be
        added to curves: from the point number `at` on, those before stay.
        """
        new: Facts = {}
        if self._changed or self._began != self._told_began:
            new["run"] = self._facts()
            del new["run"]["charts"]
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
            told = self._told.get(key, 0)
            if told == len(points):
                continue
            if len(points) > 2 * self._curves.most:
                points[:] = means(points, self._curves.most)
                told = 0
            self._told[key] = len(points)
            yield {"id": key[0], "name": key[1], "at": told,
                   **points_facts(points[told:], self._began)}  # fmt: skip

    def _facts(self) -> Facts:
        seen = self.seen
        outcome = {
            "tasks": [asdict(task_outcome(name, seen, None)) for name in seen.tasks],
            "metrics": metrics(seen),
        }
        run = Evidence(
            self._about.name, self._cluster, outcome,
            sorted(seen.events, key=lambda event: event.time), seen.entries, (), self.checkpoints,
            manifest=self._about.manifest, kit=self._about.kit, requests=seen.requests,
        )  # fmt: skip
        facts = facts_with(run, (), self._traffic.edges(), self._until + TICK_S)
        return _open(facts, self._seconds)

    def _now(self, tasks: Iterable[TaskView]) -> dict[str, Facts]:
        return {one.name: now_of(one) for one in tasks}

    def _note(self, times: Sequence[float]) -> None:
        if times:
            if min(times) < self._began:  # all that was told counts from there
                self._began = min(times)
                self._told.clear()
            self._until = max(self._until, *times)

    @property
    def _seconds(self) -> float:
        return round(max(0.0, self._until - self._began), 3)


def _open(facts: Facts, seconds: float) -> Facts:
    """The facts as of `seconds`, for which they were made a moment too long: a state that lasts
    that long goes on, and is `open`."""
    for task in facts["tasks"]:
        for span in (*task["spans"], *task["over"]):
            if span["end"] > seconds:
                span.update(end=seconds, open=True)
    return {**facts, "seconds": seconds}


def now_of(task: TaskView) -> Facts:
    """What a task does now, as a page shows it."""
    use = task.usage
    return {
        "state": str(task.state),
        "straggler": task.lags,
        "exit_code": task.exit_code,
        "restarts": task.restarts,
        "step": task.step,
        "steps_per_s": task.steps_per_s,
        "loss": task.loss,
        "cpus": use and use.cpus,
        "memory": use and use.memory,
        "rx_bps": use and use.rx_bps,
        "tx_bps": use and use.tx_bps,
        "gpu_busy": use and use.gpu_busy,
    }
