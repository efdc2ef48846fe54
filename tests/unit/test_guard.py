"""The guards of this suite: Docker and other programs cannot be used, threads must end, and no test
is without its guards."""

from __future__ import annotations

import subprocess
import threading

import docker
import pytest

from cluster_kit.platforms.docker.docker_engine import DockerEngine
from cluster_kit.util.process import run
from tests.threads import ended


def test_starting_a_program_fails_with_advice() -> None:
    for start in (lambda: run(["docker", "ps"]), lambda: subprocess.run(["true"], check=True)):
        with pytest.raises(pytest.fail.Exception, match=r"starts a program.*move it to tests/e2e"):
            start()


def test_connecting_to_the_engine_fails_with_advice() -> None:
    for connect in (docker.from_env, docker.DockerClient, DockerEngine):
        with pytest.raises(pytest.fail.Exception, match="connects to the Docker engine"):
            connect()


def test_a_thread_that_continues_after_its_test_fails_it() -> None:
    over = threading.Event()
    with pytest.raises(AssertionError, match="left behind: goes on after its test"), ended(0.1):
        threading.Thread(target=over.wait, name="left behind").start()
    over.set()


def test_a_thread_that_ends_a_moment_later_is_waited_for() -> None:
    with ended():
        late = threading.Timer(0.2, lambda: None)
        late.start()
    assert not late.is_alive()


def test_a_folder_that_is_collected_again_keeps_its_fixtures(
    request: pytest.FixtureRequest,
) -> None:
    """As it is for `pytest unit/run/a.py unit/b.py unit/run/c.py`; they belong to its node."""
    unit = request.node.getparent(pytest.Directory)
    assert unit is not None
    first, again = (
        [node for node in report.result if isinstance(node, pytest.Directory)]
        for report in (unit.ihook.pytest_make_collect_report(collector=unit) for _ in range(2))
    )
    assert first and all(one is other for one, other in zip(first, again, strict=True))
