"""With TensorFlow: the line of a file, in one process, and the summaries that are written."""

from __future__ import annotations

import json
import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.agent.task import read_task  # noqa: E402
from trainer.programs.linear_regression import options, regression  # noqa: E402


class Said:
    """Keeps the figures of the last event of each kind."""

    def write(self, event: str, **figures: float) -> None:
        setattr(self, event, figures)


def summaries(folder) -> dict[str, str]:
    """Returns the tag and the kind of everything that is written for TensorBoard."""
    (file,) = folder.glob("tensorboard/train/events.out.tfevents.*")
    return {
        value.tag: "histogram" if value.HasField("histo") else "scalar"
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }


def test_a_files_line_is_found_and_every_summary_is_written(tmp_path):
    rows = [(x / 10, 3 * x / 10 - 2) for x in range(-10, 11)]
    (tmp_path / "points.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    chosen = options.parse(
        ["--csv", "points.csv", "--steps", "600", "--learning-rate", "0.1", "--save-secs", "0"],
        tmp_path,
    )
    output = Said()
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})
    regression.train(task, chosen, output)
    assert output.metrics["w"] == pytest.approx(3, abs=0.02)
    assert output.metrics["b"] == pytest.approx(-2, abs=0.02)
    assert output.training == {"images_per_step": None, "steps": 600}
    assert output.metrics["points_per_second"] > 0
    found = summaries(tmp_path)
    assert {"loss": "scalar", "w": "scalar", "b": "scalar", "histograms/w": "histogram",
            "histograms/b": "histogram", "histograms/z": "histogram", "gradients/w": "histogram",
            "gradients/b": "histogram"}.items() <= found.items()  # fmt: skip
    assert json.dumps(output.metrics)


def test_each_replica_has_its_own_share_of_a_file(tmp_path):
    (tmp_path / "points.csv").write_text("".join(f"{x},{2 * x}\n" for x in range(7)))
    chosen = options.parse(["--csv", "points.csv", "--batch-size", "12"], tmp_path)

    def seen(replica: int, replicas: int) -> set[float]:
        data = regression.points(chosen, replica, replicas).take(2)
        return {float(x) for batch, _ in data for x in batch}

    assert seen(0, 2) == {0, 2, 4, 6} and seen(1, 2) == {1, 3, 5}
    assert seen(0, 1) == seen(8, 9) == set(map(float, range(7)))
