"""`render --portable`: which images Compose builds after the folder was copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_kit.image.base_image import REGISTRY_BASE
from cluster_kit.run import prepare
from tests.unit.cli.rendering import PORTABLE, manifest, stale
from tests.unit.command_line import Cli


def test_compose_builds_the_image_if_its_source_exists(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = cli("render", "demo", "--portable", "--dry-run").out
    assert "build:" not in without
    assert "`cluster-kit image build --variant cpu` builds it" in without
    monkeypatch.setattr(prepare, "SOURCE", root.resolve() / "images/trainer")
    text = cli("render", "demo", "--portable", "--dry-run").out
    services = yaml.safe_load(text)["services"]
    assert [name for name, service in services.items() if "build" in service] == ["chief-0"]
    build: dict[str, Any] = services["chief-0"]["build"]
    assert build["context"] == "../../images/trainer"
    assert build["dockerfile"] == "recipe/Dockerfile"
    inputs = services["chief-0"]["image"].rpartition("-")[2]
    assert build["args"] == {
        "BASE": f"${{CLUSTER_KIT_BASE:-{REGISTRY_BASE}}}", "INPUTS": inputs, "VARIANT": "cpu"
    }  # fmt: skip
    monkeypatch.setattr(prepare, "CLONE", None)
    installed = cli("render", "demo", "--portable", "--dry-run").out
    assert "build:" not in installed, "a wheel in .venv is not copied with the folder"
    monkeypatch.setattr(prepare, "CLONE", root)
    (root / "more.txt").write_text("left-pad==1.0\n")
    extra = cli("render", "demo", "--portable", "--dry-run", "--requirements", "more.txt").out
    assert "build:" not in extra
    assert "`cluster-kit image build compose/demo` builds it" in extra


def test_compose_builds_a_dockerfile_elsewhere(cli: Cli, root: Path) -> None:
    manifest(root, 'build = "../image"\n')
    (root / "image").mkdir()
    (root / "image/Dockerfile").write_text("FROM cluster-kit/trainer:cpu-0\n")
    assert cli("render", "demo", "--portable").code == 0
    text = (root / PORTABLE).read_text()
    file = yaml.safe_load(text)
    first = next(iter(file["services"].values()))
    network = "${CLUSTER_KIT_BUILD_NETWORK:-default}"
    built = {"context": "../../image", "dockerfile": "Dockerfile", "network": network}
    assert first["build"] == built
    assert file["x-task"]["image"].startswith("cluster-kit/built:")
    assert file["x-task"]["entrypoint"] == ["python3", "-P", "-m", "trainer"]  # not its own
    (root / "image/Dockerfile").write_text("FROM cluster-kit/trainer:cpu-1\n")
    assert stale(cli, "--portable") == "the manifest or a file of its image has changed"


def test_a_dockerfile_outside_of_the_folder_is_refused(
    cli: Cli, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("image")
    (outside / "Dockerfile").write_text("FROM a\n")
    manifest(root, f'build = "{outside}"\n')
    result = cli("render", "demo", "--portable")
    assert result.code == 2 and f"{outside} is outside of" in result.err
