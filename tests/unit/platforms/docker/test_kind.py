"""The kind of engine, from its own description and its address."""

from __future__ import annotations

import os
from typing import Any

import pytest

from cluster_kit.facts import EngineKind
from cluster_kit.platforms.docker.docker_connection import caller, engine_kind

ROOTLESS = {
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
    "CpuCfsQuota": False,
    "MemoryLimit": False,
    "Architecture": "x86_64",
}


@pytest.mark.parametrize(
    ("point", "outside"),
    [("/run/docker.sock", True), ("/var/run/docker-host.sock", True),
     ("/run/podman/podman.sock", True), ("/var/lib/docker", False), ("/run/other.sock", False)],
)  # fmt: skip
def test_an_engine_whose_socket_is_mounted_is_outside(point: str, outside: bool) -> None:
    mounts = f"36 35 98:0 /run {point} rw,noatime master:1 - ext4 /dev/root rw\n\n"
    assert engine_kind({}, "", mounts).outside == outside


def test_a_rootless_engine_is_recognized_and_its_root_is_the_caller() -> None:
    kind = engine_kind(ROOTLESS, "unix:///run/user/1000/docker.sock")
    assert kind.rootless and not kind.remote and kind.unlimited == ("cpus", "memory")
    assert caller(kind) == "0:0"
    assert caller(EngineKind()) == f"{os.getuid()}:{os.getgid()}"


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"SecurityOptions": None},
        {"SecurityOptions": ["name=seccomp,profile=rootless"], "MemoryLimit": True},
    ],
)
def test_the_usual_engine_has_no_differences(info: dict[str, Any]) -> None:
    assert engine_kind(info, "") == EngineKind()


def test_podman_is_recognized_by_its_version() -> None:
    assert engine_kind({"BuildahVersion": "1.28.2", "Rootless": False}, "") == EngineKind(
        podman=True
    )
    assert engine_kind({"BuildahVersion": "1.28.2", "Rootless": True}, "").rootless


def test_docker_desktop_is_recognized_by_its_name() -> None:
    assert engine_kind({"OperatingSystem": "Docker Desktop"}, "").desktop


@pytest.mark.parametrize(
    ("address", "remote"),
    [
        ("", ""),
        ("unix:///var/run/docker.sock", ""),
        ("npipe:////./pipe/docker_engine", ""),
        ("tcp://127.0.0.1:2375", ""),
        ("tcp://[::1]:2375", ""),
        ("tcp://10.0.0.7:2376", "tcp://10.0.0.7"),
        ("ssh://me@build.example", "ssh://build.example"),
        ("ssh://me@localhost", "ssh://localhost"),
    ],
)
def test_an_engine_on_another_machine_is_recognized_by_its_address(
    address: str, remote: str
) -> None:
    assert engine_kind({}, address).remote == remote
