"""The Grafana dashboard queries only existing metrics, by labels that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from cluster_kit.cli.results import DASHBOARD
from cluster_kit.metrics.prometheus import FAMILIES, STATES
from tests.unit.command_line import Cli

BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
UNITS = {"_seconds": "s", "_bytes": "bytes", "_ratio": "percentunit"}
SELECTOR = re.compile(r"(clusterkit_\w+)(?:\{([^}]*)\})?")


def queries() -> Iterator[str]:
    """Returns every query, including those of variables."""
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    for variable in BOARD["templating"]["list"][1:]:
        yield variable["query"]["query"]


def test_every_query_uses_existing_metrics_and_labels(subtests: pytest.Subtests) -> None:
    for query in sorted(set(queries())):
        with subtests.test(query=query):
            found = SELECTOR.findall(query)
            assert found
            for name, selector in found:
                labels = set(re.findall(r"(\w+)\s*(?:=~|=)", selector))
                assert labels <= set(FAMILIES[name].all_labels)
                assert ("rate(" in query or "increase(" in query) <= (
                    FAMILIES[name].kind == "counter"
                )
            asked = set(re.findall(r"label_values\(.*, (\w+)\)", query))
            assert asked <= set(FAMILIES[found[0][0]].all_labels)


def test_every_panel_has_the_unit_of_its_metric(subtests: pytest.Subtests) -> None:
    for panel in PANELS:
        with subtests.test(panel=panel["title"]):
            query = panel["targets"][0]["expr"]
            name = SELECTOR.findall(query)[0][0]
            if "rate(" in query or "/" in query or panel["type"] == "table":
                continue
            for end, unit in UNITS.items():
                assert (panel["fieldConfig"]["defaults"]["unit"] == unit) == name.endswith(end)


def test_all_states_have_a_name_and_a_value() -> None:
    (panel,) = (one for one in PANELS if one["title"] == "States")
    shown = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert [shown[str(place)]["text"] for place in range(len(shown))] == list(STATES)
    asked = re.findall(r'state="(\w+)"} \* (\d+)', panel["targets"][0]["expr"])
    assert asked == [(state, str(place)) for place, state in enumerate(STATES, 1)]


def test_panels_do_not_overlap() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for one, other in combinations([panel["gridPos"] for panel in BOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in BOARD["panels"])


def test_the_dashboard_is_independent_of_an_installation() -> None:
    """It has no database id; the data source is a variable."""
    assert BOARD["uid"] == "cluster-kit" and "id" not in BOARD and "__inputs" not in BOARD
    for panel in PANELS:
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in sources)


def test_the_dashboard_is_printed(cli: Cli) -> None:
    result = cli("metrics", "--dashboard")
    assert result.code == 0 and json.loads(result.out) == BOARD
    refused = cli("metrics", "demo", "--dashboard")
    assert refused.code == 2 and "metrics --dashboard > cluster-kit.json" in refused.err
