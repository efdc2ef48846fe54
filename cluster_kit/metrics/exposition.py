"""Metrics in Prometheus's text format, by its own library. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cluster_kit.metrics.values import FAMILIES, Value

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Collected:
    """What the library asks for the metrics that it writes."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        return self._metrics


def text(values: Iterable[Value]) -> str:
    """The exposition of all these values, of one run or several; families without one are left out.

    Characters that UTF-8 does not have, in what a program reported, become `?`.
    """
    # It imports an HTTP server and TLS, which no other command needs.
    from prometheus_client import CollectorRegistry, generate_latest

    found: dict[str, list[Value]] = {}
    for value in values:
        found.setdefault(value.name, []).append(value)
    registry = CollectorRegistry()
    registry.register(
        _Collected([_metric(name, found[name]) for name in FAMILIES if name in found])
    )
    return generate_latest(registry).decode()


def _metric(name: str, values: Sequence[Value]) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    family = FAMILIES[name]
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(name, family.help, labels=family.all_labels)
    rows = {
        tuple(_clean(value.labels[label]) for label in family.all_labels): value.value
        for value in values  # two of the same name and labels make the whole invalid
    }
    for labels, number in rows.items():
        metric.add_metric(labels, number)
    return metric


def _clean(label: str) -> str:
    return label.encode(errors="replace").decode()
