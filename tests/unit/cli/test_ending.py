"""What is printed of a run's figures."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.cli.ending import print_metrics
from cluster_kit.run.outcome import Outcome


def printed(capsys: pytest.CaptureFixture[str], **metrics: Any) -> list[str]:
    outcome = Outcome("demo", True, 0, "finished", None, "", "", [], [], {}, metrics, "", "/run")
    print_metrics(outcome)
    return capsys.readouterr().out.splitlines()


def test_a_staleness_where_there_can_be_none_is_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, staleness_max=0, staleness_mean=0.0, updates=5) == ["  updates: 5"]
    assert printed(capsys, staleness_max=2, staleness_mean=0.4691) == [
        "  staleness max: 2",
        "  staleness mean: 0.4691",
    ]
