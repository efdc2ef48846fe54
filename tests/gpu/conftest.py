"""Engines with simulated GPUs, started for the first test that needs one, and ended last."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from cluster_kit.image.kit_image import image_tag
from tests.e2e import graph
from tests.gpu import second_engine, waiting_image
from tests.gpu.second_engine import Kind, SecondEngine
from tests.kit import Kit, mark_engine_tests, new_kit, remove, why_no_engine
from tests.make import GIB, ROOT

MakeKit = Callable[..., Kit]


WHY_NOT = why_no_engine() or second_engine.why_not()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    mark_engine_tests(items, here, WHY_NOT)
    for item in items:
        if here in item.path.parents and (kind := _engine_of(item)):
            item.add_marker(pytest.mark.xdist_group(f"engine-{kind}"))


def _engine_of(item: pytest.Item) -> Kind | None:
    """Returns the second engine that a test uses: all tests that use one share it, in one
    process."""
    asked = getattr(item, "fixturenames", ())
    if "engine" in asked:
        kind: Kind = item.callspec.params["engine"]  # type: ignore[attr-defined]
        return kind
    if "cdi_engine" in asked:
        return "cdi"
    return "nvidia" if "nvidia_engine" in asked else None


def inventory(count: int) -> dict[str, str]:
    """Returns the environment in which the kit finds this many GPUs of the second engines' kind."""
    gpus = [
        {"uuid": f"GPU-{str(index) * 4}", "name": "Stub GPU", "memory": 16 * GIB}
        for index in range(count)
    ]
    return {"FAKE_NVML": json.dumps(gpus)}


def _running(kind: Kind) -> Iterator[SecondEngine]:
    tag = image_tag("cpu")
    with second_engine.running(kind, {} if graph.why_not() else {tag: tag}) as engine:
        waiting_image.bring(engine, tag)
        yield engine


@pytest.fixture(scope="session")
def nvidia_engine() -> Iterator[SecondEngine]:
    yield from _running("nvidia")


@pytest.fixture(scope="session")
def cdi_engine() -> Iterator[SecondEngine]:
    yield from _running("cdi")


@pytest.fixture(scope="session")
def trainer_image(nvidia_engine: SecondEngine) -> str:
    """The whole trainer image, for tests that need TensorFlow, on the nvidia engine."""
    tag = image_tag("cpu")
    if graph.why_not():
        nvidia_engine.load(tag)
    return tag


@pytest.fixture(scope="module", params=["nvidia", "cdi"])
def engine(request: pytest.FixtureRequest) -> SecondEngine:
    """Each of the two engines in turn."""
    found: SecondEngine = request.getfixturevalue(f"{request.param}_engine")
    return found


@pytest.fixture(scope="module")
def make_kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeKit]:
    """Returns a function that makes a workspace whose kit uses an engine, by default the machine's
    own, and finds the GPUs of that inventory."""
    with contextlib.ExitStack() as stack:

        def make(engine: SecondEngine | None = None, gpus: dict[str, str] | None = None) -> Kit:
            host = engine.host if engine else os.environ.get("DOCKER_HOST", "")
            fake = f"{ROOT / 'tests' / 'gpu' / 'fake_nvml'}{os.pathsep}{ROOT}"
            reach = {"DOCKER_HOST": host} if host else {}
            extra = {"PYTHONPATH": fake, **reach, **(gpus or {})}
            kit = new_kit(tmp_path_factory.mktemp("kit"), "gpu", **extra)
            client = docker.DockerClient(base_url=host) if host else docker.from_env()
            stack.callback(client.close)
            stack.callback(remove, client, kit.name)
            return kit

        yield make
