"""The live pages in a real browser: they show a run while it continues and when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.serve.start import serving
from tests.browser.chromium import opened
from tests.browser.live import PATIENCE_MS, made, now, quick, see, stays_here, trains, url
from tests.browser.looked_at import check_page
from tests.unit.serve.made_up import MadeUp

__all__ = ["made", "quick", "url"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_new_data_appears_without_a_reload(
    browser: Any, made: MadeUp, url: str, scheme: str
) -> None:
    with opened(browser, url, scheme) as one:
        see(one, 'tr[data-now="chief-0"]', "50")
        assert now(one, "chief-0")[:5] == ["training", "50", "10", "\N{EN DASH}", "0.2"]
        trains(made, 6, 12)
        see(one, 'tr[data-now="worker-0"]', "110")
        made.happens("worker-1", 12.0, "die", 1)
        see(one, 'tr[data-now="worker-1"]', "restarting")
        made.happens("worker-1", 13.0, "start")
        one.page.locator('.lane[data-task="worker-1"] .mark.restart').wait_for(timeout=PATIENCE_MS)
        assert one.page.locator(".badge").inner_text() == "running"
        made.use("worker-1", 14.0)
        made.use("worker-1", 15.0)
        see(one, '.chart[data-chart="cpus"] .u-label', "worker-1")
        stays_here(one)


def test_a_page_that_grew_equals_the_report(browser: Any, made: MadeUp, url: str) -> None:
    with opened(browser, url) as one:
        see(one, 'tr[data-now="chief-0"]', "50")
        trains(made, 6, 10)
        made.say("evaluator-0", 10.5, "evaluation", checkpoint="ckpt-1", accuracy=0.9, loss=0.1)
        see(one, 'tr[data-now="chief-0"]', "90")
        trains(made, 11, 12)
        see(one, '.chart[data-chart="accuracy"] .u-label', "evaluator-0")
        one.page.wait_for_timeout(1200)  # Pictures are drawn after the data arrived.
        stays_here(one)
        one.asked = []
        told: Any = made.site.channel(made.cluster.name, dict)._source  # type: ignore[arg-type]
        check_page(one, told._reading.whole()["run"])


def test_a_reload_shows_the_same(browser: Any, made: MadeUp, url: str) -> None:
    with opened(browser, url) as one:
        see(one, 'tr[data-now="chief-0"]', "50")
        trains(made, 6, 9)
        see(one, 'tr[data-now="chief-0"]', "80")
        one.page.reload()
        see(one, 'tr[data-now="chief-0"]', "80")
        assert one.page.locator(".lane").count() == len(made.cluster.tasks)
        stays_here(one)


def test_a_cluster_whose_tasks_have_all_ended_is_not_running(
    browser: Any, made: MadeUp, url: str
) -> None:
    with opened(browser, url) as one:
        see(one, ".badge", "running")
        for task in made.cluster.tasks:
            made.happens(task.name, 12.0, "die", 0)
        see(one, ".badge", "not running")
        stays_here(one)


def test_the_end_is_shown_and_then_the_next_run(browser: Any, made: MadeUp, url: str) -> None:
    with opened(browser, url) as one:
        see(one, ".badge", "running")
        made.over(success=False)
        see(one, ".badge", "failed")
        assert "it broke" in one.page.locator("header").inner_text()
        assert one.page.locator("#now").count() == 0
        made.new_run("run-2")
        made.begin()
        see(one, ".badge", "running")
        see(one, "header", made.run.path.name)
        trains(made, 1, 4)
        see(one, 'tr[data-now="chief-0"]', "30")
        made.over()
        see(one, ".badge", "success")
        stays_here(one)


def test_a_zoom_stays_while_the_run_continues(browser: Any, made: MadeUp, url: str) -> None:
    def width() -> float:
        box = one.page.locator('.lane[data-task="chief-0"] rect.state').first.bounding_box()
        return float(box["width"])

    with opened(browser, url) as one:
        see(one, 'tr[data-now="chief-0"]', "50")
        one.page.wait_for_timeout(700)
        whole = width()
        one.page.get_by_label("Zoom in").click()
        one.page.get_by_label("Earlier").click()
        nearer = width()
        assert nearer > whole
        trains(made, 6, 20)
        see(one, 'tr[data-now="chief-0"]', "190")
        one.page.wait_for_timeout(700)
        assert width() == pytest.approx(nearer, abs=1)
        one.page.get_by_label("Show all of the time").click()
        assert width() < whole


def test_the_page_waits_for_a_cluster_that_is_not_up(browser: Any, made: MadeUp) -> None:
    with serving(made.site, "later") as url, opened(browser, url) as one:
        see(one, "#none", "later is not up, and there is no run of it here")
        stays_here(one)


def test_the_page_reports_the_end_of_the_server(browser: Any, made: MadeUp) -> None:
    with opened(browser, "about:blank") as one:
        with serving(made.site, made.cluster.name) as url:
            one.page.goto(url)
            see(one, ".badge", "running")
            made.over()
        see(one, "#connection", "cluster-kit has ended")
        assert one.page.locator(".badge").inner_text() == "success", "not updated at the end"


def test_output_of_a_program_is_shown_as_text(browser: Any, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='caught'\">"
    made = MadeUp(tmp_path)
    made.begin()
    made.said = {"chief-0": [evil]}
    made.say("chief-0", 2, "phase", name=evil)
    with serving(made.site, made.cluster.name) as url, opened(browser, url) as one:
        see(one, ".badge", "running")
        one.page.locator("#logs").scroll_into_view_if_needed()
        see(one, ".log", evil)
        assert one.page.title() == made.cluster.name and one.complaints == []
