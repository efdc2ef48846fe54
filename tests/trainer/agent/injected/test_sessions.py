"""How long sessions of the oldest style wait for threads at their end."""

from __future__ import annotations

import pytest

from trainer.agent.injected import tensorflow_patches


@pytest.mark.parametrize(
    ("given", "waited"),
    [
        ({"ignore_live_threads": True}, tensorflow_patches.GRACE_S),
        ({"ignore_live_threads": True, "stop_grace_period_secs": 120}, tensorflow_patches.GRACE_S),
        ({"ignore_live_threads": True, "stop_grace_period_secs": 60}, 60),
        ({}, 120),
    ],
)
def test_daemon_threads_get_less_time_unless_the_program_sets_it(given, waited):
    """If they may not be abandoned, a thread that takes long would become an error."""
    calls = []
    join = tensorflow_patches.less_patient(lambda self, *arguments: calls.append(arguments))
    join("the coordinator", ["a thread"], **given)
    assert calls == [(["a thread"], waited, given.get("ignore_live_threads", False))]


def test_a_session_needs_the_ps_and_its_own_task():
    tf_config = '{"cluster": {}, "task": {"type": "worker", "index": 1}}'
    filters = tensorflow_patches.own_filters(tf_config)
    assert filters == ["/job:ps", "/job:worker/task:1"]
    assert tensorflow_patches.own_filters("") == tensorflow_patches.own_filters("{}") == []
