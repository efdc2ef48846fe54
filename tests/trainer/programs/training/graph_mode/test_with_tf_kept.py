"""With TensorFlow: a session of a server is not closed when the training drops it; a lost one
saves nothing."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import ClassVar

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

from trainer.programs.training.graph_mode import training_session
from trainer.programs.training.graph_mode.checkpoint_saver import CheckpointManager


class Session:
    """A double of TensorFlow's session, which closes when it is deleted."""

    closed: ClassVar[list[str]] = []

    def __init__(self, target: str, graph: object, config: object) -> None:
        self.target = target

    def run(self, what: object) -> None:
        pass

    def close(self) -> None:
        if self.target not in self.closed:
            self.closed.append(self.target)

    def __del__(self) -> None:
        self.close()


@pytest.mark.parametrize(("target", "closed"), [("", [""]), ("grpc://10.0.0.3:2222", [])])
def test_a_session_of_a_server_stays_open(monkeypatch, target: str, closed: list[str]) -> None:
    monkeypatch.setattr(training_session.tf1, "Session", Session)
    monkeypatch.setattr(Session, "closed", [])
    kept = []
    monkeypatch.setattr(training_session, "KEPT", kept, raising=False)
    monkeypatch.setattr(training_session, "wait_for_chief", lambda *_: None)
    monkeypatch.setattr(training_session, "wait_for_step", lambda *_: None)
    training = a_training(lambda session: "result")
    assert training_session.Training.attempt(training, target, None) == "result"
    gc.collect()
    assert Session.closed == closed
    kept.clear()


def a_training(train: Callable[[Session], str]) -> SimpleNamespace:
    return SimpleNamespace(
        _graph=SimpleNamespace(graph=None, initialize_local=None),
        _replica=SimpleNamespace(is_chief=False),
        _manager=None,
        _job=SimpleNamespace(startup_delay_steps=0),
        _train=train,
    )


def test_a_lost_session_stays_open(monkeypatch) -> None:
    """Closing it would hold up its successor."""
    monkeypatch.setattr(training_session.tf1, "Session", Session)
    monkeypatch.setattr(training_session, "wait_for_chief", lambda *_: None)
    monkeypatch.setattr(training_session, "wait_for_step", lambda *_: None)
    monkeypatch.setattr(training_session, "KEPT", kept := [])
    monkeypatch.setattr(Session, "closed", [])

    def lost(session: Session) -> str:
        raise training_session.tf.errors.UnavailableError(None, None, "a ps is gone")

    with pytest.raises(training_session.tf.errors.UnavailableError):
        training_session.Training.attempt(a_training(lost), "grpc://a", None)
    gc.collect()
    time.sleep(0.2)
    assert (len(kept), Session.closed) == (1, [])
    kept.clear()


def test_signals_while_a_lost_ps_is_awaited_save_nothing(monkeypatch, capsys) -> None:
    manager = CheckpointManager(None, save_secs=0)
    manager.begin(Session("grpc://a", None, None), None)
    manager.end()
    training = SimpleNamespace(_manager=manager)
    left = []
    monkeypatch.setattr(training_session.os, "_exit", left.append)
    training_session.Training.save_by_hand(training)
    training_session.Training.terminated(training)
    said = capsys.readouterr()
    assert "save failed: the training has not begun, or waits for a lost ps" in said.err
    assert (said.out, left) == ("stopped by SIGTERM\n", [143])
