"""Which problems of a plan are reported: those that a default in place of an invalid key does not
explain."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import ManifestError, Problem
from cluster_kit.manifest.load import Loaded
from tests.make import manifest

BROKEN = Problem("worker", '"3"', "must be a whole number", "write one")
LOADED = Loaded(manifest(), Path("demo.toml"), (BROKEN,), frozenset({"worker", "task.ps-0.gps"}))


@pytest.mark.parametrize(
    ("key_path", "reads", "certain"),
    [
        ("ps", (), True),
        ("ps", ("chief", "style"), True),
        ("ps", ("worker",), False),
        ("memory", ("role", "task"), False),
        ("worker", (), False),
        ("task.ps-0.gps", (), False),
        ("task.ps-0.cpus", (), True),
    ],
)
def test_a_problem_of_a_rule_that_reads_an_invalid_key_is_not_reported(
    key_path: str, reads: tuple[str, ...], certain: bool
) -> None:
    assert LOADED.certain(Problem(key_path, "", "rule", "cure", reads)) is certain


def test_all_problems_are_reported_once_and_in_the_manifests_order() -> None:
    early, late, unknown = (Problem(key_path, "", "r", "c") for key_path in ("name", "port", "zzz"))
    with pytest.raises(ManifestError) as caught:
        LOADED.refuse([late, unknown, early, late])
    assert caught.value.problems == (early, BROKEN, late, unknown)


def test_a_valid_manifest_is_not_refused() -> None:
    Loaded(manifest(), Path("demo.toml")).refuse([])
