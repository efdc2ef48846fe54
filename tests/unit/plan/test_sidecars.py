"""Sidecars of a manifest: found on this host, planned, and written into a portable file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cluster_kit.errors import ManifestError
from cluster_kit.manifest.field_types import ready
from cluster_kit.plan.portable import check_portable, everywhere, moved
from cluster_kit.platforms.platform import load, plan, platform_of
from cluster_kit.platforms.variables import shared_variables
from cluster_kit.programs.resolve import resolve
from cluster_kit.resolved import Mount, Port, Ready
from tests.make import OWN, cluster, host, manifest

TEXT = """
format = 1
name = "demo"

[sidecar.board]
image = "board:1"
command = ["--port", "80"]
environment = { B = "2", A = "1" }
secrets = ["S", "S"]
ports = ["8080:80"]
required = true

[[sidecar.board.mount]]
source = "shown"
target = "/shown"
"""


def test_sidecars_are_planned_as_written(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    (file := tmp_path / "demo.toml").write_text(TEXT)
    read = load(file)
    made = plan(read, resolve(read.manifest, tmp_path), host(), OWN)
    (one,) = made.sidecars
    assert (one.name, one.image, one.entrypoint, one.command) == (
        "board", "board:1", None, ("--port", "80"),
    )  # fmt: skip
    assert (one.environment, one.secrets) == ((("A", "1"), ("B", "2")), ("S",))
    assert one.mounts == (Mount(str(tmp_path / "shown"), "/shown", True),)
    assert (one.ports, one.required, one.user) == ((Port(8080, 80),), True, "")
    assert made.ports == (("board", Port(8080, 80)),)
    assert dict(made.origin.host)["folder"] != "any", "its mounts are of this host"
    there = moved(made, tmp_path / "compose" / "demo", tmp_path, everywhere(read))
    assert there.sidecars[0].mounts == (Mount("../../shown", "/shown", True),)


def test_a_portable_file_has_no_secret_of_a_sidecar_in_clear() -> None:
    written = manifest(sidecar={"board": {"image": "b", "environment": {"API_TOKEN": "x"}}})
    (problem,) = check_portable(written)
    assert problem.key_path == "sidecar.board.environment.API_TOKEN"


def test_nine_are_refused_and_eight_are_planned() -> None:
    eight = {f"s{number}": {"image": "b"} for number in range(8)}
    assert len(cluster(sidecar=eight).sidecars) == 8
    with pytest.raises(ManifestError):
        cluster(sidecar={**eight, "more": {"image": "b"}})


READY: list[tuple[object, Ready]] = [
    (6379, Ready(6379)),
    ("http://:8080/health?full=1", Ready(8080, "/health?full=1")),
    ("http://:80", Ready(80, "/")),
    (["redis-cli", "ping"], Ready(command=("redis-cli", "ping"))),
]


@pytest.mark.parametrize(("written", "meant"), READY)
def test_programs_wait_for_a_sidecar_with_a_readiness_check(written: object, meant: Ready) -> None:
    planned = cluster(
        sidecar={"cache": {"image": "redis:7", "ready": written}, "b": {"image": "b"}}
    )
    assert [one.ready for one in planned.sidecars] == [meant, None]
    waits = json.loads(shared_variables(planned).get("CLUSTER_KIT_WAITS_FOR", "[]"))
    host = str(planned.sidecars[0].ip)
    asked = {"name": "cache", "host": host, "port": meant.port, "path": meant.path}
    assert waits == ([asked] if meant.port else [])
    compose = yaml.safe_load(platform_of("compose").render(planned))["services"]
    check = compose["cache"].get("healthcheck", {})
    assert check.get("test") == (["CMD", *meant.command] if meant.command else None)
    condition = {"condition": "service_healthy"}
    started = {"cache": condition, "b": {"condition": "service_started"}}
    assert compose["chief-0"]["depends_on"] == (started if meant.command else ["cache", "b"])


@pytest.mark.parametrize("written", [0, 65536, True, 1.5, "8080", "http://other:80/", [], [1], ""])
def test_an_invalid_check_is_reported_with_the_valid_forms(written: object) -> None:
    with pytest.raises(ValueError, match="http://:PORT/PATH"):
        ready(written)


def test_a_problem_is_reported_at_its_key(tmp_path: Path) -> None:
    (file := tmp_path / "demo.toml").write_text(f"{TEXT}\n[sidecar.cache]\nready = 0\n")
    (problem,) = load(file).problems
    assert problem.key_path == "sidecar.cache.ready"
