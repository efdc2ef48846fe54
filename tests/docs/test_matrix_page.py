"""The page of the fault matrix is made only from the results, misses included."""

from __future__ import annotations

from typing import Any

from docs.blocks.matrix import cell, page

GOOD: dict[str, Any] = {
    "system": "quickstart", "role": "ps", "fault": "crash", "task": "ps-1", "verdict": "went on",
    "misses": [], "detected_after_s": 0.64, "going_on_after_s": 2.5, "steps_lost": 12,
    "reason": "finished", "time": "2026-11-22T01:00:00+00:00", "machine": "2 cores",
    "commit": "0123abc", "load": 1.5,
}  # fmt: skip
MISSED = {**GOOD, "role": "leader", "task": "chief-0", "misses": ["detected after 13.0 s"],
          "detected_after_s": 13.0, "load": 3.0, "commit": "4567def"}  # fmt: skip
STOPPED = {**MISSED, "fault": "stop", "misses": [], "verdict": "ended", "reason": "stopped"}
NEVER = {**MISSED, "verdict": "wrong", "misses": ["never went on"]}


def test_a_cell_shows_its_figures_and_a_miss_is_bold() -> None:
    assert cell(GOOD) == "0.6 / 2.5 / 12"
    assert cell(MISSED) == "**13.0 / 2.5 / 12**"
    assert cell({**GOOD, "detected_after_s": None}) == "- / 2.5 / 12"
    assert cell(STOPPED) == "ended: `stopped`, 13.0"
    assert cell(NEVER) == "**wrong**"
    assert cell(None) == "-"


def test_the_page_has_a_table_for_each_system_and_all_misses() -> None:
    text = page([MISSED, STOPPED, GOOD])
    assert "2 cores, from commit `4567def` (2 cells), `0123abc` (1 cells)" in text
    assert "the load average at the end of a run was 1.5 to 3." in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| fault | leader (chief-0) | ps (ps-1) |"
    assert rows[2:] == ["| crash | **13.0 / 2.5 / 12** | 0.6 / 2.5 / 12 |",
                        "| stop | ended: `stopped`, 13.0 | - |"]  # fmt: skip
    assert "3 of 162 cells were run; 2 passed." in text
    assert text.endswith("- quickstart, leader, crash: detected after 13.0 s")
