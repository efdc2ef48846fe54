"""With TensorFlow: the trained model can be loaded by Keras 3, tf_keras and TensorFlow alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import PYTHON

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.classifier import classifier_model, options
from trainer.programs.classifier.classifier_model import exported

CLASSES = ("cat", "dog", "emu")
MODELS = ("cnn", "mobilenet_v2")
LOAD = """
import sys
import numpy as np
assert not any("trainer" in entry for entry in sys.path)
images = np.load("images.npy")
{library}
for name in {models}:
    np.save(name + "/found.npy", np.array(found(name + "/model")))
"""
LOADERS = {
    "keras 3": """
import keras
assert keras.__version__.startswith("3.")
def found(model):
    return keras.models.load_model(model + "/model.keras")(images, training=False)
""",
    "tf_keras": """
import tf_keras
def found(model):
    return tf_keras.models.load_model(model + "/model-tf_keras.keras")(images, training=False)
""",
    "tensorflow": """
import tensorflow as tf
def found(model):
    loaded = tf.saved_model.load(model)
    return loaded.serve(images)["probabilities"]
""",
}


def export_one(folder: Path, model: str, images: np.ndarray) -> np.ndarray:
    """Export a model to folder/model with random weights, and again with others; returns its output
    for the images."""
    given = options.parse(
        ["--model", model, "--image-size", "32", "--bn-momentum", "0.9"], folder, folder
    )
    network = classifier_model.new_model(given, len(CLASSES))
    random = np.random.default_rng(3)
    saved = exported(network, folder / "model", given, CLASSES)
    for _ in range(2):
        for weight in network.weights:  # variances, too, which must be above 0
            noise = random.uniform(0.5, 1.5, weight.shape)
            weight.assign(weight + 0.1 * noise)
        saved.write()
    assert [file.name for file in folder.iterdir()] == ["model"]
    assert (folder / "model" / "classes.txt").read_text().split() == list(CLASSES)
    expected = network(images, training=False).numpy()
    assert np.ptp(expected) > 1e-3
    return expected


def test_the_model_can_be_loaded_without_the_kit(tmp_path: Path) -> None:
    images = np.random.default_rng(4).uniform(0, 255, (4, 32, 32, 3)).astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    for model in MODELS:
        (tmp_path / model).mkdir()
    expected = {model: export_one(tmp_path / model, model, images) for model in MODELS}
    for library in LOADERS.values():
        done = subprocess.run(
            [PYTHON, "-c", LOAD.format(library=library, models=MODELS)],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}, timeout=120, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for model in MODELS:
            found = tmp_path / model / "found.npy"
            np.testing.assert_allclose(np.load(found), expected[model], atol=1e-4)
            found.unlink()
