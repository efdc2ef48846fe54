"""Records of containers and events in the engine become values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit import labels
from cluster_kit.platforms.docker.docker_containers import (
    container_of,
    event_of,
    gpus_of,
    secrets_of,
)
from cluster_kit.platforms.engine import SIDECAR


def inspected(**state: Any) -> dict[str, Any]:
    """Returns worker-1 of `demo` as `docker inspect` shows it."""
    usual = {"Status": "running", "Running": True, "ExitCode": 0, "OOMKilled": False}
    return {
        "Id": "f" * 64,
        "Created": "2025-03-01T09:59:59.123456789Z",
        "State": {
            **usual,
            "StartedAt": "2025-03-01T10:00:00.5Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
            **state,
        },
        "Config": {
            "Labels": {
                labels.CLUSTER: "demo",
                labels.ROLE: "worker",
                labels.INDEX: "1",
                labels.LEADER: "false",
                labels.GPUS: "asked-for",
            }
        },
        "HostConfig": {"DeviceRequests": [{"DeviceIDs": ["3"]}, {"DeviceIDs": None}]},
        "NetworkSettings": {
            "Networks": {"cluster": {"IPAMConfig": {"IPv4Address": "172.28.0.101"}}}
        },
        "RestartCount": 2,
        "Mounts": [
            {"Destination": "/data", "Source": "/d"},
            {"Destination": "/output", "Source": "/o"},
        ],
    }


def test_a_sidecar_is_not_a_task() -> None:
    shown = inspected()
    shown["Config"]["Labels"] = {labels.CLUSTER: "demo", labels.SIDECAR: "cache"}
    found = container_of(shown)
    assert (found.name, found.role, found.leader, found.gpus) == ("cache", SIDECAR, False, ("3",))
    message = {"Action": "die", "timeNano": 1, "Actor": {"Attributes": {labels.SIDECAR: "cache"}}}
    assert event_of(message) is None


def test_a_running_container() -> None:
    found = container_of(inspected())
    assert (found.name, found.role, found.index, found.leader) == ("worker-1", "worker", 1, False)
    assert (found.ip, found.output, found.restarts) == ("172.28.0.101", "/o", 2)
    assert (found.state, found.exit_code) == ("running", None)
    assert (found.created, found.started) == (1740823199.123456, 1740823200.5)
    assert found.gpus == ("3",), "what the engine reserved, not what somebody asked for"


@pytest.mark.parametrize(
    ("state", "code"), [("exited", 137), ("created", None), ("restarting", 137), ("dead", 137)]
)
def test_only_an_ended_container_has_an_exit_code(state: str, code: int | None) -> None:
    running = state == "restarting"  # the engine's own value for it
    found = container_of(inspected(Status=state, Running=running, ExitCode=137))
    assert found.exit_code == code


def test_a_container_that_was_never_started_has_a_start_before_all_times() -> None:
    assert container_of(inspected(StartedAt="0001-01-01T00:00:00Z")).started < 0


def test_a_container_without_network_or_output() -> None:
    bare = inspected() | {"NetworkSettings": {"Networks": {"x": {"IPAMConfig": None}}}}
    bare |= {"Mounts": [], "HostConfig": {}}
    found = container_of(bare)
    assert (found.ip, found.output, found.gpus) == ("", "", ())


@pytest.mark.parametrize(
    ("starts_as", "becomes", "task"),
    [
        ("1000:1000", "", "1000:1000"),
        ("0:0", "1000:1000", "1000:1000"),
        ("", "1000:1000", "1000:1000"),
        ("1000:1000", "owner", "1000:1000"),
        ("", "", ""),
    ],
)
def test_the_user_of_a_task_is_the_one_it_switches_to(
    starts_as: str, becomes: str, task: str
) -> None:
    shown = inspected()
    variables = [f"CLUSTER_KIT_USER={becomes}"] if becomes else []
    shown["Config"] |= {"User": starts_as, "Env": variables}
    assert container_of(shown).user == task


def test_a_task_that_switches_to_the_outputs_owner_has_that_user(tmp_path: Path) -> None:
    shown = inspected()
    shown["Config"] |= {"User": "0:0", "Env": ["CLUSTER_KIT_USER=owner"]}
    shown["Mounts"] = [{"Destination": "/output", "Source": str(tmp_path)}]
    about = tmp_path.stat()
    assert container_of(shown).user == f"{about.st_uid}:{about.st_gid}"
    shown["Mounts"] = [{"Destination": "/output", "Source": "/on/another/machine"}]
    assert container_of(shown).user == "0:0"


def told(action: str, **attributes: str) -> dict[str, Any]:
    marks = {labels.ROLE: "ps", labels.INDEX: "0", **attributes}
    return {"Action": action, "timeNano": 1_500_000_000, "Actor": {"Attributes": marks}}


def test_an_event_has_its_task_its_time_and_its_exit_code() -> None:
    died = event_of(told("die", exitCode="137"))
    assert died is not None
    assert (died.time, died.action, died.task, died.exit_code) == (1.5, "die", "ps-0", 137)
    started = event_of(told("start"))
    assert started is not None and started.exit_code is None


def test_a_command_in_a_container_is_no_event_of_the_task() -> None:
    assert event_of(told("exec_start: sh")) is None


@pytest.mark.parametrize(
    ("host_config", "env", "ids"),
    [
        ({}, ["NVIDIA_VISIBLE_DEVICES=all"], ()),
        ({"DeviceRequests": [{"DeviceIDs": ["0", "GPU-a"], "Capabilities": [["gpu"]]}]}, [],
         ("0", "GPU-a")),
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=1"]}]}, [],
         ("nvidia.com/gpu=1",)),
        ({"DeviceRequests": [{"Count": -1, "Capabilities": [["gpu"]]}]}, [], ("all",)),
        ({"DeviceRequests": [{"Count": 2, "Capabilities": [["gpu", "compute"]]}]}, [], ("0", "1")),
        ({"DeviceRequests": [{"Count": -1, "Capabilities": [["tpu"]]}]}, [], ()),
        ({"Runtime": "nvidia"}, ["A=b", "NVIDIA_VISIBLE_DEVICES=0,2"], ("0", "2")),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=void"], ()),
        ({"Runtime": "nvidia", "DeviceRequests": None}, None, ()),
    ],
)  # fmt: skip
def test_gpus_of_any_container_however_it_was_started(
    host_config: dict[str, Any], env: list[str] | None, ids: tuple[str, ...]
) -> None:
    assert gpus_of({"HostConfig": host_config, "Config": {"Env": env}}) == ids


@pytest.mark.parametrize("index", ["x", "", "-1", "9" * 5000, "\u0663"])
def test_labels_of_an_image_are_no_error_and_make_no_task(index: str) -> None:
    shown = inspected()
    shown["Config"]["Labels"] |= {labels.INDEX: index}
    assert container_of(shown).index == 0
    shown["Config"]["Labels"] |= {labels.SIDECAR: "cache", labels.LEADER: "true"}
    found = container_of(shown)
    assert (found.name, found.role, found.leader) == ("cache", SIDECAR, False)
    shown["Config"]["Labels"] = {labels.CLUSTER: "demo"}
    assert container_of(shown).role == SIDECAR


def test_options_and_passwords_in_addresses_count_as_secrets() -> None:
    address = "DB=postgres://me:pa55w0rd@db,postgres://postgres:postgres@db"
    config = {
        "Env": ["API_TOKEN=a-token", address, "OPEN=plain"],
        "Entrypoint": ["web", "--auth-token=b-token"],
        "Cmd": ["--password", "c-word"],
    }
    found = ("a-token", "b-token", "c-word", "pa55w0rd", "postgres:postgres@")
    assert secrets_of({"Config": config}) == found
