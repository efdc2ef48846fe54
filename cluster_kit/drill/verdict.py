"""Whether a run was as its scenario expects: a sentence for everything that was not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster_kit.drill.measure import Result
from cluster_kit.drill.scenario import Bounds, Expect
from cluster_kit.run.judging.outcome import Outcome


def misses(expect: Expect, results: Sequence[Result], outcome: Outcome) -> list[str]:
    """What was expected and is not so, one sentence each; [] if all is as expected."""
    return [
        *_of_the_end(expect, outcome),
        *(f"{r.fault} was not injected: {r.why_not}" for r in results if r.why_not),
        *(miss for r in results if not r.why_not for miss in _of_a_fault(expect, r)),
        *_of_metrics(expect.metrics, outcome.metrics),
    ]


def _of_the_end(expect: Expect, outcome: Outcome) -> Iterator[str]:
    if outcome.success != expect.succeeds:
        if outcome.success:
            yield "the run should fail; it succeeded"
        else:
            blame = f", blame {outcome.blame}" if outcome.blame else ""
            first_line = outcome.message.partition("\n")[0]
            yield f"the run should succeed; it failed ({outcome.reason}{blame}): {first_line}"
    if expect.reason is not None and outcome.reason != expect.reason:
        yield f"the run should end with reason {expect.reason}; it ended with {outcome.reason}"


def _of_a_fault(expect: Expect, result: Result) -> Iterator[str]:
    took, limit = result.going_on_after, expect.recovers_within
    if limit is not None and took is None:
        yield f"{result.fault}: the training should go on within {limit:g} s; it never did"
    if limit is not None and took is not None and took > limit:
        yield f"{result.fault}: the training should go on within {limit:g} s; it took {took:g} s"
    lost, most = result.steps_lost, expect.loses_at_most
    if most is not None and lost is not None and lost > most:
        yield f"{result.fault}: at most {most} steps should be lost; {lost} were"


def _of_metrics(bounds: Mapping[str, Bounds], metrics: Mapping[str, Any]) -> Iterator[str]:
    for name, bound in bounds.items():
        value = metrics.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield f"{name} should be {_words(bound)}; it was not reported"
        elif bound.min is not None and not value >= bound.min:
            yield f"{name} should be at least {bound.min:g}; it is {value:g}"
        elif bound.max is not None and not value <= bound.max:
            yield f"{name} should be at most {bound.max:g}; it is {value:g}"


def _words(bound: Bounds) -> str:
    words = {"at least": bound.min, "at most": bound.max}
    return " and ".join(f"{w} {limit:g}" for w, limit in words.items() if limit is not None)
