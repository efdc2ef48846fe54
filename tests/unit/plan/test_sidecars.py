"""Sidecars of a manifest: found on this host, planned, moved into a portable file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import ManifestError
from cluster_kit.plan.portable import check_portable, everywhere, moved
from cluster_kit.platforms.platform import load, plan
from cluster_kit.programs.resolve import resolve
from cluster_kit.resolved import Mount, Port
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


def test_what_is_written_is_what_is_planned(tmp_path: Path) -> None:
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
