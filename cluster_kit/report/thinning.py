"""Lanes with few enough states and marks that a page of a long run stays small. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cluster_kit.report.lanes import Lane, Span
from cluster_kit.report.marks import ROUTINE, Mark

MOST_SHOWN = 600
"""States and marks of all lanes together that are about what goes as it should."""
FEWEST = 40
"""Of one lane, however many lanes there are."""


def thinned(lanes: Mapping[str, Lane]) -> dict[str, Lane]:
    """The lanes with about so many states and marks at the most; what went wrong stays as it is."""
    many = [name for name, lane in lanes.items() if _size(lane) > FEWEST]
    most = max(FEWEST, MOST_SHOWN // max(1, len(many))) // 2
    return {
        name: Lane(_spans(lane.spans, most), lane.over, _marks(lane.marks, most))
        if name in many
        else lane
        for name, lane in lanes.items()
    }


def _size(lane: Lane) -> int:
    return len(lane.spans) + len(lane.marks)


def _marks(marks: Sequence[Mark], most: int) -> tuple[Mark, ...]:
    """Of each kind that is routine some at equal distances, the last one among them."""
    counts = {kind: sum(mark.kind == kind for mark in marks) for kind in ROUTINE}
    of_each = max(1, most // max(1, sum(count > 0 for count in counts.values())))
    seen = dict.fromkeys(counts, 0)
    kept = []
    for mark in marks:
        if mark.kind not in counts:
            kept.append(mark)
            continue
        count, at = max(counts[mark.kind], of_each), seen[mark.kind]
        seen[mark.kind] += 1
        if (at + 1) * of_each // count > at * of_each // count:
            kept.append(mark)
    return tuple(kept)


def _spans(spans: Sequence[Span], most: int) -> tuple[Span, ...]:
    """Short ones that follow each other as one, of the state that lasted longest."""
    if len(spans) <= most:
        return tuple(spans)
    width = (spans[-1].end - spans[0].begin) / most
    return tuple(_together(group) for group in _groups(spans, width))


def _groups(spans: Sequence[Span], width: float) -> Iterator[list[Span]]:
    """Those without a gap between them that together are not longer than `width` seconds."""
    group: list[Span] = []
    for span in spans:
        if group and (span.end - group[0].begin > width or span.begin > group[-1].end):
            yield group
            group = []
        group.append(span)
    yield group


def _together(group: Sequence[Span]) -> Span:
    if len(group) == 1:
        return group[0]
    times: dict[str, float] = {}
    for span in group:
        times[span.state] = times.get(span.state, 0.0) + span.end - span.begin
    longest = max(times, key=lambda state: times[state])
    told = ", ".join(f"{state} {time:.3g} s" for state, time in times.items())
    return Span(longest, group[0].begin, group[-1].end, f"{len(group)} short states: {told}")
