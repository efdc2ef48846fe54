"""Every engine that a manifest can name has a backend, and a way to reach it."""

from __future__ import annotations

from typing import get_args

from cluster_kit.backends.choose import BACKENDS
from cluster_kit.engine.choose import ENGINES
from cluster_kit.parts import DEFAULT_ENGINE, EngineName


def test_every_engine_of_a_manifest_is_in_the_tables() -> None:
    assert BACKENDS.keys() == ENGINES.keys() == set(get_args(EngineName))
    assert DEFAULT_ENGINE in BACKENDS
