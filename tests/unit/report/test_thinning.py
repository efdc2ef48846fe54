"""Lanes of long runs: fewer states and marks, and no incorrect ones."""

from __future__ import annotations

from cluster_kit.report.lanes import MOST_SHOWN, Lane, Mark, Span, thinned


def long() -> Lane:
    """Returns an hour of an evaluator: waiting 1 s, scoring 3 s, again and again, with one long
    silence."""
    spans = [Span("starting", 0, 60)]
    for at in range(60, 3600, 4):
        spans += [Span("waiting", at, at + 1), Span("scoring", at + 1, at + 4)]
    marks = [Mark("evaluation", at + 4, f"ckpt-{at}") for at in range(60, 3600, 4)]
    trouble = [Mark("fault", 70 + at, "killed") for at in range(30)]
    return Lane(tuple(spans), (Span("silent", 100, 101),),
                tuple(sorted([*marks, *trouble], key=lambda mark: mark.at)))  # fmt: skip


def test_a_long_lane_is_short_and_covers_the_same_time() -> None:
    was = long()
    lane = thinned({"evaluator-0": was})["evaluator-0"]
    assert len(lane.spans) + len(lane.marks) <= MOST_SHOWN + 30 < len(was.spans)
    assert lane.spans[0] == Span("starting", 0, 60)
    assert lane.spans[-1].end == 3600 and lane.over == was.over
    assert all(a.end == b.begin for a, b in zip(lane.spans, lane.spans[1:], strict=False))
    joined = lane.spans[5]
    assert joined.state == "scoring" and "short states: waiting" in joined.text


def test_failures_and_the_last_mark_of_each_kind_stay() -> None:
    lane = thinned({"evaluator-0": long()})["evaluator-0"]
    assert sum(mark.kind == "fault" for mark in lane.marks) == 30
    assert lane.marks[-1].text == "ckpt-3596"
    assert 200 < sum(mark.kind == "evaluation" for mark in lane.marks) <= MOST_SHOWN / 2


def test_time_without_a_running_container_stays_empty() -> None:
    spans = [Span("ready", at, at + 0.5) for at in range(100)]
    lane = thinned({"ps-0": Lane(tuple(spans), (), ())})["ps-0"]
    assert lane.spans == tuple(spans)


def test_short_lanes_are_unchanged() -> None:
    lanes = {f"worker-{n}": Lane((Span("ready", 0, 1),), (), ()) for n in range(50)}
    assert thinned(lanes | {"evaluator-0": long()}) | {"evaluator-0": None} == (
        lanes | {"evaluator-0": None}
    )
