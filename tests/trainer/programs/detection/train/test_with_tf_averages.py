"""With TensorFlow: moving averages of the variables: kept, saved in checkpoints, and loaded."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402
from graph_jobs import QUICK, small_job  # noqa: E402

from trainer.agent.task import read_task  # noqa: E402
from trainer.programs.detection.config.pipeline import (  # noqa: E402
    Anchors,
    Model,
    Momentum,
)
from trainer.programs.detection.model import ssd, weights  # noqa: E402
from trainer.programs.detection.train import optimizers  # noqa: E402
from trainer.programs.training.graph_mode.run import run  # noqa: E402

tf1 = tf.compat.v1
DECAY = 0.5


def trained(output, steps: int, kept: bool) -> dict[str, np.ndarray]:
    """Returns the contents of the checkpoint after these steps with a constant gradient."""
    options = Momentum(use_moving_average=kept, moving_average_decay=DECAY)
    job = small_job(
        optimizer=lambda step: optimizers.kept_by(tf1.train.GradientDescentOptimizer(0.01), options)
    )
    task = read_task({"CLUSTER_KIT_OUTPUT": str(output)})
    result = run(task, job, replace(QUICK, steps=steps), None)
    reader = tf.train.load_checkpoint(str(result.checkpoint))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_each_update_updates_the_averages(tmp_path):
    values = [trained(tmp_path / str(steps), steps, True) for steps in (1, 2, 3)]
    average = f"v{weights.AVERAGE}"
    for before, after in pairwise(values):
        expected = DECAY * before[average] + (1 - DECAY) * after["v"]
        np.testing.assert_allclose(after[average], expected, rtol=1e-5, atol=1e-6)
    assert not np.allclose(values[-1][average], values[-1]["v"])
    plain = trained(tmp_path / "plain", 3, False)
    assert not [name for name in plain if name.endswith(weights.AVERAGE)]
    np.testing.assert_allclose(plain["v"], values[-1]["v"], rtol=1e-5)


def test_averages_are_loaded_if_requested(tmp_path):
    options = Model(num_classes=3, depth_multiplier=0.35, image_size=32,
                    anchors=Anchors(feature_strides=(8, 16)))  # fmt: skip
    network = ssd.build(options, 1).network
    names = {weights.name_of(v): v.numpy() for v in network.weights}
    averaged = {f"{name}{weights.AVERAGE}": value + 1 for name, value in names.items()
                if "moving_" not in name}  # fmt: skip
    values = {**names, **averaged}
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "model.ckpt-1"), tensor_names=list(values),
        shape_and_slices=[""] * len(values), tensors=list(values.values()),
    )  # fmt: skip
    for asked in (True, False):
        weights.load(network, str(tmp_path / "model.ckpt-1"), asked)
        for variable in network.weights:
            name = weights.name_of(variable)
            expected = names[name] + (asked and "moving_" not in name)
            np.testing.assert_array_equal(variable.numpy(), expected)
