"""How long the kit waits for the other tasks after the leader's end."""

from __future__ import annotations

import pytest

from cluster_kit.run.watch import FOLLOW_S, NOT_HEARD_S, follow_s
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
