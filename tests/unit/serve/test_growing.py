"""However the data arrive in pieces, the assembled page equals the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cluster_kit.observe.progress import Entry
from cluster_kit.platforms.engine import Event
from cluster_kit.report.facts import MOST_POINTS, facts_of
from cluster_kit.report.page import Evidence
from cluster_kit.serve.incremental import About, Growing
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.report.runs import CLUSTER, changed, started, told, trained

Piece = tuple[Sequence[Event], Sequence[Entry], Sequence[Entry]]


class Page:
    """Does what templates/report/live/grow.js does with the messages."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.run, self.now, self.figures = whole["run"], whole["now"], whole["figures"]

    def add(self, news: dict[str, Any]) -> None:
        if "run" in news:
            self.run |= news["run"]
        else:
            for task in self.run["tasks"]:
                for span in [*task["spans"], *task["over"]]:
                    if span.get("open"):
                        span["end"] = news["seconds"]
        self.run["seconds"] = news["seconds"]
        self.run["traffic"] = news.get("traffic", self.run["traffic"])
        self.now |= news.get("now", {})
        for points in news.get("points", ()):
            curve = self._curve(points["id"], points["name"])
            for axis in "xy":
                curve[axis][points["at"] :] = points[axis]

    def _curve(self, id_: str, name: str) -> dict[str, Any]:
        ids = [one["id"] for one in self.figures]
        charts = {chart["id"]: chart for chart in self.run["charts"]}
        if id_ not in charts:
            charts[id_] = {**self.figures[ids.index(id_)], "curves": []}
            self.run["charts"] = [charts[one] for one in ids if one in charts]
        curves = charts[id_]["curves"]
        if not any(one["name"] == name for one in curves):
            places = [task["name"] for task in self.run["tasks"]]
            curves.append({"name": name, "x": [], "y": []})
            curves.sort(key=lambda one: places.index(one["name"].partition(",")[0]))
        return next(one for one in curves if one["name"] == name)


def test_a_page_that_is_opened_later_shows_that_a_job_stands() -> None:
    steps = [told(at, "chief-0", "step", step=at, steps_per_s=10.0) for at in range(2, 60)]
    used = as_entry("chief-0", 70, "usage", {
        "cpu_s": 1, "memory": 1, "rx_bytes": 0, "tx_bytes": 0,
    })  # fmt: skip
    growing = Growing(CLUSTER, About("run"))
    growing.add(started(), steps, [used])
    assert growing.whole()["now"]["chief-0"]["steps_per_s"] == 0


def usage_of(run: Evidence) -> list[Entry]:
    return [
        as_entry(one.task, one.time, "usage", {
            "cpu_s": one.cpu_s, "memory": one.memory, "rx_bytes": one.rx_bytes,
            "tx_bytes": one.tx_bytes, **({"sent_to": dict(one.sent_to)} if one.sent_to else {}),
        })
        for one in run.samples
    ]  # fmt: skip


def pieces(run: Evidence, width: float) -> list[Piece]:
    """Divide the files of a run into pieces of this many seconds."""
    usage = usage_of(run)
    last = max(one.time for one in [*run.events, *run.entries, *usage])
    found: list[Piece] = []
    at = 0.0
    while at <= last:
        of: list[Any] = [
            [one for one in all_ if at <= one.time < at + width]
            for all_ in (run.events, run.entries, usage)
        ]
        found.append((of[0], of[1], of[2]))
        at += width
    return found


def grown(run: Evidence, width: float, joins: int = 0) -> tuple[Page, Growing]:
    """Returns a page that was opened at the piece number `joins`."""
    growing = Growing(run.cluster, About(run.name, run.manifest, run.kit))
    growing.note_checkpoints(run.checkpoints)
    page: Page | None = None
    for number, piece in enumerate(pieces(run, width)):
        growing.add(*piece)
        news = growing.news()
        if page is None and number >= joins:
            page = Page(growing.whole())
        elif page is not None and news:
            page.add(news)
    assert page is not None
    return page, growing


OF_THE_OUTCOME = ("verdict", "timings_s", "metrics")
OF_A_TASK = ("usage", "exit_code", "restarts", "oom", "rx_bytes", "tx_bytes", "log", "gpu_seen")


def closed(spans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the spans as if nothing came after them."""
    found = [{k: v for k, v in span.items() if k != "open"} for span in spans]
    return [span for span in found if span["begin"] < span["end"]]


def without_outcome(facts: dict[str, Any]) -> dict[str, Any]:
    """Returns the facts without those that only outcome.json has."""
    tasks = [
        {key: value for key, value in task.items() if key not in OF_A_TASK}
        | {kind: closed(task[kind]) for kind in ("spans", "over")}
        for task in facts["tasks"]
    ]
    return {k: v for k, v in facts.items() if k not in OF_THE_OUTCOME} | {"tasks": tasks}


def restarted() -> Evidence:
    """Returns a run in which two workers train; one crashes, restarts, is frozen, and trains again,
    for many steps."""
    steps = [
        told(3.0 + at / 4, name, "step", step=at, steps_per_s=4.0, loss=1 / (at + 1))
        for at in range(80)
        for name in ("chief-0", "worker-0")
        if name == "chief-0" or not (8 < 3.0 + at / 4 < 11 or 14 < 3.0 + at / 4 < 16)
    ]
    entries = [
        told(1.0, "worker-0", "ready"),
        told(9.5, "worker-0", "start", attempt=1),
        told(10.0, "worker-0", "ready"),
        told(8.5, "chief-0", "waiting", of="worker-0", seconds=0.4),
        told(11.5, "chief-0", "waited", of="worker-0", seconds=3.0),
        told(15.0, "chief-0", "silent", of="worker-0", last_heard=14.0),
        told(16.0, "chief-0", "heard", of="worker-0", seconds=2.0),
        *steps,
    ]
    events = [
        *started(),
        Event(8.2, "die", "worker-0", 137),
        Event(9.2, "start", "worker-0", None),
        Event(14.0, "pause", "worker-0", None),
        Event(16.0, "unpause", "worker-0", None),
    ]
    return changed(entries=sorted(entries, key=lambda one: one.time), events=events, samples=[],
                   outcome={"metrics": {}}, checkpoints=[])  # fmt: skip


@pytest.mark.parametrize("run", [trained(), restarted()], ids=["trained", "restarted"])
@pytest.mark.parametrize("width", [0.25, 1.0, 100.0])
@pytest.mark.parametrize("joins", [0, 3])
def test_the_assembled_page_equals_the_report(run: Evidence, width: float, joins: int) -> None:
    page, growing = grown(run, width, joins if width < 100 else 0)
    whole = facts_of(run)
    assert without_outcome(page.run) == without_outcome(whole)
    assert without_outcome(growing.whole()["run"]) == without_outcome(whole)
    assert page.now == growing.whole()["now"]
    assert page.run["metrics"] == growing.whole()["run"]["metrics"]


def test_what_tasks_do_now_is_sent_with_each_change() -> None:
    page, _ = grown(restarted(), 1.0)
    worker = page.now["worker-0"]
    assert (worker["state"], worker["restarts"], worker["step"]) == ("training", 1, 79)
    growing = Growing(CLUSTER, About("run"))
    growing.add(started(), [], [])
    assert set((growing.news() or {})["now"]) == {task.name for task in CLUSTER.tasks}
    growing.add([Event(5.0, "pause", "worker-1", None)], [], [])
    news = growing.news() or {}
    assert {name: one["state"] for name, one in news["now"].items()} == {"worker-1": "paused"}
    assert growing.news() is None, "nothing has come since"


def test_repeated_steps_are_sent_only_as_points() -> None:
    growing = Growing(CLUSTER, About("run"))
    growing.add(started(), [told(1, "chief-0", "step", loss=1.0)], [])
    assert "run" in (growing.news() or {})
    growing.add([], [told(2, "chief-0", "step", loss=0.5)], [])
    news = growing.news() or {}
    assert "run" not in news and news["seconds"] == 2.0
    assert news["points"] == [{"id": "loss", "name": "chief-0", "at": 1, "x": [2.0], "y": [0.5]}]
    assert len(growing.seen.entries) == 1, "nor are they kept"


def test_late_data_move_everything_sent_before() -> None:
    growing = Growing(CLUSTER, About("run"))
    growing.add([], [told(5, "chief-0", "step", loss=1.0)], [])
    page = Page(growing.whole())
    growing.news()
    growing.add(started(at=2.0), [], [])
    page.add(growing.news() or {})
    (chart,) = page.run["charts"]
    assert page.run["began"] == 2.0 and chart["curves"][0]["x"] == [3.0]


def test_a_late_end_ends_only_its_own_life() -> None:
    growing = Growing(CLUSTER, About("run"))
    growing.add([Event(20.0, "start", "ps-0", None)], [told(21, "ps-0", "ready")], [])
    growing.add([Event(1.0, "start", "ps-0", None), Event(9.0, "die", "ps-0", 1)], [], [])
    now = growing.whole()["now"]["ps-0"]
    assert (now["state"], now["restarts"], now["exit_code"]) == ("ready", 1, None)


def test_long_curves_stay_short_and_end_with_the_newest_point() -> None:
    few = cluster(worker=3)
    growing = Growing(few, About("run"))
    page = Page(growing.whole())
    for second in range(2 * MOST_POINTS + 40):
        entries = [told(second, task.name, "step", loss=1.0 * second) for task in few.tasks]
        growing.add([], entries, [])
        page.add(growing.news() or {})
    (chart,) = page.run["charts"]
    for curve in chart["curves"]:
        assert MOST_POINTS <= len(curve["x"]) < MOST_POINTS + 50
        assert curve["x"] == sorted(curve["x"]) and curve["x"][-1] == 2 * MOST_POINTS + 39
    assert page.run["charts"] == growing.whole()["run"]["charts"]


def test_a_ps_that_slows_the_job_down_is_named_while_it_does() -> None:
    made = cluster(worker=1, ps=2, role={"ps": {"bandwidth": "8mbit"}})
    growing = Growing(made, About("run"))
    growing.add([], [told(0, "chief-0", "start", attempt=1), told(1, "chief-0", "step")], [])

    def uses(since: int, rate: float) -> None:
        for second in range(since, since + 31):
            counts = {"ps-0": rate * second, "ps-1": 0.0, "worker-0": 0.0}
            growing.add([], [], [
                as_entry(task, second + 0.01, "usage", {"cpu_s": 0, "memory": 1, "rx_bytes": 0,
                                                        "tx_bytes": count})
                for task, count in counts.items()
            ])  # fmt: skip

    uses(0, 1e6)
    named = (growing.news() or {})["run"]["verdict"]["notes"]
    assert len(named) == 1 and named[0].startswith("ps-0 moves 100% of the bytes of all ps: ")
    uses(31, 0.0)
    assert (growing.news() or {})["run"]["verdict"]["notes"] == []
