"""The table `[profile]`: its rules, and that only the leader gets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.platforms.container import task_containers
from cluster_kit.resolved import ProfileAt
from tests.make import cluster, problems_of

LEAST = 'format = 1\nname = "demo"\n'


@pytest.mark.parametrize(
    ("written", "key_path"),
    [
        ("seconds = 2", "profile.at_step"),
        ("at_step = 0", "profile.at_step"),
        ("at_step = 1.5", "profile.at_step"),
        ('at_step = "100"', "profile.at_step"),
        ("at_step = 1\nseconds = 0", "profile.seconds"),
        ("at_step = 1\nseconds = 60.5", "profile.seconds"),
        ("at_step = 1\nseconds = nan", "profile.seconds"),
        ('at_step = 1\nseconds = "2"', "profile.seconds"),
        ("at_step = 1\nsecond = 2", "profile.second"),
    ],
)
def test_an_invalid_profile(written: str, key_path: str, tmp_path: Path) -> None:
    (problem,) = problems_of(f"{LEAST}[profile]\n{written}\n", tmp_path)
    assert problem.key_path == key_path


def test_only_the_leader_gets_the_profile() -> None:
    planned = cluster(profile={"at_step": 100})
    assert planned.profile == ProfileAt(100, 2.0)
    told = {
        spec.name: variables["CLUSTER_KIT_PROFILE"]
        for spec in task_containers(planned)
        if "CLUSTER_KIT_PROFILE" in (variables := dict(spec.variables))
    }
    assert {name: json.loads(text) for name, text in told.items()} == {
        "demo-chief-0": {"at_step": 100, "seconds": 2.0}
    }
    assert cluster().profile is None
