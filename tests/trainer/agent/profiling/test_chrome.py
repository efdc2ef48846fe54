"""Several traces merged into one, on one clock."""

from __future__ import annotations

import json

from made_up import TO_PS, awaited, event, trace

from trainer.agent.profiling.profile import HEAD, TAIL, chrome_lines

BEGAN = 4_000_000_000


def events(seen, position=0, most=1000):
    text = HEAD + ",\n".join(chrome_lines(seen, position, BEGAN, most)) + TAIL
    return json.loads(text)["traceEvents"]


def test_a_task_is_a_process_with_its_threads_on_the_common_clock():
    seen = events(trace(event("train", 10, 5), task="ps-1"), position=3)
    assert seen[:3] == [
        {"ph": "M", "name": "process_name", "pid": 4, "tid": 0, "args": {"name": "ps-1"}},
        {"ph": "M", "name": "process_sort_index", "pid": 4, "tid": 0, "args": {"sort_index": 3}},
        {"ph": "M", "name": "thread_name", "pid": 4, "tid": 1, "args": {"name": "tf_Compute"}},
    ]
    # It began a second after the whole trace, and the event 10 ms later: microseconds.
    assert seen[3:] == [
        {"ph": "X", "pid": 4, "tid": 1, "name": "train", "ts": 1_010_000.0, "dur": 5000.0}
    ]


def test_waits_are_shown_as_separate_threads_and_sends_name_the_receiver():
    seen = events(trace(*awaited("w", "_Recv", 0, 30, key=1), event("g:_Send", 40, 1, key=TO_PS)))
    begins = [one for one in seen if one["ph"] == "b"]
    ends = [one for one in seen if one["ph"] == "e"]
    assert [one["name"] for one in begins] == ["waits: w"]
    assert ends[0]["ts"] - begins[0]["ts"] == 30_000
    assert ends[0]["id"] == begins[0]["id"]
    assert [one["args"] for one in seen if one["name"] == "g:_Send"] == [{"to": "ps-0"}]


def test_with_too_many_events_only_the_longest_are_kept():
    seen = trace(*(event(f"op{at}", at, at) for at in range(1, 9)))
    kept = [one["name"] for one in events(seen, most=3) if one["ph"] == "X"]
    assert {"op8", "op7", "op6"} <= set(kept)
    assert len(kept) <= 4


def test_noise_is_left_out():
    noise = event("MemoryAllocation", 1, 0), event("ThreadpoolListener::Record", 1, 0)
    assert [one for one in events(trace(*noise)) if one["ph"] == "X"] == []
