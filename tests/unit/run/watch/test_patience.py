"""How long the kit waits for the other tasks after the leader's end."""

from __future__ import annotations

import pytest

from cluster_kit.run.watch import FOLLOW_S, NOT_HEARD_S, follow_s
from tests.unit.stories import Story, chief_succeeds


@pytest.mark.parametrize(
    ("story", "seconds"),
    [
        (Story.of().ends(2, "chief-0", 1, "failed", "ValueError: no"), NOT_HEARD_S),
        (Story.of().ends(90, "chief-0", 1, "failed", "ValueError: no"), FOLLOW_S),
        (Story.of().dies(2, "worker-1", 1), FOLLOW_S),
        (Story.of().dies(2, "chief-0", 0), FOLLOW_S),
        (chief_succeeds(Story.of()), FOLLOW_S),
    ],
)
def test_after_a_leader_that_failed_at_once_other_tasks_get_less_time(
    story: Story, seconds: float
) -> None:
    assert follow_s(story.seen) == seconds
