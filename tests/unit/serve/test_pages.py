"""The pages, requested by their routes; tests/browser tests their behaviour."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import HostError, UsageError
from cluster_kit.serve.pages import Overview, overview
from cluster_kit.serve.server import Request, answer
from cluster_kit.serve.site import Site
from cluster_kit.serve.start import routes_of, serving
from cluster_kit.workspace import Workspace
from tests.fakes.hosts import fake_host
from tests.unit.serve.made_up import MadeUp


@pytest.fixture
def made(tmp_path: Path) -> MadeUp:
    return MadeUp(tmp_path)


def get(made: MadeUp, path: str) -> str:
    body = answer(routes_of(made.site), Request("GET", path)).body
    assert isinstance(body, bytes)
    return body.decode()


def facts_in(page: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)
    return json.loads(found)


def test_all_clusters_and_runs_are_on_one_page(made: MadeUp) -> None:
    made.over()
    made.new_run("run-2")
    made.states["worker-0"] = "paused"
    facts = facts_in(get(made, "/"))
    assert facts == json.loads(get(made, "/overview.json")) == overview(made.site)
    (up,) = facts["clusters"]
    assert up == {"name": "demo", "tasks": 5, "states": {"running": 4, "paused": 1}}
    assert list(up["states"]) == ["paused", "running"], "in the same order each time"
    assert [run["success"] for run in facts["runs"]] == [None, True] and facts["trouble"] == ""


@pytest.mark.parametrize(
    ("reason", "stopped"), [("stopped", True), ("interrupted", True), ("failed", False)]
)
def test_a_run_that_a_user_stopped_is_not_shown_as_failed(
    made: MadeUp, reason: str, stopped: bool
) -> None:
    made.over(success=False, reason=reason)
    (run,) = overview(made.site)["runs"]
    assert (run["success"], run["stopped"]) == (False, stopped)


def test_the_overview_tells_runs_apart_as_the_list_of_runs_does(made: MadeUp) -> None:
    for fold in range(2):
        if fold:
            made.new_run("run-2")
        made.over()
        made.run.manifest.write_text(f'args = ["--fold", "{fold}"]\n')
    facts = json.loads(made.run.outcome.read_text())
    facts |= {"metrics": {"updates": 360, "loss": 0.25}, "resumed": True}
    made.run.outcome.write_text(json.dumps(facts))
    told = {(run["metric"], run["verdict"]) for run in overview(made.site)["runs"]}
    assert told == {
        ("a 1", "success, args: --fold 0"),
        ("loss 0.25", "resumed, success, args: --fold 1"),
    }


def test_the_overview_is_sent_again_when_it_changes(
    made: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_kit.serve.site.GLANCE_S", 0.0)
    monkeypatch.setattr("cluster_kit.serve.pages.REREAD_S", 0.0)
    one = Overview(made.site)
    assert one.look().startswith(b"event: overview\ndata: {") and one.look() == b""
    made.states["worker-0"] = "exited"
    assert b'"exited": 1' in one.look()


def test_without_an_engine_past_runs_and_the_reason_are_shown(made: MadeUp) -> None:
    def refuse() -> Any:
        raise HostError("no engine answers", "start it")

    facts = overview(Site(made.workspace, fake_host(refuse)))
    assert facts["trouble"] == "no engine answers"
    assert facts["clusters"] == [] and len(facts["runs"]) == 1


def test_a_page_may_request_only_its_own_server(made: MadeUp) -> None:
    page = get(made, "/cluster/demo")
    assert "default-src 'none'; connect-src 'self'; style-src" in page
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", page)
    assert facts_in(page) == {"cluster": "demo", "control": True}


def test_a_run_that_has_ended_has_a_page(made: MadeUp) -> None:
    made.over()
    facts = facts_in(get(made, f"/run/demo/{made.run.path.name}"))["run"]
    assert facts["verdict"]["success"] is True and facts["run"] == made.run.path.name


def test_a_run_that_has_ended_shows_its_speed_with_more_workers(made: MadeUp) -> None:
    made.over()
    facts = facts_in(get(made, f"/run/demo/{made.run.path.name}"))["run"]
    assert facts["scaling"]["points"] == [] and facts["scaling"]["why"]


def test_its_report_is_used_if_it_belongs_to_that_run(made: MadeUp) -> None:
    made.over()
    saved = made.run.report.with_suffix(".json")
    told = {"format": 1, "cluster": "demo", "run": "saved", "verdict": {"success": True}}
    saved.write_text(json.dumps(told))
    path = f"/run/demo/{made.run.path.name}"
    assert facts_in(get(made, path))["run"].items() >= told.items()
    for other in ({**told, "format": 0}, {**told, "verdict": {"success": None}}, [], "x"):
        saved.write_text(json.dumps(other))
        assert facts_in(get(made, path))["run"]["run"] == made.run.path.name


@pytest.mark.parametrize("path", ["/run/demo/nope", "/run/../demo", "/run/demo/..", "/run/%00/a"])
def test_no_path_leads_out_of_the_runs(made: MadeUp, path: str) -> None:
    with pytest.raises(UsageError, match="no run"):
        get(made, path)


def test_an_unknown_name_is_a_page_that_waits(made: MadeUp) -> None:
    page = get(made, "/cluster/<b>&amp;<script>")
    assert "<title>&lt;b>&amp;amp;&lt;script></title>" in page
    assert facts_in(page)["cluster"] == "<b>&amp;<script>"


def test_the_url_has_a_new_token_each_time(made: MadeUp) -> None:
    with serving(made.site, "a b") as one, serving(made.site) as other:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/cluster/a%20b\?token=[\w-]{32}", one)
        assert other.split("token=")[1] != one.split("token=")[1]


def test_the_engine_is_asked_once_for_all_pages(tmp_path: Path) -> None:
    made = MadeUp(tmp_path)
    for _ in range(5):
        made.site.of("demo"), made.site.newest("demo")
    assert made.asked == ["glance"]


def test_nothing_is_created_before_the_first_request(tmp_path: Path) -> None:
    site = Site(Workspace(tmp_path), fake_host(lambda: pytest.fail("nobody asked")))
    with serving(site):
        pass
    assert list(tmp_path.iterdir()) == []
