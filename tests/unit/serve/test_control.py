"""What a page can do to tasks, and when it may do anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.observe import user_requests
from cluster_kit.serve.server import Refused, Request, answer
from cluster_kit.serve.start import routes_of, to_cluster, to_task
from tests.fakes.hosts import fake_host
from tests.unit.serve.made_up import MadeUp


@pytest.fixture
def made(tmp_path: Path) -> MadeUp:
    return MadeUp(tmp_path)


def test_each_verb_does_what_it_says(made: MadeUp) -> None:
    do = lambda verb: to_task(fake_host(), made, "demo", "worker-0", verb)  # type: ignore[arg-type]  # noqa: E731
    assert do("freeze") == "worker-0: frozen: `thaw` lets it continue"
    assert do("thaw") == "worker-0: continues"
    assert do("kill") == "worker-0: killed, as if it had crashed"
    assert do("stop") == "worker-0: stopped: `restart` starts it again"
    assert made.done == [
        ("freeze", "worker-0"), ("thaw", "worker-0"), ("kill -9 -1", "worker-0"),
        ("end", "worker-0"),
    ]  # fmt: skip
    noted = [(one.what, one.tasks, one.from_page) for one in user_requests.read(made.run.path)]
    assert noted == [(what, ("worker-0",), True) for what in ("freeze", "thaw", "kill", "end")]


def test_the_job_ends_with_its_leader(made: MadeUp) -> None:
    stopped = to_task(fake_host(), made, "demo", "chief-0", "stop")  # type: ignore[arg-type]
    assert stopped == "chief-0: stopped, and with it the job: `up --resume` continues it"


@pytest.mark.parametrize(
    ("task", "verb", "kind", "says"),
    [
        ("worker-0", "thaw", HostError, "worker-0 is not frozen"),
        ("worker-0", "explode", UsageError, "explode was not found"),
        ("worker-9", "kill", UsageError, "demo has no task worker-9"),
        ("worker-1", "freeze", HostError, "worker-1 is exited: only a running task can be frozen"),
        ("worker-1", "kill", HostError, "worker-1 of demo has ended"),
        ("ps-0", "kill", HostError, "ps-0 of demo is paused"),
    ],
)
def test_impossible_actions_are_reported(
    made: MadeUp, task: str, verb: str, kind: type[Exception], says: str
) -> None:
    made.states |= {"worker-1": "exited", "ps-0": "paused"}
    with pytest.raises(kind, match=says):
        to_task(fake_host(), made, "demo", task, verb)  # type: ignore[arg-type]
    assert made.done == []


def test_a_cluster_is_stopped_as_by_the_command(
    made: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "stop", lambda name: made.done.append(("stop", name)), raising=False)
    assert to_cluster(fake_host(), made, "demo", "stop") == "demo: stopped: `start` continues it"  # type: ignore[arg-type]
    assert made.done == [("stop", "demo")]
    noted = [(one.what, one.from_page) for one in user_requests.read(made.run.path)]
    assert noted == [("stop", True)]
    with pytest.raises(UsageError, match="explode was not found"):
        to_cluster(fake_host(), made, "demo", "explode")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/control/demo/worker-0/kill", "/control/demo/stop"])
def test_without_allow_control_there_are_no_actions(made: MadeUp, path: str) -> None:
    made.site.control = False
    with pytest.raises(Refused) as refused:
        answer(routes_of(made.site), Request("POST", path))
    assert refused.value.status == 404 and made.done == []


def test_with_allow_control_actions_must_be_posted(made: MadeUp) -> None:
    routes = routes_of(made.site)
    done = answer(routes, Request("POST", "/control/demo/worker-0/freeze"))
    assert done.body == b"worker-0: frozen: `thaw` lets it continue"
    with pytest.raises(Refused) as refused:
        answer(routes, Request("GET", "/control/demo/worker-0/freeze"))
    assert refused.value.status == 405


def test_an_engine_that_refuses_is_reported(made: MadeUp) -> None:
    made.lost = True
    with pytest.raises(EngineError, match="the engine is gone"):
        to_task(fake_host(), made, "demo", "worker-0", "kill")  # type: ignore[arg-type]
