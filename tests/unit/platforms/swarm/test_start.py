"""A deployment has started when every task runs; a node's message about a task that does not start
is reported."""

from __future__ import annotations

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.platforms.platform import SubnetTaken
from cluster_kit.platforms.swarm import swarm_platform

Answer = tuple[list[str], dict[str, str]]


class Slow:
    """A swarm that gives these answers in turn, and then the last one forever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.lacks: list[bool] = []

    def not_started(self, cluster: str, run: str) -> Answer:
        assert (cluster, run) == ("demo", "1")
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def lacks_subnet(self, cluster: str, run: str) -> bool:
        assert (cluster, run) == ("demo", "1")
        return self.lacks.pop(0) if self.lacks else False


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sleep returns at once."""
    now = [100.0]
    monkeypatch.setattr(swarm_platform.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(swarm_platform.time, "sleep", lambda s: now.__setitem__(0, now[0] + s))


def test_it_waits_for_the_last_task() -> None:
    swarm = Slow((["ps-0"], {}), (["ps-0"], {"ps-0": "no such thing yet"}), ([], {}))
    swarm_platform.wait_for_start(swarm, "demo", "1")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("No such image: demo:1 (node b)", "image push"),
        ('invalid mount config: bind source path does not exist: "/a"', "NFS"),
        ("no suitable node (scheduling constraints not satisfied on 2 nodes)", "`nodes`"),
        ('starting container failed: … error mounting "/a" to rootfs', "same file or folder"),
        ("Range of CPUs is from 0.01 to 2.00 (node b)", "lower `cpus`"),
        ("no suitable node (insufficient resources on 1 node)", "memory"),
        ("something else", "docker node ls"),
    ],
)
def test_a_nodes_message_is_reported_once_with_a_hint(message: str, hint: str) -> None:
    swarm = Slow((["ps-0", "ps-1"], {"ps-0": message, "ps-1": message}))
    with pytest.raises(EngineError) as raised:
        swarm_platform.wait_for_start(swarm, "demo", "1")
    assert f"ps-0, ps-1: {message}" in raised.value.message
    assert hint in raised.value.hint


def test_a_network_whose_subnet_comes_late_is_waited_for() -> None:
    swarm = Slow(*[(["ps-0"], {})] * 6, ([], {}))
    swarm.lacks = [True] * 4
    swarm_platform.wait_for_start(swarm, "demo", "1")


def test_a_network_without_a_subnet_is_reported_at_once() -> None:
    swarm = Slow((["ps-0"], {}))
    swarm.lacks = [True] * 99
    with pytest.raises(SubnetTaken, match="the subnet of demo is taken"):
        swarm_platform.wait_for_start(swarm, "demo", "1")
    assert len(swarm.lacks) > 99 - 2 - swarm_platform.WITHOUT_SUBNET_S / swarm_platform.POLL_S


def test_a_task_that_never_starts_is_named() -> None:
    with pytest.raises(EngineError, match="ps-0: no node gave a reason"):
        swarm_platform.wait_for_start(Slow((["ps-0"], {})), "demo", "1")


REFUSED: Answer = (["ps-0"], {"ps-0": "No such image: demo:1 (node b)"})
TRIED_AGAIN: Answer = (["ps-0"], {})


def test_a_message_stays_while_the_swarm_tries_again() -> None:
    tries = [answer for _ in range(40) for answer in (REFUSED, TRIED_AGAIN)]
    swarm = Slow(*tries)
    with pytest.raises(EngineError, match="ps-0: No such image"):
        swarm_platform.wait_for_start(swarm, "demo", "1")
    assert len(swarm.answers) > 40, "it is told before it has tried for ever"


def test_a_node_that_is_still_working_is_waited_for() -> None:
    pulled = [TRIED_AGAIN] * round(60 / swarm_platform.POLL_S)
    swarm_platform.wait_for_start(Slow(REFUSED, *pulled, ([], {})), "demo", "1")
