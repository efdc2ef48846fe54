"""A finished run with more workers: the small table on its page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster_kit.errors import KitError
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.usage import Sample
from cluster_kit.predict.answer import Point, predict
from cluster_kit.predict.measure import figures_of, profile_of
from cluster_kit.predict.question import Question
from cluster_kit.resolved import Cluster
from cluster_kit.roles import PS

FACTORS = (1, 2, 4, 8)
MOST_WORKERS, STEPS = 256, 20
"""The most workers on a page, and the steps of each that are simulated: about a second in all."""


def scaling_of(
    cluster: Cluster, entries: Sequence[Entry], samples: Sequence[Sample]
) -> dict[str, Any]:
    """The speed with 1, 2, 4 and 8 times the workers, as report.json has it.

    `points` is empty if the run does not have what a prediction needs; `why` says then what it
    lacks. `unit` is what `speed` counts in each second.
    """
    try:
        figures = figures_of(cluster, entries, samples)
        counts = tuple(figures.workers * k for k in FACTORS if figures.workers * k <= MOST_WORKERS)
        question = Question(workers=counts, ps=(max(1, figures.ps),), steps=STEPS)
        answer = predict(profile_of([figures]), question)
    except KitError as error:
        return {"unit": "", "points": [], "why": error.message.partition("\n")[0]}
    unknown = next((point.unknown for point in answer.points if point.images_per_s is None), "")
    return {
        "unit": "images" if figures.counts_images else "steps",
        "points": [_facts(point) for point in answer.points if point.images_per_s is not None],
        "why": unknown,
    }


def _facts(point: Point) -> dict[str, Any]:
    return {
        "workers": point.workers,
        PS.name: point.ps,
        "speed": point.images_per_s,
        "low": point.low,
        "high": point.high,
        "efficiency": point.efficiency,
        "limit": point.limit.text if point.limit else "",
    }
