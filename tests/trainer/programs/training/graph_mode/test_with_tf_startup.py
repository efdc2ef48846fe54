"""With TensorFlow: whom a chief waits for when it begins, or begins again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

from trainer.programs.training.graph_mode import session_start


@pytest.mark.parametrize(("step", "waited"), [(0, ["replicas"]), (359, ["replicas"]), (360, [])])
def test_nobody_is_waited_for_when_nothing_is_left_to_do(monkeypatch, step, waited) -> None:
    """A chief that was lost while it scored: the others have made their last step, and left."""
    seen = []
    monkeypatch.setattr(session_start, "wait_for_others", seen.append)
    restored = SimpleNamespace(step=step, name=f"model.ckpt-{step}")
    graph = SimpleNamespace(
        checkpoints=SimpleNamespace(restore=lambda session: restored),
        initialize_run=None, now="now", rounds=None,
    )  # fmt: skip
    session = SimpleNamespace(run=lambda what: (step, 360) if what == "now" else None)
    replica = SimpleNamespace(deployment=SimpleNamespace(distributed=True))
    session_start.begin_as_chief(session, graph, replica, SimpleNamespace(begin=lambda *_: None))
    assert ["replicas" for one in seen if one is replica] == waited
