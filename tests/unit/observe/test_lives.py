"""The lives of a task's container, from the engine's events."""

from __future__ import annotations

from cluster_kit.observe.lives import Life, lives_of, ran, restarts, since_start
from cluster_kit.platforms.engine import Event


def event(time: float, action: str, code: int | None = None, said: str = "") -> Event:
    return Event(time, action, "ps-0", code, said)


def test_each_start_begins_a_life_and_the_next_end_ends_it() -> None:
    lives = lives_of([
        event(0.5, "create"), event(1, "start"), event(2, "oom"), event(3, "die", 137),
        event(4, "start"), event(5, "pause"), event(5.5, "unpause"), event(6, "kill"),
        event(7, "die", 143), event(8, "destroy"), Event(9, "start", "chief-0", None),
    ])  # fmt: skip
    first = Life(1, 3, 137, ooms=(2,))
    second = Life(4, 7, 143, kills=(6,), pauses=(5,), removed=True)
    assert lives == {"ps-0": (first, second), "chief-0": (Life(9),)}
    assert (first.failed_at, second.failed_at, lives["chief-0"][0].failed_at) == (2, 7, None)
    assert restarts(lives["ps-0"]) == 1


def test_a_node_that_refuses_a_task_gives_it_a_life_that_never_began() -> None:
    own = lives_of([
        event(1, "start"), event(2, "lost", said="node-b"), event(2, "die"),
        event(3, "die", said="no such image"), event(4, "homeless", said="no suitable node"),
    ])["ps-0"]  # fmt: skip
    assert own == (
        Life(1, 2, lost=2, lost_node="node-b"),
        Life(None, 3, refusal="no such image", homeless="no suitable node"),
    )
    assert restarts(own) == 0
    assert since_start(own) == own
    assert since_start((*own, Life(5))) == (Life(5),)


def test_a_life_without_an_end_event_lasts_until_the_next_one() -> None:
    lives = (Life(1), Life(None, 2), Life(3, 4), Life(5))
    assert [(begin, end) for begin, end, _ in ran(lives, until=9)] == [(1, 3), (3, 4), (5, 9)]
    assert list(ran((), until=9)) == []
