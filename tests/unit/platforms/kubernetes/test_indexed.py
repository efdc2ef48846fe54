"""One template for all tasks of a role, which Kubernetes expands for each."""

from __future__ import annotations

import pytest

from cluster_kit.platforms.kubernetes.kubernetes_jobs import template


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["serve"], "serve"),
        (["--price=$5 $(HOME)"], "--price=$$5 $$(HOME)"),
        (["--rank=0", "--rank=1"], "--rank=$(CK_INDEX)"),
        ([f"a{i}b{i}0" for i in range(12)], "a$(CK_INDEX)b$(CK_INDEX)0"),
        ([f"${i}" for i in range(3)], "$$$(CK_INDEX)"),
        (["x", "x", "x"], "x"),
        (["0", "1", "3"], None),
        (["0", "10"], None),
        (["1", "0"], None),
        (["same", "same", "other"], None),
    ],
)
def test_the_index_may_be_anywhere(texts: list[str], message: str | None) -> None:
    assert template(texts) == message
