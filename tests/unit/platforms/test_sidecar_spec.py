"""What a sidecar's container gets, and which part of it is in the Compose file."""

from __future__ import annotations

import pytest

from cluster_kit import labels
from cluster_kit.platforms.compose import compose_file
from cluster_kit.platforms.compose.compose_file import render, render_hidden
from cluster_kit.platforms.container import (
    Container,
    plan_hash,
    sidecar_containers,
    task_containers,
)
from cluster_kit.platforms.variables import without_secrets
from tests.make import cluster, host, parse_compose
from tests.unit.platforms.test_container_spec import NASTY
from tests.unit.platforms.test_every_field import changes

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


def test_every_field_is_rendered(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    before = render(MADE) + render_hidden(MADE)
    for field, change in changes(Container).items():
        with subtests.test(field=field), monkeypatch.context() as patch:
            changed = tuple(map(change, sidecar_containers(MADE)))
            patch.setattr(compose_file, "sidecar_containers", lambda made, changed=changed: changed)
            assert render(MADE) + render_hidden(MADE) != before


@pytest.mark.parametrize("spec", sidecar_containers(MADE), ids=lambda spec: spec.hostname)
def test_the_values_are_in_the_compose_file(spec: Container) -> None:
    service = parse_compose(render(MADE))["services"][spec.hostname]
    hidden = parse_compose(render_hidden(MADE))["services"].get(spec.hostname, {})
    assert hidden.get("environment", {}) == spec.hidden
    wanted = {"file": "secrets.yaml", "service": spec.hostname} if hidden else None
    assert service.get("extends") == wanted
    assert service["attach"] is False, "else `docker compose up` would never end"
    assert all(not volume["bind"]["create_host_path"] for volume in service.get("volumes", []))


def test_sidecars_start_before_the_tasks_and_are_distinguished_from_them() -> None:
    services = parse_compose(render(MADE))["services"]
    for task in task_containers(MADE):
        assert services[task.hostname]["depends_on"] == ["cache", "files", "plain"]
    for spec in sidecar_containers(MADE):
        assert "depends_on" not in services[spec.hostname]
        assert spec.labels[labels.SIDECAR] == spec.hostname and labels.ROLE not in spec.labels
        assert spec.labels[labels.PLAN] == plan_hash(MADE)
    assert "depends_on" not in render(cluster())


def test_a_sidecar_with_the_tasks_image_runs_like_a_task() -> None:
    cache, files, plain = sidecar_containers(MADE)
    assert (files.image, files.image_is_local, files.user) == (MADE.image, True, "1000:1000")
    assert (files.entrypoint, files.init) == (("python3", "-m", "http.server"), True)
    assert files.command == ()
    assert (files.cap_drop, files.read_only, list(files.tmpfs)) == (("ALL",), True, ["/tmp"])
    assert (cache.cap_drop, cache.read_only, cache.tmpfs) == ((), False, {})
    assert (cache.image, cache.image_is_local, cache.user) == ("redis:7", False, "")
    assert (plain.entrypoint, plain.command, plain.init) == (None, (), False)
    named = cluster(sidecar={"files": {"image": "trainer", "entrypoint": ["ls"]}}).sidecars[0]
    assert (named.image, named.entrypoint) == (MADE.image, ("ls",))


def test_a_portable_file_has_the_user_of_a_sidecar() -> None:
    made = cluster(host(user="owner"), sidecar={"files": {"command": ["ls"]}})
    service = parse_compose(render(made))["services"]["files"]
    assert service["user"] == "${UID:-0}:${GID:-${UID:-0}}"


def test_secrets_are_in_no_file_that_others_can_read() -> None:
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
