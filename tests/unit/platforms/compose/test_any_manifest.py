"""A random valid manifest renders to YAML with exactly its values for each task."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from typing import Any

from hypothesis import given

from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.resolved import Cluster, Task
from tests.make import cluster, gpus, host, manifest, parse_compose
from tests.unit.manifests import HOST_GPUS, manifests

HOST = host(gpus=gpus(HOST_GPUS))
TRAINING = ("chief", "worker", "ps")


def planned(keys: dict[str, Any]) -> tuple[Cluster, dict[str, Any]]:
    """Returns the cluster of a manifest with these keys, and its services as Compose reads them."""
    made = cluster(HOST, **keys)
    parsed = parse_compose(render(made))
    assert list(parsed["services"]) == [task.name for task in made.tasks]
    return made, parsed["services"]


def wanted(keys: dict[str, Any], task: Task, key: str) -> Any:
    """Returns the manifest's value for one task: of its own table, else of its role."""
    of_role = keys["role"].get(task.role, {}).get(key)
    return keys["task"].get(task.name, {}).get(key, of_role)


@given(manifests())
def test_every_task_has_a_unique_address_in_the_subnet(keys: dict[str, Any]) -> None:
    made, services = planned(keys)
    ips = {
        name: IPv4Address(service["networks"]["cluster"]["ipv4_address"])
        for name, service in services.items()
    }
    assert len(set(ips.values())) == len(ips) == len(made.tasks)
    assert all(ip in made.subnet for ip in ips.values())
    ends = {made.subnet.network_address, made.subnet.broadcast_address, made.gateway}
    assert not ends & set(ips.values())
    pinned = {name: table["ip"] for name, table in keys["task"].items() if "ip" in table}
    assert pinned.items() <= {name: str(ip) for name, ip in ips.items()}.items()


@given(manifests())
def test_tf_config_is_the_cluster_and_the_evaluator_is_never_in_it(
    keys: dict[str, Any],
) -> None:
    made, services = planned(keys)
    port, by_name = keys.get("port", 2222), keys.get("addressing") == "name"

    def address(name: str) -> str:
        ip = services[name]["networks"]["cluster"]["ipv4_address"]
        return f"{name if by_name else ip}:{port}"

    jobs = {"chief": keys.get("chief_job", "chief")}
    training = {
        jobs.get(role, role): [address(f"{role}-{index}") for index in range(keys[role])]
        for role in TRAINING
        if keys[role]
    }
    workers = [address(f"data_worker-{index}") for index in range(keys["data_worker"])]
    for task in made.tasks:
        config = json.loads(services[task.name]["environment"]["TF_CONFIG"])
        spec = training
        if task.role == "evaluator":
            spec = {"evaluator": [address(task.name)]}
        elif task.feeds:
            spec = {"data_dispatcher": [address("data_dispatcher-0")], "data_worker": workers}
        assert config["cluster"] == spec
        job = jobs.get(task.role, task.role)
        assert config["task"] == {"type": job, "index": task.index}


@given(manifests())
def test_environment_command_and_limits_equal_the_manifests(keys: dict[str, Any]) -> None:
    made, services = planned(keys)
    program = "/program/train.py" if keys.get("program") == "train.py" else "classifier"
    exempt = next(iter(services.values()))["environment"]["NO_PROXY"]
    serving = set(services["worker-0"]["environment"]["CLUSTER_KIT_SERVERS"].split(","))
    for task in made.tasks:
        service = services[task.name]
        own = keys["role"].get(task.role, {}).get("environment", {})
        own = own | keys["task"].get(task.name, {}).get("environment", {})
        found = {name: service["environment"][name] for name in own}
        if "no_proxy" in own:
            found["no_proxy"] = found["no_proxy"].removesuffix(f",{exempt}")
        assert found == own
        values = {
            "{{ role }}": keys.get("chief_job", "chief") if task.role == "chief" else task.role,
            "{{ index }}": str(task.index),
            "{{ name }}": task.name,
            "{{ ip }}": service["networks"]["cluster"]["ipv4_address"],
            "{{ port }}": str(keys.get("port", 2222)),
        }
        arguments = [_filled(argument, values) for argument in keys.get("args", [])]
        runs = ["run", program, *arguments]
        if task.feeds:
            assert service["command"] == ["data-service"]
        else:
            assert service["command"] == (["serve"] if task.name in serving else runs)
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        cpus, memory = wanted(keys, task, "cpus"), wanted(keys, task, "memory")
        assert ("cpus" in limits) == (cpus is not None)
        assert cpus is None or abs(float(limits["cpus"]) - cpus) <= 1e-9 * cpus
        assert limits.get("memory") == (None if memory is None else f"{memory}b")
        shaped = wanted(keys, task, "bandwidth") is not None
        assert (service["user"] == "0:0") == ("cap_add" in service) == shaped


def _filled(argument: str, values: dict[str, str]) -> str:
    for hole, value in values.items():
        argument = argument.replace(hole, value)
    return argument


@given(manifests())
def test_the_order_of_tables_does_not_change_the_bytes(
    keys: dict[str, Any],
) -> None:
    text = render(cluster(HOST, **keys))
    turned = dict(reversed([(key, _turned(value)) for key, value in keys.items()]))
    assert manifest(**turned) == manifest(**keys)
    assert render(cluster(HOST, **turned)) == text


def _turned(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return dict(reversed([(key, _turned(inner)) for key, inner in value.items()]))
