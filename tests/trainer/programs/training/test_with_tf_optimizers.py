"""With TensorFlow: optimizers that take one op for an update change the same as tf_keras's."""

from __future__ import annotations

import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.training import optimizers  # noqa: E402

keras = tf.keras


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Adam", {}),
        ("SGD", {}),
        ("SGD", {"momentum": 0.9}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("RMSprop", {}),
        ("RMSprop", {"momentum": 0.9, "rho": 0.8, "epsilon": 0.01}),
        ("RMSprop", {"momentum": 0.9, "centered": True}),
    ],
)
def test_weights_and_slots_change_as_with_tf_keras(kind, options):
    def trained(library) -> list:
        keras.utils.set_random_seed(1)
        image = keras.Input((4,))
        model = keras.Model(image, keras.layers.Dense(3, activation="softmax")(image))
        model.compile(getattr(library, kind)(0.01, **options), "categorical_crossentropy")
        x = tf.random.stateless_uniform((32, 4), (1, 2))
        y = tf.one_hot(tf.argmax(x[:, :3], 1), 3)
        model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0)
        return [*model.get_weights(), *[v.numpy() for v in model.optimizer.variables]]

    ours, plain = trained(optimizers), trained(keras.optimizers)
    assert len(ours) == len(plain)
    for one, other in zip(ours, plain, strict=True):
        assert abs(tf.constant(one) - tf.constant(other)).numpy().max() < 1e-5
