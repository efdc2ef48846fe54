"""The table of versions is made only from the results of real runs, failures included."""

from __future__ import annotations

import json
from pathlib import Path

from docs.blocks.versions import page, row
from tests import versions

LOCKS = "@2.15\ntensorflow-cpu==2.15.1 \\\nkeras==2.15.0 \\\n@2.18\ntensorflow-cpu==2.18.1 \\\n"
OUTCOME = {"success": True, "timings_s": {"total": 9.5}, "metrics": {"test_accuracy": 0.98, "x": 1}}
READY = "worker-0: TensorFlow server ready, grpc://localhost:2222"


def test_a_run_becomes_a_row_with_the_installed_versions() -> None:
    facts = versions.cell("2.15", "smoke", OUTCOME, READY, LOCKS)
    assert row(facts) == (
        "2.15.1", "2.15.0, -", "C API", "`smoke`", "well", "test accuracy 0.98"
    )  # fmt: skip
    later = versions.cell("2.18", "smoke", {}, f"{READY}\n{versions.FALLBACK}", LOCKS)
    assert row(later)[:5] == ("2.18.1", "-, -", "Python", "`smoke`", "**failed**")


def test_a_new_result_replaces_the_old_cell(tmp_path: Path) -> None:
    file = tmp_path / "versions.json"
    for success in (False, True):
        versions.keep({"version": "2.18", "manifest": "smoke", "success": success}, file)
    versions.keep({"version": "2.15", "manifest": "smoke", "success": True}, file)
    kept = json.loads(file.read_text())
    assert [(one["version"], one["success"]) for one in kept] == [("2.15", True), ("2.18", True)]


def test_the_page_has_the_date_of_the_runs() -> None:
    facts = versions.cell("2.15", "smoke", OUTCOME, "", LOCKS)
    assert page([{**facts, "time": "2026-11-22T08:00:00"}]).startswith("Real runs of 2026-11-22,")
