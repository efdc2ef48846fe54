"""Operations that only a local engine supports are requested by its type."""

from __future__ import annotations

import inspect

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker.docker_engine import DockerEngine
from cluster_kit.platforms.engine import Engine, Inventory, Reaches, gpus_taken, reaching
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from cluster_kit.platforms.swarm.swarm_engine import SwarmEngine


def methods(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if name[0] != "_"}


def test_dockers_engine_supports_all_of_them() -> None:
    engine = DockerEngine.__new__(DockerEngine)
    assert reaching(engine) is engine
    assert methods(DockerEngine) >= methods(Engine) | methods(Inventory) | methods(Reaches)


@pytest.mark.parametrize("kind", [SwarmEngine, KubernetesEngine])
def test_an_engine_of_other_machines_supports_none_of_them(kind: type[Engine]) -> None:
    engine = kind.__new__(kind)
    assert methods(kind) >= methods(Engine)
    assert not methods(kind) & methods(Reaches)
    with pytest.raises(EngineError, match=r"another node|pod"):
        reaching(engine)


def test_pods_use_no_gpu_of_this_host() -> None:
    engine = KubernetesEngine.__new__(KubernetesEngine)
    assert not methods(KubernetesEngine) & methods(Inventory)
    assert gpus_taken(engine) == ()
