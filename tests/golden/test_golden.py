"""The exact bytes of the compose files that these manifests, and those in compose/, mean."""

from __future__ import annotations

import difflib
import hashlib
import os
from pathlib import Path

import pytest

from cluster_kit.backends.compose.render import render
from cluster_kit.manifest.load import load
from cluster_kit.plan.plan import plan
from tests.make import OWN, ROOT, gpus, host, inputs

HERE = Path(__file__).parent
MANIFESTS = sorted(HERE.glob("*.toml")) + sorted((ROOT / "compose").glob("*.toml"))
REPAIR = "UPDATE_GOLDEN=1 .venv/bin/pytest tests/golden"
WHOLE = 100_000
"""Characters up to which a file is kept whole; of longer ones the head and a hash."""

CPU_HOST = host()
GPU_HOST = host(gpus=gpus(8))


def rendered(path: Path) -> str:
    facts = CPU_HOST if "cpu-host" in path.stem else GPU_HOST
    read = load(path)
    return render(plan(read, inputs(read.manifest), facts, OWN))


def kept(text: str) -> str:
    if len(text) <= WHOLE:
        return text
    head = [line if len(line) <= 120 else line[:117] + "..." for line in text.splitlines()[:60]]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "\n".join([*head, f"# ... {text.count(chr(10))} lines in all, sha256 {digest}", ""])


def golden(path: Path) -> Path:
    prefix = "" if path.parent == HERE else "compose-"
    return HERE / f"{prefix}{path.stem}.compose.yaml"


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: golden(path).stem)
def test_a_manifest_still_means_the_same_bytes(path: Path) -> None:
    text, file = kept(rendered(path)), golden(path)
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


def test_there_are_ten_golden_files_at_least() -> None:
    assert len(MANIFESTS) >= 10


def test_every_golden_file_has_its_manifest() -> None:
    assert {file.name for file in HERE.glob("*.compose.yaml")} == {
        golden(path).name for path in MANIFESTS
    }, f"remove the ones left over, or add the missing ones: {REPAIR}"
