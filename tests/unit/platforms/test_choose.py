"""Every engine that a manifest can name has a backend, and a way to reach it."""

from __future__ import annotations

from typing import get_args

from cluster_kit.parts import DEFAULT_ENGINE, EngineName
from cluster_kit.platforms.registry import ENGINES, PLATFORMS


def test_every_engine_of_a_manifest_is_in_the_tables() -> None:
    assert PLATFORMS.keys() == ENGINES.keys() == set(get_args(EngineName))
    assert DEFAULT_ENGINE in PLATFORMS
