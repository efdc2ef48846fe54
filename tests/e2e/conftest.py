"""Real engine, real containers. Every cluster has a name of its own, so that this suite can run
twice at once, and is removed by its label whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

from cluster_kit.image import image_present, image_tag
from tests.kit import Kit, new_kit, remove


def _why_not() -> str:
    try:
        docker.from_env().ping()
    except DockerException as error:
        return f"no Docker engine answers ({error}); `make engine` starts one"
    if not image_present(image_tag("cpu")):
        return "the trainer image is not built; `make image` builds it"
    return ""


WHY_NOT = _why_not()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engine)
            if WHY_NOT:
                item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def kit(tmp_path: Path, client: docker.DockerClient) -> Iterator[Kit]:
    """A workspace with the kit's own manifests; clusters whose names begin alike are removed."""
    made = new_kit(tmp_path, "e2e")
    yield made
    remove(client, made.name)
