"""`/metrics` of the server: clusters that are up, runs that ended recently, and what is omitted."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.platforms.engine import ContainerSummary, Engine
from cluster_kit.serve.server import Request, answer
from cluster_kit.serve.site import Site
from cluster_kit.serve.start import routes_of, token_in
from cluster_kit.workspace import RunDirectory, Workspace
from tests.fakes.hosts import fake_host
from tests.make import cluster
from tests.unit.metrics.runs import Read, begun, ends
from tests.unit.serve.made_up import MadeUp


class Up:
    """An engine in which these containers are."""

    def __init__(self, *found: ContainerSummary) -> None:
        self.found = list(found)

    def glance(self) -> list[ContainerSummary]:
        return self.found


def container(run: RunDirectory, task: str, state: str, role: str = "") -> ContainerSummary:
    role = role or task.partition("-")[0]
    return ContainerSummary("1", "demo", "id", task, role, state, str(run.output))


def site(root: Path, engine: object) -> Site:
    def connect() -> Engine:
        if engine is None:
            raise EngineError("no engine answers")
        return engine  # type: ignore[return-value]

    return Site(Workspace(root), fake_host(connect))


def scraped(of: Site) -> Read:
    response = answer(routes_of(of), Request("GET", "/metrics"))
    assert response.type.startswith("text/plain; version=0.0.4")
    assert isinstance(response.body, bytes)
    return Read(response.body.decode())


def aged(run: RunDirectory, seconds: float) -> None:
    for file in run.path.rglob("*"):
        if file.is_file():
            os.utime(file, (time.time() - seconds,) * 2)


def test_a_cluster_that_is_up_has_the_engines_states(tmp_path: Path) -> None:
    run = begun(tmp_path / "elsewhere", cluster(name="demo", worker=1, ps=1))
    aged(run, 9999)
    told = scraped(site(tmp_path, Up(
        container(run, "chief-0", "running"), container(run, "ps-0", "paused"),
        container(run, "worker-0", "exited"), container(run, "redis", "running", "sidecar"),
    )))  # fmt: skip
    assert told("engine_up") == 1 and told("run_up", cluster="demo") == 1
    assert told.states("chief-0") == ["running"] and told.states("ps-0") == ["paused"]
    assert told.states("worker-0") == ["ended"] and told.all("task_up", task="redis") == []


def test_a_run_that_ended_recently_has_its_verdict(tmp_path: Path) -> None:
    new, old = begun(tmp_path, cluster(name="new")), begun(tmp_path, cluster(name="old"))
    ends(new), ends(old)
    aged(old, 700)
    told = scraped(site(tmp_path, Up()))
    assert told("run_success", cluster="new") == 1 and told.all("run_info", cluster="old") == []


def test_without_an_engine_the_tasks_files_are_used(tmp_path: Path) -> None:
    begun(tmp_path, cluster(name="new"))
    told = scraped(site(tmp_path, None))
    assert told("engine_up") == 0 and told("run_info", cluster="new") == 1


def test_a_run_that_is_about_to_start_or_was_removed_is_no_error(tmp_path: Path) -> None:
    run = begun(tmp_path, cluster(name="demo"))
    run.record.unlink()
    gone = RunDirectory(tmp_path / "gone")
    of = site(tmp_path, Up(container(run, "ps-0", "running"), container(gone, "ps-0", "running")))
    assert scraped(of).all("run_info") == []


def test_a_server_continues_from_what_it_has_read(tmp_path: Path) -> None:
    run = begun(tmp_path, cluster(name="demo"))
    routes = routes_of(site(tmp_path, Up()))
    for success in (False, True):
        ends(run, success=success)
        response = answer(routes, Request("GET", "/metrics"))
        assert isinstance(response.body, bytes)
        assert Read(response.body.decode())("run_success") == success


def test_a_token_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "token"
    token = token_in(file)
    assert len(token) >= 16 and token_in(file) == token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("odd", ["", "short", "spaces are not taken here", "é" * 20, "a" * 201])
def test_an_invalid_token_is_refused(tmp_path: Path, odd: str) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(odd)
    with pytest.raises(UsageError, match="does not hold a token"):
        token_in(file)
    assert file.read_text() == odd


def test_an_unusable_token_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "token"):
        with pytest.raises(HostError, match="cannot be used"):
            token_in(path)


def test_a_token_file_that_others_can_read_or_that_could_block_is_refused(tmp_path: Path) -> None:
    file, pipe = tmp_path / "token", tmp_path / "pipe"
    file.write_text("a" * 32)
    for mode in (0o644, 0o640, 0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(HostError, match=f"its mode is {mode:04o}, and must be 0600") as error:
            token_in(file)
        assert f"chmod 600 {file}" in error.value.hint
    file.chmod(0o600)
    assert token_in(file) == "a" * 32
    os.mkfifo(pipe, 0o600)
    for odd in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(HostError, match="not a regular file"):
            token_in(odd)


def test_a_token_file_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    token_in(file)
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(HostError, match="belongs to another user"):
        token_in(file)


def test_no_label_has_the_value_of_a_secret(tmp_path: Path) -> None:
    made = MadeUp(tmp_path, cluster(name="demo", role={"chief": {"secrets": ["API_TOKEN"]}}))
    made.secrets = ("tok_0123456789",)
    made.say("chief-0", 1.0, "metrics", **{"of tok_0123456789": 0.5})
    told = answer(routes_of(made.site), Request("GET", "/metrics")).body
    assert b"tok_0123456789" not in told and b"of ***" in told
