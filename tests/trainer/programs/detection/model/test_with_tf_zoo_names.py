"""With TensorFlow: checkpoints whose variables have the names of slim and of the model zoo."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402

from trainer.agent.errors import ContractError  # noqa: E402
from trainer.programs.detection.config.pipeline import Anchors, ConstantRate, Model, TrainConfig  # noqa: E402
from trainer.programs.detection.model import ssd, weights  # noqa: E402

KINDS = ("mobilenet_v1", "mobilenet_v2")
SOME = {
    "mobilenet_v1": {
        "conv1/kernel": "MobilenetV1/Conv2d_0/weights",
        "conv1_bn/gamma": "MobilenetV1/Conv2d_0/BatchNorm/gamma",
        "conv_dw_3/depthwise_kernel": "MobilenetV1/Conv2d_3_depthwise/depthwise_weights",
        "conv_pw_11_bn/moving_mean": "MobilenetV1/Conv2d_11_pointwise/BatchNorm/moving_mean",
    },
    "mobilenet_v2": {
        "Conv1/kernel": "MobilenetV2/Conv/weights",
        "bn_Conv1/beta": "MobilenetV2/Conv/BatchNorm/beta",
        "expanded_conv_depthwise/depthwise_kernel":
            "MobilenetV2/expanded_conv/depthwise/depthwise_weights",
        "expanded_conv_project_BN/gamma": "MobilenetV2/expanded_conv/project/BatchNorm/gamma",
        "block_3_expand/kernel": "MobilenetV2/expanded_conv_3/expand/weights",
        "block_13_expand_BN/moving_variance":
            "MobilenetV2/expanded_conv_13/expand/BatchNorm/moving_variance",
    },
}  # fmt: skip


@functools.cache
def network(kind: str) -> tf.keras.Model:
    """Returns a network that is made once: tests only read its weights."""
    options = Model(
        num_classes=3, feature_extractor=kind, depth_multiplier=0.5, image_size=64,
        anchors=Anchors(feature_strides=(16, 32)),
    )  # fmt: skip
    return ssd.build(options, 1).network


def starting_from(path: Path, kind: str = "detection") -> TrainConfig:
    return TrainConfig(
        num_steps=1,
        learning_rate=ConstantRate(learning_rate=1.0),
        fine_tune_checkpoint=str(path),
        fine_tune_checkpoint_type=kind,
    )


def written(path: Path, values: dict[str, np.ndarray]) -> Path:
    """Write a checkpoint by names, with the further entries that a training writes."""
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=list(values.values()),
    )
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("above", ["", "FeatureExtractor/"])
def test_every_variable_of_the_backbone_has_a_name_in_slim(tmp_path, capsys, kind, above):
    made = network(kind)
    names = {weights.name_of(v): v for v in made.weights}
    backbone = [name for name in names if ssd.is_of_backbone(name)]
    assert SOME[kind].items() <= {name: weights.slim_name(name) for name in backbone}.items()
    chance = np.random.default_rng(3)
    values = {}
    for name in backbone:
        shape = names[name].shape
        scope = f"{above}{weights.slim_name(name)}"
        values[scope] = chance.normal(size=shape).astype(np.float32)
        values[f"{scope}/Momentum"] = values[f"{scope}/ExponentialMovingAverage"] = (
            0 * values[scope]
        )
    values["BoxPredictor_0/BoxEncodingPredictor/weights"] = np.zeros((1, 1, 8, 24), np.float32)
    values["global_step"] = np.int64(7)
    path = written(tmp_path / "model.ckpt-7", values)
    fitting = weights.to_start_from(starting_from(path, "classification"), made.weights)
    assert {weights.name_of(v) for v in fitting.values()} == set(backbone)
    for variable, value in weights.values(str(path), fitting):
        expected = values[f"{above}{weights.slim_name(weights.name_of(variable))}"]
        assert np.array_equal(value, expected)
    output = capsys.readouterr().out
    assert f"{len(backbone)} of {len(names)} variables start from" in output
    assert f"{len(backbone)} of them under other names" in output
    assert (
        f"{len(names) - len(backbone)} start by chance" in output
        and "predictions_16/kernel" in output
    )


def test_names_with_a_model_prefix_are_found(tmp_path):
    made = network("mobilenet_v2")
    values = {f"ssd/model/{weights.name_of(v)}": v.numpy() for v in made.weights}
    values["Adam/m/Conv1/kernel"] = values["ssd/model/Conv1/kernel"] * 0
    path = written(tmp_path / "named", values)
    fitting = weights.to_start_from(starting_from(path), made.weights)
    assert len(fitting) == len(made.weights)
    assert all(key.startswith("ssd/model/") for key in fitting)


def test_another_backbones_checkpoint_is_refused(tmp_path):
    old = network("mobilenet_v1")
    values = {
        weights.slim_name(weights.name_of(v)): v.numpy()
        for v in old.weights
        if ssd.is_of_backbone(weights.name_of(v))
    }
    path = written(tmp_path / "v1", values)
    with pytest.raises(ContractError, match=r"none of its .* fits one of the model's") as refused:
        weights.to_start_from(starting_from(path), network("mobilenet_v2").weights)
    assert "which slim calls MobilenetV2/Conv/weights" in str(refused.value)
