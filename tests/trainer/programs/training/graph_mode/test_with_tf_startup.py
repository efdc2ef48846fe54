"""With TensorFlow: which replicas a chief waits for when it starts or restarts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

import numpy as np

from trainer.programs.training.graph_mode import session_start
from trainer.programs.training.graph_mode.replica import DeploymentConfig
from trainer.programs.training.graph_mode.sync_replicas import start_rounds


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


@pytest.mark.parametrize("on_cpu", [True, False])
def test_only_on_gpus_is_the_graph_optimized(on_cpu) -> None:
    """On CPUs, that takes seconds after each loss of a ps, and no step is faster."""
    replica = SimpleNamespace(deployment=DeploymentConfig(clone_on_cpu=on_cpu))
    task = SimpleNamespace(simulate_gpus=0, gpu_memory_mb=None)
    config = session_start.session_config(task, replica)
    assert config.graph_options.rewrite_options.disable_meta_optimizer is on_cpu


def test_gradients_that_wait_are_taken_in_one_run_for_each_count() -> None:
    """A run with new ops takes 0.1 s for a MobileNetV2, which has 160 variables."""
    chief = SimpleNamespace(
        new_base="base", take_count="count", waiting="waiting", begin="begin",
        take=[f"take {number}" for number in range(6)],
    )  # fmt: skip
    rounds = SimpleNamespace(new_token="token", chief=chief)
    ran = []

    def run(what: object, fed: dict) -> object:
        ran.append((what, fed.get("count")))
        return np.array([2, 0, 1, 2, 1, 2], np.int32)

    start_rounds(rounds, 7, SimpleNamespace(run=run))
    assert ran[0] == ("waiting", None) and ran[-1] == ("begin", None)
    assert sorted(ran[1:-1], key=str) == [
        (["take 0", "take 3", "take 5"], 2),
        (["take 2", "take 4"], 1),
    ]
