"""Features for one host are refused on a swarm."""

from __future__ import annotations

from pathlib import Path

import pytest

import cluster_kit
from cluster_kit.errors import UsageError


def test_a_cluster_that_stays_up_in_python_is_for_one_host(root: Path) -> None:
    (root / "compose" / "demo.toml").write_text('format = 1\nname = "demo"\n')
    job = cluster_kit.load("demo", root=root, engine="swarm")
    with pytest.raises(UsageError, match="which a swarm does not fix"), job.up():
        pass
