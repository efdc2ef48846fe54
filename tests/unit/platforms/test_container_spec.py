"""What a task's container gets, and which part of it is in the Compose file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import pytest

from cluster_kit import labels
from cluster_kit.facts import EngineKind
from cluster_kit.platforms.compose.compose_file import render, render_hidden
from cluster_kit.platforms.container import cluster_labels, network_spec, plan_hash, task_containers
from cluster_kit.resolved import Cluster
from tests.make import cluster, gpus, host, parse_compose

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
def test_private_values_are_in_a_separate_file(made: Cluster) -> None:
    services = parse_compose(render(made))["services"]
    private = parse_compose(render_hidden(made) or "services: {}")["services"]
    specs = task_containers(made)
    assert [spec.hostname for spec in specs] == list(services)
    for spec in specs:
        hidden = private.get(spec.hostname, {}).get("environment", {})
        assert hidden == spec.hidden
        service = services[spec.hostname]
        wanted = {"file": "secrets.yaml", "service": spec.hostname}
        assert service.get("extends") == (wanted if hidden else None)
        outside = {name for name, value in service["environment"].items() if value is None}
        assert outside == set(spec.secrets)


@pytest.mark.parametrize("made", CLUSTERS.values(), ids=CLUSTERS)
def test_the_network_equals_the_plans(made: Cluster) -> None:
    (network,) = parse_compose(render(made))["networks"].values()
    spec = network_spec(made)
    (pool,) = network["ipam"]["config"]
    assert (pool["subnet"], pool["gateway"]) == (str(spec.subnet), str(spec.gateway))
    assert network.get("internal", False) == spec.internal
    mtu = network.get("driver_opts", {}).get("com.docker.network.driver.mtu")
    assert mtu == (str(spec.mtu) if spec.mtu else None)
    assert {k: v for k, v in network["labels"].items() if k != labels.RUN} == spec.labels


def test_three_containers_differ_in_everything_that_a_task_can_get() -> None:
    specs = [spec for made in CLUSTERS.values() for spec in task_containers(made)]
    for name in (
        "cap_add",
        "cpus",
        "cpu_shares",
        "memory",
        "shm_size",
        "devices",
        "restarts",
        "mounts",
        "ulimits",
        "ports",
        "hidden",
        "env_file",
        "image_is_local",
    ):
        assert {bool(getattr(spec, name)) for spec in specs} == {True, False}, name


def test_every_text_is_unchanged() -> None:
    ps = next(spec for spec in task_containers(CLUSTERS["limits"]) if spec.hostname == "ps-1")
    assert NASTY.items() <= ps.variables.items()


@pytest.mark.parametrize("made", CLUSTERS.values(), ids=CLUSTERS)
def test_every_container_has_every_label(made: Cluster) -> None:
    known = {text for name, text in vars(labels).items() if name.isupper()}
    known -= {labels.RUN, labels.HELPER, labels.SIDECAR, labels.BOARD, labels.BOARD_OF}
    for spec in task_containers(made):
        assert spec.labels.keys() == known
        assert cluster_labels(made).items() <= spec.labels.items()


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


def test_a_hash_changes_with_every_value_but_not_with_a_default() -> None:
    made = cluster()
    assert plan_hash(made) == plan_hash(replace(made, mtu=None)) != plan_hash(replace(made, mtu=9))

    @dataclass(frozen=True)
    class Newer(Cluster):
        key: int = 0
        keys: tuple[int, ...] = field(default_factory=tuple)

    values = {one.name: getattr(made, one.name) for one in fields(made)}
    hashes = [plan_hash(Newer(**values, **more)) for more in ({}, {"key": 1}, {"keys": (1,)})]
    assert hashes[0] == plan_hash(made) and len(set(hashes)) == 3


def test_a_key_that_is_written_with_its_default_changes_no_file() -> None:
    assert render(cluster(share_gpus=False)) == render(cluster()) != render(cluster(retries=7))
