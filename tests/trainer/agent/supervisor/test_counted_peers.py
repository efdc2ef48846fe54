"""What the leader records about its peers: missing, lost, or failed by themselves."""

from __future__ import annotations

import pytest

from trainer.agent.beacon.messages import DONE, Joined, Left
from trainer.agent.outcome import Outcome
from trainer.agent.supervisor.peers import Peers

OURS = Outcome(1, "failed", "the connection was lost")


def test_peers_count_by_task_and_in_attempts():
    peers = Peers(frozenset({"worker-1", "worker-10", "worker-2"}), retries=1)
    assert peers.missing == ("worker-1", "worker-2", "worker-10")
    assert peers.heard(Joined("worker-2")) is None
    assert peers.heard(Left("evaluator-0", "lost")) is None
    assert peers.heard(Left("worker-1", "lost")) is None
    assert (peers.lost(), peers.failed(OURS)) == ("worker-1 was lost", None)
    peers.begin_attempt()
    assert peers.lost() == ""
    assert peers.missing == ("worker-1", "worker-10")
    assert peers.heard(Left("worker-2", "failed", "no such file")) is None
    failed = peers.failed(OURS)
    assert failed is not None and failed.tasks == ("worker-2",)
    assert peers.failed(Outcome(2, "failed", "no such file")) is None
    over = peers.heard(Left("worker-1", "lost"))
    assert over is not None
    assert over.message == "worker-1 was lost (2 times; 1 retry)"


CUT_OFF = (
    "tensorflow.python.framework.errors_impl.UnavailableError: Connection reset by peer",
    "InternalError: the coordination service was shut down",
    "CancelledError: step aborted",
)


@pytest.mark.parametrize("words", CUT_OFF)
def test_a_peer_that_only_lost_its_leader_is_not_blamed(words):
    """Its program fails within the second in which the leader's end explains a failure."""
    peers = Peers(frozenset({"worker-1"}), retries=1)
    peers.heard(Left("worker-1", "failed", words))
    assert peers.failed(Outcome(1, "failed", "ValueError: shapes differ")) is None
    lost = peers.failed(Outcome(1, "failed", "UnavailableError: Socket closed"))
    assert lost is not None and lost.tasks == ("worker-1",)


@pytest.mark.parametrize("words", CUT_OFF)
def test_a_peer_that_failed_for_good_because_of_its_leader_is_not_blamed(words):
    peers = Peers(frozenset({"worker-1"}), retries=0)
    over = peers.heard(Left("worker-1", "failed", words))
    assert over is not None
    killed = Outcome(134, "failed", "the program was killed by SIGABRT")
    ours = peers.failed_because_of(killed, over)
    assert ours is not None
    assert (ours.exit_code, ours.tasks) == (134, ())
    assert ours.message == f"the program was killed by SIGABRT (after it, worker-1: {words})"
    assert peers.failed_because_of(OURS, over) is None
    assert peers.failed_because_of(killed, Outcome(1, "failed", "ValueError: a shape")) is None


def test_a_long_error_that_was_truncated_is_recognized():
    peers = Peers(frozenset({"worker-1"}), retries=1)
    words = "ValueError: " + "x" * 20_000
    peers.heard(Left("worker-1", "failed", words[:16_000]))
    assert peers.failed(Outcome(1, "failed", words)) is None


def test_the_same_error_about_other_values_is_recognized():
    words = (
        "ValueError: <Variable at 0x7f{}>, [[ 0.{},\n  {}e-05]], of shape (3, {}), is not in scope"
    )
    peers = Peers(frozenset({"worker-1"}), retries=1)
    peers.heard(Left("worker-1", "failed", words.format("a0", 12, "-1.5", 4)))
    assert peers.failed(Outcome(1, "failed", words.format("b1", 3456, "2.25", 4))) is None
    other = peers.failed(Outcome(1, "failed", words.format("a0", 12, "-1.5", 5)))
    assert other is not None and other.tasks == ("worker-1",)


def test_a_leader_that_waited_for_peers_that_had_ended_says_so():
    peers = Peers(frozenset({"worker-1", "worker-2"}), retries=1)
    closed = Outcome(1, "failed", f"{CUT_OFF[0]}\nin a step", printed=True)
    assert peers.ended_too_early(closed) is None
    peers.heard(Left("worker-1", DONE))
    assert peers.ended_too_early(Outcome(1, "failed", "ValueError: shapes differ")) is None
    told = peers.ended_too_early(closed)
    assert told is not None
    assert told.headline == (
        f"{CUT_OFF[0]} (worker-1 had already ended, with 0: tasks that train together must take"
        " the same number of steps, and each must save the model, not only one of them)"
    )
    listing = peers.ended_too_early(Outcome(1, "failed", f"{CUT_OFF[0]}:\n/job:worker/task:1"))
    assert listing is not None and listing.headline == f"{told.headline}:"
    peers.heard(Joined("worker-1"))
    assert peers.ended_too_early(closed) is None


def test_a_leader_whose_ps_have_ended_says_that_they_have_to_stay():
    peers = Peers(frozenset({"ps-0", "ps-1", "worker-1"}), retries=1)
    peers.heard(Left("worker-1", DONE))
    assert peers.missed_ps == ""
    peers.heard(Left("ps-0", DONE))
    stays = "a ps has to stay until the job's end, as `server.join()` does"
    assert peers.missed_ps == f"ps-0 had already ended, with 0: {stays}"
    told = peers.ended_too_early(Outcome(1, "failed", CUT_OFF[0], printed=True))
    assert told is not None
    assert told.headline == f"{CUT_OFF[0]} ({peers.missed_ps})"


def test_many_peers_that_ended_are_counted():
    peers = Peers(frozenset(f"worker-{index}" for index in range(1, 31)), retries=1)
    assert peers.finished == ""
    for index in range(1, 31):
        peers.heard(Left(f"worker-{index}", DONE))
    assert peers.finished.startswith("worker-1, worker-2, ")
    assert peers.finished.endswith("worker-8 and 22 more")
