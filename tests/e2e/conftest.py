"""Fixtures for tests on a real engine with real containers.

Every cluster has a unique name, so that this suite can run twice at once, and is always removed by
its label.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.kit import Kit, mark_engine_tests, new_kit, remove, why_no_engine

WHY_NOT = why_no_engine()
LEFT_OUT = {
    "slow": "takes minutes; `make test-slow` runs it",
    "more": "`make test-more` runs it, and CI does",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_engine_tests(items, Path(__file__).parent, WHY_NOT)
    chosen = config.getoption("markexpr")
    for item in items:
        for marker, reason in LEFT_OUT.items():
            if marker not in chosen and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def engine_client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def client(engine_client: docker.DockerClient) -> docker.DockerClient:
    return engine_client


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that another user may enter; pytest's own folders are private."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-kit-elsewhere-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def kit(tmp_path: Path, client: docker.DockerClient) -> Iterator[Kit]:
    """A workspace with the kit's own manifests; clusters whose names have the same prefix are
    removed."""
    made = new_kit(tmp_path, "e2e")
    yield made
    remove(client, made.name)
