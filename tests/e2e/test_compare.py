"""A small comparison in real containers: two ways in one scenario, and the files it writes."""

from __future__ import annotations

import json

import pytest

from tests.kit import Kit

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = ("--scenario", "even", "--steps", "30", "--epochs", "2", "--accuracy", "0.1")


@pytest.mark.more
def test_two_ways_are_trained_measured_and_shown(kit: Kit) -> None:
    done = kit.run("compare", "--only", "graph-async", "--only", "clones", *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = kit.root / "build" / "compare"
    facts = json.loads((folder / "compare.json").read_text())
    results = {row["variant"]: row for row in facts["results"]}
    assert set(results) == {"graph-async", "clones"}
    for row in results.values():
        measured = row["measured"]
        assert row["failed"] is None and row["skipped"] is None
        assert measured["images_per_s"] > 0 and 0 < measured["accuracy"] <= 1
        assert measured["curve"][-1][1] == measured["accuracy"], "the last checkpoint's"
        assert measured["seconds_to_accuracy"] is not None
        assert row["title"] in done.stdout
    updates = {way: row["measured"]["updates"] for way, row in results.items()}
    assert 60 <= updates["graph-async"] <= 61 and updates["clones"] == 30
    moved = {way: row["measured"]["bytes_per_update"] for way, row in results.items()}
    assert moved["graph-async"]["ps"] > 1e6 > moved["clones"]["worker"]
    assert (folder / "compare.png").read_bytes().startswith(PNG)
    assert f"everything is in {folder}" in done.stderr
