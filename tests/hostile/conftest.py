"""The kit's command in a temporary workspace, for tests that start real containers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.kit import Kit, new_kit, remove


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    made = docker.from_env()
    yield made
    made.close()


@pytest.fixture
def kit(
    request: pytest.FixtureRequest, tmp_path: Path, client: docker.DockerClient
) -> Iterator[Kit]:
    """The kit's command; the clusters that it ran are removed after the test.

    A module's VARIABLES are environment variables of the command.
    """
    made = new_kit(tmp_path, "hostile", **getattr(request.module, "VARIABLES", {}))
    yield made
    remove(client, made.name)
    # Python's own removal, and pytest's, fail for directories that are nested too deeply.
    subprocess.run(["rm", "-rf", tmp_path / "runs"], check=True)
