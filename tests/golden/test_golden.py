"""The exact bytes of the files of eleven different manifests.

The effect of single keys is tested in test_keys and test_own_manifests.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.plan.portable import moved, neutral
from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.platforms.platform import load, plan, platform_of
from cluster_kit.platforms.rendered_file import Build
from tests.make import OWN, ROOT, gpus, host, inputs

HERE = Path(__file__).parent
MANIFESTS = [*sorted(HERE.glob("*.toml")), ROOT / "compose" / "quickstart.toml"]
REPAIR = "UPDATE_GOLDEN=1 .venv/bin/pytest tests/golden"
HOST = host(gpus=gpus(8))


def golden(path: Path) -> Path:
    return HERE / f"{path.stem}.{platform_of(load(path).manifest.engine).file_name}"


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_manifest_still_gives_the_same_bytes(path: Path) -> None:
    compared(golden(path), rendered_anew(path))


def rendered_anew(path: Path) -> str:
    """Returns the file of a manifest, rendered as for a user's own manifest."""
    read = load(path)
    read = replace(read, path=Path("/home/you/project/compose") / path.name)
    starter = platform_of(read.manifest.engine)
    return starter.render(plan(read, inputs(read.manifest), HOST, OWN))


def compared(file: Path, text: str) -> None:
    """Fail with the differences; write the file if that is requested."""
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
        pytest.skip(f"{file.name} is written anew")
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    if old == text:
        return
    lines = difflib.unified_diff(
        old.splitlines(), text.splitlines(), file.name, "rendered now", lineterm="", n=2
    )
    diff = "\n".join(list(lines)[:200])
    pytest.fail(f"{diff}\n\nIf that is meant, update it:\n    {REPAIR}", pytrace=False)


PORTABLE = HERE / "portable.compose.yaml"


def test_a_portable_file_still_has_the_same_bytes() -> None:
    """The quickstart in a clone of the kit, with a program and data from the same clone."""
    read = load(ROOT / "compose" / "quickstart.toml", {"program": "train.py", "data": "mine"})
    made = plan(read, inputs(read.manifest), neutral(read.manifest), OWN)
    root, folder = Path("/home/you"), Path("/home/you/portable/quickstart")
    build = Build(
        context="../../images/trainer",
        dockerfile="recipe/Dockerfile",
        arguments={"BASE": "python:3.11-slim", "INPUTS": "0123456789ab", "VARIANT": "cpu"},
    )
    compared(PORTABLE, render(moved(made, folder, root, frozenset()), build))


def test_every_golden_file_has_its_manifest() -> None:
    files = {file.name for file in HERE.iterdir() if file.suffix not in ("", ".py", ".toml")}
    assert files == {
        PORTABLE.name,
        *(golden(path).name for path in MANIFESTS),
    }, f"remove the ones left over, or add the missing ones: {REPAIR}"
