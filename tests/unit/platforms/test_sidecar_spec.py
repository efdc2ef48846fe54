"""Sidecars are the same for every platform: Compose's file and `docker run` say the same."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import pytest

from cluster_kit import labels
from cluster_kit.platforms.compose.compose_file import render, render_hidden
from cluster_kit.platforms.container import SidecarSpec, container_specs, plan_hash, sidecar_specs
from cluster_kit.platforms.variables import without_secrets
from tests.make import cluster, host, parse_compose
from tests.unit.platforms.docker_run import docker_run_sidecar
from tests.unit.platforms.said import Reading, options
from tests.unit.platforms.test_container_spec import NASTY

WHOLE = {
    "image": "redis:7",
    "entrypoint": ["sh", "-c"],
    "command": ["redis-server --save '' $5"],
    "environment": {**NASTY, "API_TOKEN": "of its own"},
    "secrets": ["KEPT"],
    "mount": [
        {"source": "a", "target": "/a"},
        {"source": "b", "target": "/b", "read_only": False},
    ],
    "ports": [6379, "8080:80"],
    "required": True,
}
MADE = cluster(
    sidecar={"cache": WHOLE, "files": {"command": ["python3", "-m", "http.server"]},
             "plain": {"image": "nginx"}}
)  # fmt: skip


def said_by_docker_run(words: list[str]) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for name, value in options(words):
        found.setdefault(name, []).append(value)
    rest = words[3 + sum(len(values) for values in found.values()) :]
    env = found.get("--env", [])
    return {
        "entrypoint": found.get("--entrypoint"),
        "rest": rest,
        "container_name": found["--name"],
        "hostname": found["--hostname"],
        "user": found.get("--user"),
        "pull_policy": found["--pull"],
        "restart": found["--restart"],
        "stop_grace_period": [f"{text}s" for text in found["--stop-timeout"]],
        "ip": found["--ip"],
        "init": "--init" in found,
        "security_opt": found["--security-opt"],
        "cap_drop": found.get("--cap-drop"),
        "read_only": "--read-only" in found,
        "tmpfs": found.get("--tmpfs"),
        "pids_limit": [int(text) for text in found["--pids-limit"]],
        "logging": [found["--log-driver"][0], *found["--log-opt"]],
        "volumes": found.get("--volume", []),
        "environment": dict(text.split("=", 1) for text in env if "=" in text),
        "from outside": sorted(text for text in env if "=" not in text),
        "labels": dict(text.split("=", 1) for text in found["--label"]),
        "ports": found.get("--publish", []),
    }


def said_by_compose(service: dict[str, Any], hidden: list[str]) -> dict[str, Any]:
    entrypoint, environment = service.get("entrypoint"), service.get("environment", {})
    volumes = [
        f"{v['source']}:{v['target']}{':ro' if v['read_only'] else ''}"
        for v in service.get("volumes", [])
    ]
    assert all(not v["bind"]["create_host_path"] for v in service.get("volumes", []))
    assert service["attach"] is False, "else `docker compose up` would never end"
    return {
        "entrypoint": None if entrypoint is None else entrypoint[:1],
        "rest": [service["image"], *(entrypoint or [])[1:], *service.get("command", [])],
        **{key: [service[key]] for key in ("container_name", "hostname")},
        "user": [service["user"]] if "user" in service else None,
        **{key: [service[key]] for key in ("pull_policy", "restart", "stop_grace_period")},
        "ip": [service["networks"]["cluster"]["ipv4_address"]],
        "init": service["init"],
        "security_opt": service["security_opt"],
        "cap_drop": service.get("cap_drop"),
        "read_only": service.get("read_only", False),
        "tmpfs": service.get("tmpfs"),
        "pids_limit": [service["pids_limit"]],
        "logging": [
            service["logging"]["driver"],
            *(f"{name}={text}" for name, text in service["logging"]["options"].items()),
        ],
        "volumes": volumes,
        "environment": {k: v for k, v in environment.items() if v is not None},
        "from outside": sorted([k for k, v in environment.items() if v is None] + hidden),
        "labels": {k: v for k, v in service["labels"].items() if k != labels.RUN},
        "ports": service.get("ports", []),
    }


@pytest.mark.parametrize("spec", sidecar_specs(MADE), ids=lambda spec: spec.hostname)
def test_docker_run_and_compose_say_the_same_of_every_sidecar(spec: SidecarSpec) -> None:
    service = parse_compose(render(MADE))["services"][spec.hostname]
    beside = parse_compose(render_hidden(MADE))["services"]
    hidden = beside.get(spec.hostname, {}).get("environment", {})
    assert hidden == spec.hidden
    wanted = {"file": "secrets.yaml", "service": spec.hostname} if hidden else None
    assert service.get("extends") == wanted
    words = docker_run_sidecar(spec, f"{MADE.project}_cluster")
    assert said_by_docker_run(words) == said_by_compose(service, list(hidden))


def test_no_field_is_forgotten() -> None:
    whole = Reading(sidecar_specs(MADE)[0])
    docker_run_sidecar(cast(SidecarSpec, whole), "network")
    assert whole.read == {field.name for field in fields(SidecarSpec)}


def test_they_start_before_the_tasks_and_are_told_apart_from_them() -> None:
    services = parse_compose(render(MADE))["services"]
    for task in container_specs(MADE):
        assert services[task.hostname]["depends_on"] == ["cache", "files", "plain"]
    for spec in sidecar_specs(MADE):
        assert "depends_on" not in services[spec.hostname]
        assert spec.labels[labels.SIDECAR] == spec.hostname and labels.ROLE not in spec.labels
        assert spec.labels[labels.PLAN] == plan_hash(MADE)
    assert "depends_on" not in render(cluster())


def test_who_runs_the_image_of_the_tasks_runs_as_they_do() -> None:
    cache, files, plain = sidecar_specs(MADE)
    assert (files.image, files.image_is_local, files.user) == (MADE.image, True, "1000:1000")
    assert (files.entrypoint, files.init) == (("python3", "-m", "http.server"), True)
    assert files.command == ()
    assert (files.cap_drop, files.read_only, list(files.tmpfs)) == (("ALL",), True, ["/tmp"])
    assert (cache.cap_drop, cache.read_only, cache.tmpfs) == ((), False, {})
    assert (cache.image, cache.image_is_local, cache.user) == ("redis:7", False, "")
    assert (plain.entrypoint, plain.command, plain.init) == (None, (), False)
    named = cluster(sidecar={"files": {"image": "trainer", "entrypoint": ["ls"]}}).sidecars[0]
    assert (named.image, named.entrypoint) == (MADE.image, ("ls",))


def test_a_portable_file_names_whoever_runs_it() -> None:
    made = cluster(host(user="owner"), sidecar={"files": {"command": ["ls"]}})
    service = parse_compose(render(made))["services"]["files"]
    assert service["user"] == "${UID:-0}:${GID:-${UID:-0}}"


def test_secrets_are_in_no_file_that_others_read() -> None:
    assert "of its own" not in render(MADE) and "of its own" in render_hidden(MADE)
    other = {**WHOLE, "environment": {"API_TOKEN": "another"}}
    one, two = (cluster(sidecar={"cache": {**other, "environment": {"API_TOKEN": text}}})
                for text in ("one", "two"))  # fmt: skip
    assert plan_hash(one) == plan_hash(two)
    assert "another" not in str(without_secrets(cluster(sidecar={"cache": other})))
    assert MADE.from_caller == ("KEPT",)


def test_the_header_says_what_plain_compose_does_not_do() -> None:
    told = render(MADE).partition("name:")[0]
    assert "does not end the sidecars" in told and "(cache, files, plain)" in told
    assert "sidecars" not in render(cluster()).partition("name:")[0]
