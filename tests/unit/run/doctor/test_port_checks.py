"""Published ports must be free before anything starts, and are printed when the run starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cluster_kit.errors import HostError
from cluster_kit.resolved import LOOPBACK
from cluster_kit.run.doctor import check_ports
from tests.fakes.stage import Stage
from tests.make import cluster


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as held:
        held.bind((LOOPBACK, 0))
        held.listen()
        yield held.getsockname()[1]


def test_a_port_in_use_is_reported_before_the_start(stage: Stage, listening: int) -> None:
    with pytest.raises(HostError, match=f"taken: 127.0.0.1:{listening} \\(for chief-0\\)") as told:
        stage.up(role={"chief": {"ports": [f"{listening}:80"]}})
    assert "or the cluster that listens" in told.value.hint
    assert "publish another port" in told.value.hint
    assert stage.is_clean()


def test_free_ports_are_shown_by_doctor_and_when_the_run_starts(stage: Stage) -> None:
    with socket.socket() as asked:
        asked.bind((LOOPBACK, 0))
        free = asked.getsockname()[1]
    made = cluster(role={"chief": {"ports": [f"{free}:80"]}})
    (check,) = check_ports(made)
    assert (check.state, check.found) == ("ok", f"free: 127.0.0.1:{free}")
    assert check_ports(None) == check_ports(cluster()) == []
    stage.up(role={"chief": {"ports": [f"{free}:80"]}})
    assert any(f"chief-0:80 at 127.0.0.1:{free}" in line for line in stage.view.phases)


def test_ports_of_an_engine_elsewhere_are_not_tested_here(
    listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cluster(role={"chief": {"ports": [listening]}})
    assert check_ports(made)[0].state == "fail"
    monkeypatch.setenv("DOCKER_HOST", "ssh://somewhere")
    assert check_ports(made) == []
