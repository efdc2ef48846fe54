"""How long the kit waits for the other tasks after the leader's end."""

from __future__ import annotations

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.run.watch import FOLLOW_S, NOT_HEARD_S, follow_s
from tests.fakes.acting import LEADS, Life, ends
from tests.fakes.stage import Stage
from tests.unit.stories import WITHOUT_CHIEF, Story, chief_succeeds

LOST = Story.of(WITHOUT_CHIEF).dies(20, "worker-1", 1)


@pytest.mark.parametrize(
    ("story", "seconds"),
    [
        (Story.of().ends(2, "chief-0", 1, "failed", "ValueError: no"), NOT_HEARD_S),
        (Story.of().ends(90, "chief-0", 1, "failed", "ValueError: no"), FOLLOW_S),
        (Story.of().dies(2, "worker-1", 1), FOLLOW_S),
        (LOST.start(20.2, "worker-1").ends(21, "worker-0", 1, "failed"), NOT_HEARD_S),
        (LOST.start(20.2, "worker-1").ends(60, "worker-0", 1, "failed"), FOLLOW_S),
        (LOST.start(20.2, "worker-1").ends(21, "worker-0", 0, "finished"), FOLLOW_S),
        (Story.of().dies(2, "chief-0", 0), FOLLOW_S),
        (chief_succeeds(Story.of()), FOLLOW_S),
    ],
)
def test_after_a_failure_tasks_that_may_not_have_reached_the_leader_get_less_time(
    story: Story, seconds: float
) -> None:
    assert follow_s(story.seen) == seconds


@pytest.mark.parametrize(
    ("leader", "weighed"),
    [(LEADS, ["evaluator-0"]), (Life((*LEADS.steps[:-1], ends(3.0, 5, "failed", "boom"))), [])],
)
def test_an_evaluator_that_still_scores_after_the_training_gets_a_tasks_usual_weight(
    stage: Stage, leader: Life, weighed: list[str]
) -> None:
    stage.up({"chief-0": [leader]})
    assert stage.engine.weighed == weighed


def test_an_engine_that_cannot_change_a_weight_costs_no_run(stage: Stage) -> None:
    def refuse(call: str) -> None:
        if call == "weigh_as_usual":
            raise EngineError("no such controller")

    stage.engine.on_call = refuse
    assert stage.up().success
