"""With TensorFlow: what a training leaves is loaded by Keras 3, tf_keras and TensorFlow alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.classifier import options
from trainer.programs.classifier.model import architecture
from trainer.programs.classifier.model.export import export

CLASSES = ("cat", "dog", "emu")
LOAD = """
import sys
import numpy as np
assert not any("trainer" in entry for entry in sys.path)
images = np.load("images.npy")
{load}
np.save("found.npy", np.array(found))
"""
LOADERS = {
    "keras 3": """
import keras
assert keras.__version__.startswith("3.")
found = keras.models.load_model("model/model.keras").predict(images, verbose=0)
""",
    "tf_keras": """
import tf_keras
found = tf_keras.models.load_model("model/model-tf_keras.keras").predict(images, verbose=0)
""",
    "tensorflow": """
import tensorflow as tf
model = tf.saved_model.load("model")
found = model.serve(images)["probabilities"]
""",
}


@pytest.mark.parametrize("model", ["cnn", "mobilenet_v2"])
def test_the_result_is_loaded_without_the_kit(tmp_path: Path, model: str) -> None:
    given = options.parse(
        ["--model", model, "--image-size", "32", "--bn-momentum", "0.9"], tmp_path, tmp_path
    )
    network = architecture.network(given, len(CLASSES))
    random = np.random.default_rng(3)
    for weight in network.weights:  # variances, too: above 0
        noise = random.uniform(0.5, 1.5, weight.shape)
        weight.assign(weight + 0.1 * noise)
    export(network, tmp_path / "model", given, CLASSES)
    assert (tmp_path / "model" / "classes.txt").read_text().split() == list(CLASSES)
    images = random.uniform(0, 255, (4, 32, 32, 3)).astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    expected = network(images, training=False).numpy()
    assert np.ptp(expected) > 1e-3
    for load in LOADERS.values():
        done = subprocess.run(
            [sys.executable, "-c", LOAD.format(load=load)],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}, timeout=120, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-4)
