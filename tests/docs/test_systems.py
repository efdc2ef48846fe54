"""README's table of systems has every manifest in compose/, with its tasks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster_kit.manifest.schema import Manifest
from cluster_kit.platforms.platform import load
from tests.docs.markdown import README, all_pages
from tests.make import MANIFESTS

ROW = re.compile(r"^\| `([a-z-]+)` \| [^|]+ \| ([^|]+) \| (a?sync) \|$", re.MULTILINE)
ROWS = {name: tasks for name, tasks, _ in ROW.findall(README.read_text(encoding="utf-8"))}
SHOWN_WHOLE = "smoke"


def tasks_of(manifest: Manifest) -> str:
    """Returns a manifest's tasks, as in `chief, 2 workers, 1 ps, evaluator`."""
    chief = "chief" if manifest.chief_job == "chief" else f"chief (as `{manifest.chief_job}`)"
    parts = [chief] if manifest.chief else []
    parts.append(f"{manifest.worker} worker" + ("s" if manifest.worker > 1 else ""))
    parts += [f"{manifest.ps} ps"] if manifest.ps else []
    parts += ["evaluator"] if manifest.evaluator else []
    return ", ".join(parts)


def test_every_manifest_has_a_row() -> None:
    assert {path.stem for path in MANIFESTS} == {*ROWS, SHOWN_WHOLE}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_row_has_the_manifests_tasks(path: Path) -> None:
    if path.stem == SHOWN_WHOLE:
        assert path.name in README.read_text(encoding="utf-8")
    else:
        assert ROWS[path.stem] == tasks_of(load(path).manifest)


def test_every_system_has_results_or_a_reason() -> None:
    page = all_pages()["docs/built-in.md"].text
    assert all(f"`{name}`" in page.partition("## Results")[2].partition("##")[0] for name in ROWS)
