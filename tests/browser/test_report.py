"""The report in a real browser: everything is drawn, without an error, a network or a mouse."""

from __future__ import annotations

import contextlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.platforms.engine import Event
from cluster_kit.report.facts import facts_of
from cluster_kit.report.lanes import Fault
from cluster_kit.report.page import page
from docs.pictures import reported
from tests.browser.chromium import Opened, opened
from tests.browser.looked_at import check
from tests.make import cluster
from tests.unit.metrics.runs import begun
from tests.unit.report.runs import TAKEN, changed, started, told, trained, used

EVIL = "</script><img src=x onerror=\"document.title='caught'\">"


def written(folder: Path, *runs: Any) -> Path:
    facts = [facts_of(run) for run in runs]
    report = folder / "report.html"
    report.write_text(page(facts))
    (folder / "report.json").write_text(json.dumps(facts[0]))
    return report


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_lane_and_curve_is_there(browser: Any, tmp_path: Path, scheme: str) -> None:
    check(browser, written(tmp_path, trained()), scheme)


def test_a_failed_run_shows_the_task_to_blame(browser: Any, tmp_path: Path) -> None:
    outcome = {
        "success": False, "reason": "failed", "blame": "worker-1", "message": EVIL,
        "last_words": "Traceback\n  line 4", "cure": "write it anew", "notes": ["ps-0 was slow"],
        "timings_s": {"total": 16.54},
    }  # fmt: skip
    entries = [*trained().entries, told(9, "chief-0", "phase", name=EVIL)]
    report = written(tmp_path, changed(outcome=outcome, manifest=EVIL, entries=entries))
    check(browser, report)
    with opened(browser, report) as one:
        assert one.page.title() != "caught"
        header = one.page.locator("header").inner_text()
        assert one.page.locator(".badge").inner_text() == "failed"
        for words in (
            EVIL,
            "line 4",
            "write it anew",
            "ps-0 was slow",
            ", 16.5 s, ",
        ):
            assert words in header
        assert one.page.locator(".node.blamed").count() == 1


@pytest.mark.parametrize(
    ("reason", "word", "colour"),
    [
        ("stopped", "stopped", "badge "),
        ("interrupted", "stopped", "badge "),
        ("job-deadline", "failed: job-deadline", "badge bad"),
    ],
)
def test_the_end_has_the_same_name_as_on_the_command_line(
    browser: Any, tmp_path: Path, reason: str, word: str, colour: str
) -> None:
    outcome = {**trained().outcome, "success": False, "reason": reason}
    with opened(browser, written(tmp_path, changed(outcome=outcome))) as one:
        badge = one.page.locator(".badge")
        assert (badge.inner_text(), badge.get_attribute("class")) == (word, colour)


def test_a_run_without_any_data_has_a_page(browser: Any, tmp_path: Path) -> None:
    check(
        browser,
        written(tmp_path, changed(events=[], entries=[], samples=[], outcome={}, checkpoints=[])),
    )


def test_fifty_tasks_have_their_lanes_and_curves(browser: Any, tmp_path: Path) -> None:
    many = cluster(worker=46, ps=4)
    samples = [used(at, task.name, at * 0.1, sent_to={"ps-0": at * 1e6})
               for at in range(1, 60) for task in many.tasks]  # fmt: skip
    run = changed(cluster=many, events=started(many), samples=samples)
    facts = check(browser, written(tmp_path, run))
    assert len(facts["tasks"]) == 51


def boxes(one: Opened) -> list[float]:
    return [
        box["width"]
        for rect in one.page.locator('.lane[data-task="chief-0"] rect.state').all()
        if (box := rect.bounding_box())
    ]


def test_all_pictures_are_zoomed_together_with_mouse_or_keys(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, trained())) as one:
        whole = boxes(one)
        one.page.get_by_label("Zoom in").click()
        nearer = boxes(one)
        assert max(nearer) > max(whole)
        ticks = one.page.locator('.chart[data-chart="cpus"] .u-legend').count()
        assert ticks == 1
        one.page.get_by_label("Show all of the time").click()
        assert boxes(one) == pytest.approx(whole)
        one.page.locator('.lane[data-task="chief-0"]').focus()
        one.page.keyboard.press("+")
        assert boxes(one) == pytest.approx(nearer)
        one.page.keyboard.press("0")
        assert boxes(one) == pytest.approx(whole)
        plot = one.page.locator('.chart[data-chart="cpus"] .u-over').bounding_box()
        y = plot["y"] + plot["height"] / 2
        one.page.mouse.move(plot["x"] + plot["width"] * 0.4, y)
        one.page.mouse.down()
        one.page.mouse.move(plot["x"] + plot["width"] * 0.6, y, steps=4)
        one.page.mouse.up()
        assert max(boxes(one)) > max(whole)
        assert one.complaints == []


def test_the_item_under_the_pointer_is_explained(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, trained())) as one:
        one.page.locator('.lane[data-task="chief-0"] rect[data-state="training"]').hover(
            position={"x": 60, "y": 8}
        )
        assert "chief-0 training\n5 s, from 3 s to 8 s" in one.page.locator("#tip").inner_text()
        one.page.locator(".node").first.focus()
        assert "leads" in one.page.locator("#tip").inner_text()


def test_several_runs_are_shown_side_by_side(browser: Any, tmp_path: Path) -> None:
    cluster = trained().cluster
    asked = replace(
        cluster, origin=replace(cluster.origin, command="cluster-kit render x --args 2")
    )
    outcome = {**trained().outcome, "success": False, "metrics": {"loss": None}}
    other = changed(name="20261122-111500", cluster=asked, outcome=outcome)
    with opened(browser, written(tmp_path, trained(), other)) as one:
        assert one.complaints == []
        assert "cluster-kit up x --args 2" in one.page.locator("#compared").inner_text()
        assert "nan or infinite" in one.page.locator("#compared").inner_text()
        assert one.page.locator(".lane").count() == 2 * len(trained().cluster.tasks)
        table = one.page.locator("#compared").inner_text()
        assert "test accuracy" in table and "20261122-111500" in table
        labels = one.page.locator('.chart[data-chart="loss"] .u-label').all_inner_texts()
        assert any("20261122-111500 chief-0" in label for label in labels)


def test_faults_of_a_drill_are_marked_explained_and_listed(browser: Any, tmp_path: Path) -> None:
    freeze = Fault(1, "freeze", "ps-0", 4.0, 6.5, 2.5, 1.5, "silent", 2.4, 3)
    retry = told(6, "chief-0", "retry", attempt=2, reason=f"ps-0 was lost {EVIL}")
    entries = sorted([*trained().entries, retry], key=lambda entry: entry.time)
    report = written(tmp_path, changed(faults=[freeze], entries=entries))
    check(browser, report)
    with opened(browser, report) as one:
        ps = one.page.locator('.lane[data-task="ps-0"]')
        assert ps.locator('rect[data-state="broken"]').count() == 1
        ps.locator(".mark.drill").hover()
        assert "freeze for 2.5 s, by the drill" in one.page.locator("#tip").inner_text()
        assert "broken 2.5 s" in (ps.get_attribute("aria-label") or "")
        row = one.page.locator("#lanes tbody tr").inner_text().split("\t")
        assert row == ["1 freeze", "ps-0", "4 s", "2.5 s", "1.5 s", "2.4 s", "3"]
        one.page.locator('.lane[data-task="chief-0"] .mark.retry').hover()
        assert "attempt 2: ps-0 was lost" in one.page.locator("#tip").inner_text()
        assert one.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_speed_with_more_workers_fits_every_width(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    limit = "ps-0's link is busy for 100% of the time: 204 MB for each worker in each step"
    points = [
        {"workers": n, "ps": 1, "speed": 130.5 * n, "low": 120.0 * n, "high": 140.0 * n,
         "efficiency": 0.98, "limit": limit}
        for n in (2, 4, 8, 16)
    ]  # fmt: skip
    facts = {**facts_of(trained()), "goodput": ["goodput 80%"]}
    facts["scaling"] = {"unit": "images", "points": points, "why": ""}
    report = tmp_path / "report.html"
    report.write_text(page([facts]))
    for width in (420, 900, 1400):
        with opened(browser, report, scheme) as one:
            one.page.set_viewport_size({"width": width, "height": 900})
            shown = one.page.locator("#scaling")
            rows = [row.split("\t") for row in shown.locator("tbody tr").all_inner_texts()]
            assert rows[3] == ["16", "2,088", "1,920 … 2,240", "98 %"]
            assert f"16 workers: {limit}" in shown.inner_text()
            for part in shown.locator("li, td, p").all():
                box = part.bounding_box()
                assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
            assert one.complaints == []
    lacking = {"unit": "", "points": [], "why": f"too short {EVIL}"}
    report.write_text(page([{**facts, "scaling": lacking}]))
    with opened(browser, report, scheme) as one:
        assert "No prediction: too short" in one.page.locator("#scaling").inner_text()
        assert one.page.locator("#scaling table").count() == 0 and one.complaints == []


def test_variables_are_listed_with_their_tasks(browser: Any, tmp_path: Path) -> None:
    kernel = {"name": "kernel", "on": "ps-0", "bytes": 4096}
    entries = [*trained().entries, told(4, "chief-0", "placement", variables=[kernel])]
    with opened(browser, written(tmp_path, changed(entries=entries))) as one:
        row = one.page.locator("#cluster tr", has_text="kernel").inner_text()
        assert row.split() == ["kernel", "ps-0", "4.1", "kB"] and one.complaints == []


def test_traces_are_linked_with_where_the_time_went(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, changed(profiles=[TAKEN]))) as one:
        section = one.page.locator("#profiles")
        assert section.get_by_role("link").get_attribute("href") == (
            "output/profile/now/trace.json.gz"
        )
        output = section.inner_text()
        assert "303 kB" in output and "20 steps/s before, 18 while it was traced" in output
        assert "ps-0 is missing: it did not answer in time" in output
        row = section.locator("tbody tr").inner_text().split("\t")
        assert row == ["worker-0", "40", "50.0 ms", "100 %", *["0 %"] * 5, "variables",
                       "op0, 9.0 ms"]  # fmt: skip
        assert one.complaints == []
    with opened(browser, written(tmp_path, trained())) as one:
        assert one.page.locator("#profiles").count() == 0


def test_a_printed_report_has_no_buttons(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, trained())) as one:
        one.page.emulate_media(media="print")
        assert not one.page.get_by_label("Zoom in").is_visible()
        assert one.page.locator(".lane").first.is_visible()


def test_no_number_on_an_axis_is_cut_off(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, trained())) as one:
        right = one.page.locator("svg.lanes").bounding_box()
        last = one.page.locator("svg.lanes > text").last
        box = last.bounding_box()
        assert last.text_content() == "10 s"
        assert box["x"] + box["width"] <= right["x"] + right["width"]


def test_the_labels_of_an_axis_with_only_zeros_differ(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, trained())) as one:
        for unit in ("bytes", "bytes/s", "CPUs"):
            low, high = one.page.evaluate("unit => spread(0, 0, unit)", unit)
            steps = [low + (high - low) * part / 4 for part in range(5)]
            shown = [one.page.evaluate("([at, unit]) => figure(at, unit)", [step, unit])
                     for step in steps]  # fmt: skip
            assert len(set(shown)) == 5 and shown[0].startswith("0"), shown


def test_a_narrow_table_breaks_no_name_or_number(browser: Any, tmp_path: Path) -> None:
    sent = [{"name": "ps-0", "rx_bytes": 2_270_000, "tx_bytes": 768_000}]
    run = changed(outcome={**trained().outcome, "tasks": sent})
    with opened(browser, written(tmp_path, run)) as one:
        one.page.set_viewport_size({"width": 420, "height": 900})
        table = one.page.locator("#cluster > .scroll:last-of-type")
        cells = [*table.locator("td:first-child").all(), *table.locator("td.figure").all()]
        names = [cell.inner_text() for cell in cells]
        assert {"evaluator-0", "2.27 MB", "768 kB"} <= set(names)
        lines = """one => {
          const range = document.createRange();
          range.selectNodeContents(one);
          return range.getClientRects().length;
        }"""
        assert {cell.evaluate(lines) for cell in cells} == {1}
        assert one.page.evaluate("document.documentElement.scrollWidth") == 420


def test_headings_and_landmarks_are_in_order(browser: Any, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, trained())) as one:
        levels = [int(found.evaluate("one => one.tagName[1]"))
                  for found in one.page.locator("h1, h2, h3").all()]  # fmt: skip
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
        assert one.page.locator("main").count() == 1
        sections = one.page.locator("section[aria-labelledby]").count()
        assert sections == one.page.locator("h2").count() > 3


def crowded(workers: int, ps: int, seconds: float) -> Any:
    """Returns a run in which worker-0 was lost for a while, and all tasks send each other much."""
    many = cluster(worker=workers, ps=ps, evaluator=1)
    names = [task.name for task in many.tasks]
    senders = [name for name in names if not name.startswith("evaluator")]
    steps = [told(seconds * at / 100, "chief-0", "step", step=at, steps_per_s=9.0, loss=1 / at)
             for at in range(5, 95) if not 45 < at < 60]  # fmt: skip
    life = [Event(seconds * 0.45, "die", "worker-0", 137),
            Event(seconds * 0.6, "start", "worker-0", None)]  # fmt: skip
    ends = [Event(seconds, "die", name, 0) for name in names]
    samples = [
        used(seconds * at / 100, name, cpu_s=seconds * at / 200, memory=1e8 + at * 1e6,
             sent_to={one: at * 1e6 for one in senders if one.split("-")[0] != name.split("-")[0]})
        for at in range(1, 100) for name in senders
        if not (name == "worker-0" and 45 < at < 60)
    ]  # fmt: skip
    return changed(cluster=many, entries=steps, samples=samples, checkpoints=[],
                   events=[*started(many), *life, *ends])  # fmt: skip


OVERLAPS = """(selector) => {
  const boxes = [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect());
  const hits = (a, b) => a.left < b.right && b.left < a.right
    && a.top < b.bottom && b.top < a.bottom;
  return boxes.filter((a, at) => boxes.slice(at + 1).some((b) => hits(a, b))).length;
}"""


@pytest.mark.parametrize("seconds", [10, 180, 18_000, 400_000])
def test_labels_of_time_do_not_overlap(browser: Any, tmp_path: Path, seconds: int) -> None:
    with opened(browser, written(tmp_path, crowded(3, 1, seconds))) as one:
        for width in (420, 900, 1400):
            one.page.set_viewport_size({"width": width, "height": 900})
            one.page.wait_for_function("w => innerWidth === w", arg=width)
            assert one.page.locator("svg.lanes > text").count() > 1
            assert one.page.evaluate(OVERLAPS, "svg.lanes > text") == 0
        widest = one.page.evaluate(
            """end => {
              const pen = document.createElement("canvas").getContext("2d");
              pen.font = "12px system-ui, sans-serif";
              const labels = ticks(0, end, 900 / APART).map((at) => moment(at, end));
              return Math.max(...labels.map((label) => pen.measureText(label).width)) / APART;
            }""",
            seconds,
        )
        assert 0 < widest < 1, "figures have the same labels, as far apart"
        assert one.complaints == []


def test_no_line_is_drawn_while_a_task_did_not_run(browser: Any, tmp_path: Path) -> None:
    """No line is drawn while the leader made no step, either, whatever the other tasks did."""
    with opened(browser, written(tmp_path, crowded(2, 1, 180))) as one:
        found = one.page.evaluate(
            """() => charts(embedded().runs).map((chart) => {
              const [x, ...curves] = plotted(chart);
              const inside = (at) => x[at] > 85 && x[at] < 105;
              return [chart.id, chart.curves.map((curve, n) => [curve.name,
                x.some((_, at) => inside(at) && curves[n][at] === null),
                x.some((_, at) => inside(at) && typeof curves[n][at] === "number")])];
            })"""
        )
        curves = {(chart, name): kinds for chart, of in found for name, *kinds in of}
        assert curves["loss", "chief-0"] == [True, False]
        assert curves["memory", "worker-0"] == [True, False]
        assert curves["memory", "worker-1"] == [False, True]


def test_a_report_of_many_tasks_is_readable(browser: Any, tmp_path: Path) -> None:
    """The picture of the cluster has roles instead of tasks, and the legend can be unfolded."""
    report = written(tmp_path, crowded(27, 3, 180))
    check(browser, report)
    with opened(browser, report) as one:
        names = [node.locator("text").first.text_content()
                 for node in one.page.locator(".node").all()]  # fmt: skip
        assert names == ["chief-0 ★", "27 workers", "3 ps", "evaluator-0"]
        legend = one.page.locator('.chart[data-chart="memory"] details.legend')
        assert legend.locator("summary").inner_text() == "legend of 31 curves"
        legend.locator("summary").click()
        last = legend.locator(".u-series").last
        assert last.is_visible() and "ps-2" in last.inner_text()
        cut = (
            "one => [...one.querySelectorAll('*')].some((n) => n.scrollHeight > n.clientHeight + 1"
        )
        assert not legend.evaluate(f"{cut} && getComputedStyle(n).overflowY !== 'visible')")


@pytest.mark.parametrize(("workers", "ps"), [(2, 2), (3, 1), (5, 3), (27, 3)])
def test_labels_in_the_picture_of_the_cluster_do_not_overlap(
    browser: Any, tmp_path: Path, workers: int, ps: int
) -> None:
    with opened(browser, written(tmp_path, crowded(workers, ps, 10))) as one:
        for width in (1200, 900, 420):
            one.page.set_viewport_size({"width": width, "height": 900})
            one.page.wait_for_function("w => innerWidth === w", arg=width)
            assert one.page.locator("svg.network text.label").count() > 1
            drawn = "svg.network text.label, svg.network .node rect"
            assert one.page.evaluate(OVERLAPS, drawn) == 0
            picture = one.page.locator(".picture")
            # It is drawn again a moment after the width has changed.
            fits = "one => one.scrollWidth <= one.clientWidth"
            one.page.wait_for_function(fits, arg=picture.element_handle())
            scale = "one => one.getBoundingClientRect().width / one.getAttribute('width')"
            assert picture.locator("svg").evaluate(scale) > 0.75, "text is large enough"
            outside = """svg => [...svg.querySelectorAll("path, rect, text")].some((one) => {
              const [whole, part] = [svg, one].map((of) => of.getBoundingClientRect());
              return part.left < whole.left - 1 || part.right > whole.right + 1
                || part.top < whole.top - 1 || part.bottom > whole.bottom + 1;
            })"""
            assert not picture.locator("svg").evaluate(outside), width
        assert one.complaints == []


def test_the_picture_of_the_readme_can_be_made(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reported, "started", lambda: contextlib.nullcontext(browser))
    run = begun(tmp_path)
    monkeypatch.setattr(reported, "run_named", lambda *_: run)
    picture = tmp_path / "report.png"
    reported.draw(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
