"""`image tag` prints the name of a manifest's image, requirements included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.cli import provision
from cluster_kit.image.kit_image import image_tag
from tests.unit.command_line import Cli


@pytest.fixture(autouse=True)
def without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "image_present", lambda *_: False)


def test_the_tag_is_that_of_the_kits_or_the_manifests_image(cli: Cli, root: Path) -> None:
    assert cli("image", "tag", "demo").out == f"{image_tag('cpu')}\n"
    (root / "train.py").write_text("print(1)\n")
    (root / "requirements.txt").write_text("tqdm\n")
    given = ("--program", "train.py", "--requirements", "requirements.txt")
    result = cli("image", "tag", "demo", *given, "--json")
    facts = json.loads(result.out)
    assert facts["image"].startswith(f"{image_tag('cpu')}-") and facts["present"] is False


def test_an_invalid_manifest_has_no_tag(cli: Cli) -> None:
    result = cli("image", "tag", "demo", "--workers", "0")
    assert (result.code, result.out) == (2, "") and "--workers" in result.err


def test_a_variant_beside_a_manifest_is_refused_since_its_gpus_decide(cli: Cli, root: Path) -> None:
    result = cli("image", "build", "demo", "--variant", "gpu")
    assert (result.code, result.out) == (2, "")
    assert "--variant gpu with the manifest demo" in result.err and "→" in result.err


def test_the_tag_of_a_built_image_includes_the_registry(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'format = 1\nname = "demo"\nengine = "kubernetes"\n'
    (root / "compose" / "demo.toml").write_text(f'{text}kubernetes.registry = "ghcr.io/me"\n')
    built, named = [], []
    monkeypatch.setattr(provision.user_image, "build_dockerfile", lambda *_: False)
    monkeypatch.setattr(
        provision.user_image,
        "build_layer",
        lambda _host, cluster, *_, **_named: bool(built.append(cluster.image)),
    )
    monkeypatch.setattr(
        provision, "tag_image", lambda _host, image, name: named.append((image, name))
    )
    monkeypatch.setattr(provision, "image_size", lambda *_: 10**9)
    own = image_tag("cpu")
    result = cli("image", "build", "demo")
    assert (result.code, built, named) == (0, [own], [(own, f"ghcr.io/me/{own}")])
    assert f"ghcr.io/me/{own}: up to date" in result.err
