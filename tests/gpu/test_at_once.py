"""Two clusters that start at the same moment never get the same GPU."""

from __future__ import annotations

import pytest

from tests.gpu.clusters import environment, left, standing_soon
from tests.gpu.conftest import MakeKit, inventory
from tests.gpu.second_engine import SecondEngine

ROUNDS = 2
"""Twenty rounds were tested by hand: each takes about seven seconds."""


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_each_of_two_clusters_gets_its_own_gpu(
    nvidia_engine: SecondEngine, make_kit: MakeKit, _round: int
) -> None:
    kits = [make_kit(nvidia_engine, inventory(2)) for _ in range(2)]
    alone = {"chief": 0, "worker": 1, "ps": 0}
    with (
        standing_soon(kits[0], nvidia_engine, **alone) as first,
        standing_soon(kits[1], nvidia_engine, **alone) as second,
    ):
        names = [*first(), *second()]
        given = [environment(nvidia_engine, n)["NVIDIA_VISIBLE_DEVICES"] for n in names]
    assert sorted(given) == ["0", "1"]
    assert [left(kit, nvidia_engine) for kit in kits] == [[], []]
