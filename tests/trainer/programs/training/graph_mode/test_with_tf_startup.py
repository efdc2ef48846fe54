"""With TensorFlow: which replicas a chief waits for when it starts or restarts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

from trainer.programs.training.graph_mode import session_start


@pytest.mark.parametrize(("step", "waited"), [(0, ["replicas"]), (359, ["replicas"]), (360, [])])
def test_the_chief_does_not_wait_if_nothing_is_left_to_do(monkeypatch, step, waited) -> None:
    """A chief that was lost while it scored: the others have made their last step and ended."""
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
