"""A chief that is a process on this host: this process, which calls the API."""

from __future__ import annotations

import fcntl
import json
import socket
from pathlib import Path

import pytest

import cluster_kit as ck
from cluster_kit.api import host_chief
from cluster_kit.api.inside import host_chief as inside
from tests.fakes.acting import Life, ends, says
from tests.fakes.stage import NAME, Stage

CONNECTS = host_chief.connect
HOLDS = Life((says(0.1, "start", attempt=1), says(0.9, "ready"), ends(60.0, 0, "finished")))
"""The chief's container, which ends some time after this process."""


@pytest.fixture(autouse=True)
def holds(host: Stage) -> None:
    host.engine.acting = {"chief-0": [HOLDS]}


def load(stage: Stage, **overrides: object) -> ck.Job:
    return ck.load(NAME, root=stage.workspace.root, chief="host", **overrides)


def test_its_container_stands_in_for_the_chief_and_there_is_no_evaluator(host: Stage) -> None:
    cluster = load(host).plan()
    assert [task.name for task in cluster.tasks] == ["chief-0", "worker-0", "worker-1", "ps-0"]
    assert cluster.leader.command == ("run", "/program/host_chief.py")
    assert cluster.mounts[0].source == str(Path(inside.__file__).parent)
    assert (cluster.deadlines.stall, cluster.deadlines.job) == (0, 365 * 86400)
    given = load(host, evaluator=1, deadline={"job": "2h"}).plan()
    assert (given.deadlines.job, given.deadlines.stall, len(given.evaluators)) == (7200, 0, 1)


def test_it_has_a_tf_config_with_addresses(host: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "localhost,.example")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with load(host, addressing="name", port=30222, data_worker=1).up() as cluster:
        plan = cluster.cluster
        config = cluster.tf_config()
        assert config["task"] == {"type": "chief", "index": 0}
        assert config["cluster"]["chief"] == [f"{plan.gateway}:30222"]
        assert config["cluster"]["worker"] == [f"{task.ip}:30222" for task in plan.of("worker")]
        assert config["cluster"]["ps"] == [f"{plan.of('ps')[0].ip}:30222"]
        assert cluster.addresses["chief-0"] == f"{plan.gateway}:30222"
        variables = cluster.environment()
        assert json.loads(variables["TF_CONFIG"]) == config
        assert variables["no_proxy"] == f"localhost,.example,{plan.subnet}"
        assert variables["NO_PROXY"] == str(plan.subnet)
        dispatcher = f"grpc://{plan.data_tasks[0].ip}:30222"
        assert variables["CLUSTER_KIT_DATA_SERVICE"] == dispatcher
        assert "data_worker" not in config["cluster"]
    assert host.saved()["success"] and host.is_clean()


def test_a_chief_called_master_has_that_job_name(host: Stage) -> None:
    with load(host, chief_job="master").up() as cluster:
        assert cluster.tf_config()["task"]["type"] == "master"
        assert list(cluster.tf_config()["cluster"]["master"]) == [cluster.addresses["chief-0"]]


def test_a_port_in_use_on_this_host_is_not_used(host: Stage) -> None:
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        with load(host, port=port).up() as cluster:
            chosen = cluster.addresses["chief-0"]
            assert chosen.startswith(f"{cluster.cluster.gateway}:")
            assert not chosen.endswith(f":{port}")
            assert (
                cluster.tf_config()["cluster"]["chief"]
                == [chosen]
                == [cluster.addresses["chief-0"]]
            )


def test_the_block_starts_when_the_servers_answer_and_ends_the_job(host: Stage) -> None:
    began = host.clock.monotonic()
    with load(host).up() as cluster:
        assert host.clock.monotonic() >= began + 0.9
        lock = cluster.directory.output / inside.LOCK
        assert inside.ended(lock) is None
        outcome = cluster.wait()
        assert (outcome.success, inside.ended(lock)) == (True, inside.DONE)
    assert not lock.exists() and host.is_clean()


def test_a_failed_block_ends_the_job_as_stopped(host: Stage) -> None:
    with pytest.raises(ZeroDivisionError), load(host).up():
        raise ZeroDivisionError
    assert (host.saved()["success"], host.saved()["reason"]) == (False, "stopped")
    assert host.is_clean() and not list(host.directory.output.glob("*.lock"))


def test_servers_that_never_answer_are_an_error_with_their_names(host: Stage) -> None:
    gap = ends(5.0, 6, "start-deadline", "worker-1 did not answer within 5 s", "worker-1")
    host.engine.acting = {"chief-0": [Life((says(0.1, "start", attempt=1), gap))]}
    with pytest.raises(ck.DeadlinePassed, match="worker-1 did not answer"), load(host).up():
        pytest.fail("nobody is ready")
    assert host.is_clean() and host.saved()["blame"] == "worker-1"


def test_servers_that_cannot_be_reached_from_here_are_an_error(
    host: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_chief, "connect", lambda _host, _port: "No route to host")
    words = r"worker-0 answers inside demo, but not from this host at .*:2222: No route to host"
    with pytest.raises(ck.HostError, match=words) as refused, load(host).up():
        pytest.fail("nobody is reached")
    assert 'without chief="host"' in refused.value.hint and host.is_clean()


@pytest.mark.parametrize(
    ("facts", "docker_host", "words"),
    [
        ({"OperatingSystem": "Docker Desktop"}, "", "Docker Desktop runs containers in a virtual"),
        ({"SecurityOptions": ["name=seccomp", "name=rootless"]}, "", "rootless Docker runs"),
        ({}, "ssh://me@gpu-box", r"another machine \(DOCKER_HOST=ssh://me@gpu-box\)"),
        ({}, "tcp://10.1.2.3:2375", "another machine"),
    ],
)
def test_an_engine_without_a_route_is_refused_before_anything_starts(
    facts: dict[str, object], docker_host: str, words: str, host: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    host.engine.facts |= facts
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    with pytest.raises(ck.HostError, match=words) as refused, load(host).up():
        pytest.fail("there is no way")
    assert "leave the chief in its container" in refused.value.hint
    assert not host.ran and not host.docker.ups


@pytest.mark.parametrize("here", ["unix:///run/other.sock", "tcp://127.0.0.1:2375", ""])
def test_an_engine_of_this_machine_has_a_route(here: str) -> None:
    assert host_chief.no_route({"OperatingSystem": "Debian GNU/Linux 12 (bookworm)"}, here) == ""


def test_servers_are_tested_by_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_chief, "connect", CONNECTS)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert host_chief.connect("127.0.0.1", port) == ""
    assert host_chief.connect("127.0.0.1", port) == "Connection refused"


@pytest.mark.parametrize("key", ["program", "args", "extra_args", "style"])
def test_a_program_in_addition_is_refused(key: str, host: Stage) -> None:
    with pytest.raises(ck.UsageError, match=f'{key} = .* with chief = "host"') as refused:
        load(host, **{key: ["x"] if "args" in key else "x"})
    assert refused.value.hint == f"leave out `{key}`, or `chief`"


def test_invalid_values_are_the_manifests_problems(host: Stage) -> None:
    with pytest.raises(ck.ManifestError, match='deadline = "5m"'):
        load(host, deadline="5m")
    with pytest.raises(ck.ManifestError, match='chief = "laptop"'):
        ck.load(NAME, root=host.workspace.root, chief="laptop")
    with pytest.raises(ck.ManifestError, match="at least 1 ps task is needed"):
        load(host, ps=0).plan()


def test_a_cluster_without_a_host_chief_says_how_to_get_one(stage: Stage) -> None:
    with ck.cluster(NAME, root=stage.workspace.root) as cluster:
        for asks in (cluster.tf_config, cluster.environment):
            with pytest.raises(ck.UsageError, match="is not the chief of demo") as refused:
                asks()
            assert 'chief="host"' in refused.value.hint


def test_a_resumed_run_is_not_ended_by_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / inside.LOCK
    lock.write_text("")
    monkeypatch.setenv("CLUSTER_KIT_OUTPUT", str(tmp_path))
    looks: list[Path] = []

    def next_look(_seconds: float) -> None:
        looks.append(lock)
        if len(looks) == 3:
            new = tmp_path / "new"
            new.write_text(inside.DONE)
            new.replace(lock)

    monkeypatch.setattr(inside.time, "sleep", next_look)
    assert inside.main() == 0 and len(looks) == 3


def test_a_process_that_ends_without_a_message_fails_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / inside.LOCK
    monkeypatch.setenv("CLUSTER_KIT_OUTPUT", str(tmp_path))
    holder = lock.open("w")
    fcntl.flock(holder, fcntl.LOCK_EX)
    monkeypatch.setattr(inside.time, "sleep", lambda _seconds: holder.close())
    assert inside.main() == 1
    assert "has ended without a message" in capsys.readouterr().err
