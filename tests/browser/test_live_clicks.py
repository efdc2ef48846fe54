"""What a user clicks on the live pages: logs, buttons, other clusters and runs."""

from __future__ import annotations

from typing import Any

from cluster_kit.serve.start import serving
from tests.browser.chromium import opened
from tests.browser.live import PATIENCE_MS, made, quick, see, stays_here, trains, url
from tests.unit.serve.made_up import MadeUp

__all__ = ["made", "quick", "url"]


def test_logs_are_followed_and_searched(browser: Any, made: MadeUp, url: str) -> None:
    made.said = {
        "chief-0": ["begins", "<b>step</b> 1", "step 2"],
        "worker-0": ["a worker's step"],
    }
    with opened(browser, url) as one:
        see(one, ".badge", "running")
        one.page.locator("#logs").scroll_into_view_if_needed()
        see(one, ".log", "a worker's step")
        one.page.get_by_label("Task", exact=True).select_option("chief-0")
        see(one, "#logs [role=status]", "3 lines")
        assert "<b>step</b> 1" in one.page.locator(".log").inner_text()
        one.page.get_by_label("Search in the log").fill("STEP")
        see(one, "#logs [role=status]", "2 lines")
        assert one.page.locator(".log mark").all_inner_texts() == ["step", "step"]
        made.over()
        see(one, ".badge", "success")
        one.page.get_by_label("Search in the log").fill("")
        see(one, "#logs [role=status]", "3 lines")
        stays_here(one)


def test_buttons_act_and_report_the_result(browser: Any, made: MadeUp, url: str) -> None:
    with opened(browser, url) as one:
        see(one, ".badge", "running")
        one.page.get_by_label("freeze worker-0").click()
        see(one, "#said", "worker-0: frozen")
        see(one, 'tr[data-now="worker-0"]', "paused")
        assert one.page.get_by_label("kill worker-0").is_disabled()
        one.page.get_by_label("thaw worker-0").click()
        see(one, 'tr[data-now="worker-0"]', "training")
        asked: list[str] = []
        answers = [False, True]

        def answer(dialog: Any) -> None:
            asked.append(dialog.message)
            dialog.accept() if answers.pop(0) else dialog.dismiss()

        one.page.on("dialog", answer)
        one.page.get_by_label("kill worker-0").click()
        assert "kill -9 -1" not in dict(made.done)
        one.page.get_by_label("kill worker-0").click()
        see(one, "#said", "worker-0: killed")
        assert asked == ["Kill worker-0, as if it had crashed?"] * 2
        assert made.done == [
            ("freeze", "worker-0"), ("thaw", "worker-0"), ("kill -9 -1", "worker-0"),
        ]  # fmt: skip
        made.lost = True
        one.page.get_by_label("freeze worker-0").click()
        see(one, "#said", "the engine is gone")
        see(one, "#trouble", "The engine does not answer")
        trains(made, 60, 61)
        see(one, 'tr[data-now="chief-0"]', "600")
        made.lost = False
        one.page.locator("#trouble").wait_for(state="hidden", timeout=PATIENCE_MS)
        assert all("503" in output for output in one.complaints)


def test_without_allow_control_there_is_no_button(browser: Any, made: MadeUp) -> None:
    made.site.control = False
    with serving(made.site, made.cluster.name) as url, opened(browser, url) as one:
        see(one, ".badge", "running")
        assert one.page.locator("#now button").count() == 0
        assert one.page.locator("#now tr").count() == len(made.cluster.tasks) + 1


def test_all_clusters_and_runs_are_one_click_away(browser: Any, made: MadeUp, url: str) -> None:
    made.over()
    old = made.run.path.name
    with opened(browser, url) as one:
        see(one, ".badge", "success")
        one.page.get_by_text("all clusters and runs").click()
        see(one, "#none", "No cluster is up")
        made.new_run("run-2")
        made.begin()
        see(one, "#up", f"{len(made.cluster.tasks)} running")
        made.states = dict.fromkeys(made.states, "exited")
        see(one, "#past", "not running")
        made.lost = True
        see(one, "#trouble", "is not known")
        assert one.page.locator("#none").count() == 0
        made.lost = False
        one.page.set_viewport_size({"width": 390, "height": 844})
        table = "e => e.closest('.scroll').scrollWidth <= e.closest('.scroll').clientWidth"
        assert one.page.locator("#past table").evaluate(table), "a verdict is cut off on a phone"
        one.page.locator("#past a", has_text=old).last.click()
        see(one, ".badge", "success")
        one.page.locator("#logs").scroll_into_view_if_needed()
        see(one, ".log", "saved")
        one.page.locator("#cluster a", has_text="log").first.click()
        see(one, "#logs [role=status]", "1 line")
        stays_here(one)
