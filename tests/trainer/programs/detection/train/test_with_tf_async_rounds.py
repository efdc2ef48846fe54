"""With TensorFlow: what the coordinator's loop prints and writes, and how often, with a double of
the strategy."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402

from trainer.programs.detection import options  # noqa: E402
from trainer.programs.detection.train import async_rounds  # noqa: E402

SCENES = Path("/opt/datasets/digit-scenes")


class Coordinator:
    """A double that makes a step as soon as it is scheduled."""

    def __init__(self, optimizer: SimpleNamespace) -> None:
        self.optimizer = optimizer
        self.rounds: list[int] = []

    def schedule(self, function, args):
        self.optimizer.iterations.assign_add(1)
        return np.array([1.0, 0.5, 0.5])

    def done(self):
        return True

    def fetch(self, sent):
        self.rounds.append(len(sent))
        return sent


class Manager:
    """Records the steps at which it is asked to save."""

    def __init__(self, *arguments: object) -> None:
        self.saved: list[int] = []

    def restore(self):
        return None

    def try_out(self):
        pass

    def save(self, step):
        self.saved.append(step)


@pytest.fixture
def rounds(tmp_path, monkeypatch):
    """Returns a function that runs the loop with these arguments: the length of each round, and the
    folder of summaries."""
    monkeypatch.setattr(async_rounds, "CheckpointManager", Manager)

    def run(*arguments: str) -> tuple[list[int], Path]:
        chosen = options.parse(arguments, SCENES, tmp_path)
        optimizer = SimpleNamespace(iterations=tf.Variable(0), learning_rate=0.1)
        coordinator = Coordinator(optimizer)
        loop = async_rounds.AsyncRounds(
            coordinator, lambda: None, None, None, optimizer, chosen, None
        )
        assert loop.run() == "steps"
        assert loop._manager.saved[-1] == 20
        return coordinator.rounds, tmp_path / "tensorboard" / "train"

    return run


def steps_in(folder: Path) -> list[int]:
    """Returns the steps with summaries of the loss."""
    (file,) = folder.glob("events.out.tfevents.*")
    return [event.step for event in tf.compat.v1.train.summary_iterator(str(file))
            for value in event.summary.value if value.tag == "loss"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "lengths", "printed", "summarized"),
    [
        ((), [20], [20], [20]),
        (("--round-steps", "8"), [8, 8, 4], [20], [20]),
        (("--log-steps", "10"), [10, 10], [10, 20], [20]),
        (("--log-steps", "10", "--round-steps", "5"), [5] * 4, [10, 20], [20]),
        (("--summary-steps", "5"), [5] * 4, [20], [5, 10, 15, 20]),
        (("--summary-steps", "0", "--round-steps", "10"), [10, 10], [20], []),
    ],
)
def test_lines_and_summaries_appear_as_often_as_configured(
    rounds, capsys, arguments, lengths, printed, summarized
):
    found, folder = rounds("--steps", "20", *arguments)
    assert found == lengths
    outputs = [
        int(step) for step in re.findall(r"^step (\d+)  loss", capsys.readouterr().out, re.M)
    ]
    assert outputs == printed
    assert steps_in(folder) == summarized
