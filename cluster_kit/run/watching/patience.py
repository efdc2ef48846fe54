"""How long the others are waited for after the leader's end, which they hear from it. Pure."""

from __future__ import annotations

from cluster_kit.observe.state import RunState

FOLLOW_S = 15.0
"""Servers end within a second of the leader; on a very busy host this is the limit."""
AT_ONCE_S = 5.0
NOT_HEARD_S = 3.0
"""A leader that failed at once may have gone before the others reached it: they would look for it
for half a minute."""


def follow_s(seen: RunState) -> float:
    """Seconds for which tasks may go on after the leader's end, evaluators apart."""
    leader = seen.leader
    ends = [e.time for e in seen.events if (e.task, e.action) == (leader, "die")]
    lived = ends[-1] - seen.started.get(leader, 0.0) if ends else AT_ONCE_S
    failed = seen.tasks[leader].exit_code not in (0, None)
    return NOT_HEARD_S if failed and lived < AT_ONCE_S else FOLLOW_S
