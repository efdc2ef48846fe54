"""Names of clusters that CI starts: jobs on one engine do not use the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.manifest.field_types import NAME
from tests.ci.steps import Runner
from tests.make import ROOT

pytestmark = pytest.mark.processes


def words(tmp_path: Path, manifest: str, **given: str) -> list[str]:
    """Returns the words that the action passes to `up` for these inputs."""
    kit, folder = tmp_path / "kit", tmp_path / "cluster-kit.aB3xYz"
    kit.write_text("#!/bin/sh\n")
    kit.chmod(0o755)
    folder.mkdir(exist_ok=True)
    names = ("program", "args", "workers", "ps", "data", "requirements", "name", "set")
    inputs = {"working-directory": str(tmp_path), "manifest": manifest}
    inputs |= dict.fromkeys(names, "") | given
    steps = {"kit": {"outputs": {"kit": str(kit), "folder": str(folder)}}}
    runner = Runner(tmp_path, tmp_path, {}, {})
    assert runner.some(ROOT, ["Name the image"], inputs=inputs, steps=steps), runner.said
    return (folder / "words").read_text().rstrip("\0").split("\0")


@pytest.mark.parametrize(
    ("manifest", "name"),
    [
        ("smoke", "smoke-ab3xyz"),
        ("compose/My_Cluster.toml", "my-cluster-ab3xyz"),
        ("x/" + "a-" * 30 + ".toml", "a-" * 13 + "a-ab3xyz"),
        ("_", "cluster-ab3xyz"),
    ],
)
def test_a_cluster_in_github_ci_has_a_unique_name(tmp_path: Path, manifest: str, name: str) -> None:
    assert words(tmp_path, manifest) == [manifest, f"--name={name}"]
    assert NAME.fullmatch(name)


def test_a_name_in_the_inputs_is_used(tmp_path: Path) -> None:
    assert words(tmp_path, "smoke", name="mine") == ["smoke", "--name=mine"]
    named = words(tmp_path, "smoke", set="gpus='none'\n name = 'other'")
    assert named == ["smoke", "--set=gpus='none'", "--set= name = 'other'"]
