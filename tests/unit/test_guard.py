"""The guard of this suite: Docker and other programs are out of reach."""

from __future__ import annotations

import subprocess

import docker
import pytest

from cluster_kit.engine.client import DockerEngine
from cluster_kit.util.process import run


def test_starting_a_program_fails_with_advice() -> None:
    for start in (lambda: run(["docker", "ps"]), lambda: subprocess.run(["true"], check=True)):
        with pytest.raises(pytest.fail.Exception, match=r"starts a program.*move it to tests/e2e"):
            start()


def test_connecting_to_the_engine_fails_with_advice() -> None:
    for connect in (docker.from_env, docker.DockerClient, DockerEngine):
        with pytest.raises(pytest.fail.Exception, match="connects to the Docker engine"):
            connect()
