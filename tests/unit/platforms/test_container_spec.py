"""What a task is given is complete without Compose: another backend needs nothing else."""

from __future__ import annotations

from dataclasses import fields
from typing import cast

import pytest

from cluster_kit import labels
from cluster_kit.facts import EngineKind
from cluster_kit.platforms.compose.compose_file import render, render_hidden
from cluster_kit.platforms.container import (
    ContainerSpec,
    NetworkSpec,
    SharedSpec,
    container_specs,
    network_spec,
)
from cluster_kit.resolved import Cluster
from tests.make import cluster, gpus, host, parse_compose
from tests.unit.platforms.docker_run import docker_network, docker_run
from tests.unit.platforms.said import Reading, said_by_compose, said_by_docker_run

NASTY = {
    "PRICE": "$5 or ${HOME}",
    "QUOTES": 'it\'s "so"',
    "LINES": "a\nb",
    "EMPTY": "",
    "SMILE": "😀",
}
CLUSTERS = {
    "plain": cluster(evaluator=1, name="on"),
    "limits": cluster(
        program="train.py",
        data="../my images",
        args=["--label", "a b", "--price=$5", "--job={{ role }}"],
        retries=0,
        secret={"kept": {"environment": "KEPT"}, "file": "some.txt"},
        mount=[
            {"source": "all", "target": "/all"},
            {"source": "some", "target": "/some", "read_only": False, "roles": ["worker"]},
        ],
        network={"internal": False, "mtu": 1400},
        role={"worker": {"cpus": 1.5, "memory": "2g", "bandwidth": "100mbit"}},
        task={
            "ps-1": {"environment": NASTY, "shm_size": 2**27 + 1},
            "worker-0": {
                "ulimits": {"nofile": 1024, "core": "0:-1"},
                "ports": [6006, "8080:80"],
                "shm_size": "2g",
                "env_file": "more.env",
                "environment": {"API_TOKEN": "$5 it's\\", "OPEN": "yes"},
            },
        },
    ),
    "gpus": cluster(
        host(gpus=gpus(4), gpu_driver="cdi"),
        chief=0,
        ps=0,
        gpus=["1", "3", "0", "2"],
        gpu_memory="8g",
        image="registry.example:5000/team/trainer:2.1",
        addressing="name",
    ),
}


@pytest.mark.parametrize("made", CLUSTERS.values(), ids=CLUSTERS)
def test_docker_run_and_compose_say_the_same_of_every_task(made: Cluster) -> None:
    services = parse_compose(render(made))["services"]
    beside = parse_compose(render_hidden(made) or "services: {}")["services"]
    specs = container_specs(made)
    assert [spec.hostname for spec in specs] == list(services)
    for spec in specs:
        words = docker_run(spec, f"{made.project}_cluster", "${CLUSTER_KIT_OUTPUT:-./output}")
        hidden = beside.get(spec.hostname, {}).get("environment", {})
        assert hidden == spec.hidden
        service = services[spec.hostname]
        wanted = {"file": "secrets.yaml", "service": spec.hostname}
        assert service.get("extends") == (wanted if hidden else None)
        assert said_by_docker_run(words) == said_by_compose(service, list(hidden))


def test_docker_and_compose_make_the_same_network() -> None:
    for made in (*CLUSTERS.values(), cluster(network={"internal": True})):
        whole = network_spec(made)
        spec = Reading(whole)
        words = docker_network(cast(NetworkSpec, spec), "name")
        assert spec.read == {field.name for field in fields(NetworkSpec)}
        given = [word.partition("=")[::2] for word in words[3:-1]]
        (network,) = parse_compose(render(made))["networks"].values()
        mtu = network.get("driver_opts", {}).get("com.docker.network.driver.mtu")
        (pool,) = network["ipam"]["config"]
        assert dict(given[:3]) == {
            "--driver": network["driver"],
            "--subnet": pool["subnet"],
            "--gateway": pool["gateway"],
        }
        assert (("--internal", "") in given) == network.get("internal", False) == whole.internal
        told = [value.rpartition("=")[2] for key, value in given if key == "--opt"]
        assert told == ([] if mtu is None else [mtu]) == ([str(whole.mtu)] if whole.mtu else [])
        named = dict(value.split("=", 1) for key, value in given if key == "--label")
        assert named == {k: v for k, v in network["labels"].items() if k != labels.RUN}


def test_no_field_is_forgotten() -> None:
    """`docker run` reads all of them, and what it is told is compared with Compose's file."""
    spec = container_specs(CLUSTERS["gpus"])[0]
    shared = Reading(spec.shared)
    whole = Reading(spec, shared=shared)
    docker_run(cast(ContainerSpec, whole), "network", "output")
    asked = {field.name for made in (SharedSpec, ContainerSpec) for field in fields(made)}
    # `environment` is both: the shared variables and the task's own.
    assert shared.read | whole.read == asked - {"own_environment"}


def test_the_three_differ_in_everything_that_a_task_can_be_given() -> None:
    specs = [spec for made in CLUSTERS.values() for spec in container_specs(made)]
    for field in (
        "cap_add",
        "cpus",
        "cpu_shares",
        "memory",
        "shm",
        "devices",
        "restarts",
        "mounts",
        "ulimits",
        "ports",
        "hidden",
        "env_file",
    ):
        assert {bool(getattr(spec, field)) for spec in specs} == {True, False}, field
    assert {bool(spec.shared.mounts) for spec in specs} == {True, False}
    assert {spec.shared.image_is_local for spec in specs} == {True, False}


def test_every_text_is_given_as_it_was_written() -> None:
    ps = next(spec for spec in container_specs(CLUSTERS["limits"]) if spec.hostname == "ps-1")
    assert NASTY.items() <= ps.environment.items()


@pytest.mark.parametrize("made", CLUSTERS.values(), ids=CLUSTERS)
def test_every_container_has_every_label(made: Cluster) -> None:
    known = {text for name, text in vars(labels).items() if name.isupper()}
    known -= {labels.RUN, labels.HELPER, labels.SIDECAR, labels.BOARD, labels.BOARD_OF}
    for spec in container_specs(made):
        assert spec.labels.keys() == known
        assert spec.shared.labels.items() <= spec.labels.items()


@pytest.mark.parametrize(
    ("engine", "internal", "isolated"),
    [("26.1.5", True, False), ("28.0.0", True, True), ("28.0.0", False, False), ("", True, False)],
)
def test_the_host_has_no_address_in_an_internal_network_if_the_engine_can(
    engine: str, internal: bool, isolated: bool
) -> None:
    made = cluster(host(engine=engine), network={"internal": internal, "mtu": 1400})
    network = parse_compose(render(made))["networks"]["cluster"]
    mode = {"com.docker.network.bridge.gateway_mode_ipv4": "isolated"} if isolated else {}
    assert network["driver_opts"] == {"com.docker.network.driver.mtu": "1400", **mode}
    assert network.get("internal", False) == internal and made.isolated == isolated
    podman = cluster(
        host(engine="28.1", kind=EngineKind(podman=True)), network={"internal": internal}
    )
    assert not podman.isolated
