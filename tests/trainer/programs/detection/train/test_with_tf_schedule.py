"""With TensorFlow: learning rates, compared with values computed by hand; optimizers in graph mode
and for fit."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.detection.config.pipeline import (  # noqa: E402
    Adam,
    ConstantRate,
    CosineRate,
    ExponentialRate,
    ManualStepRate,
    Momentum,
    RateStep,
    RmsProp,
    TrainConfig,
)
from trainer.programs.detection.train import optimizers  # noqa: E402
from trainer.programs.detection.train.graph_mode import graph_job  # noqa: E402
from trainer.programs.training.graph_mode.model_deploy import clipped  # noqa: E402


def rates(given: object, *steps: int, num_steps: int = 100) -> list[float]:
    return [float(optimizers.rate_at(tf.constant(s, tf.int64), given, num_steps)) for s in steps]


def test_a_warm_up_rises_linearly_to_the_rate():
    given = ConstantRate(learning_rate=0.8, warmup_steps=10, warmup_learning_rate=0.2)
    assert rates(given, 0, 5, 10, 99) == pytest.approx([0.2, 0.5, 0.8, 0.8])


def test_exponential_decay_in_steps_or_continuous():
    stairs = ExponentialRate(learning_rate=1.0, decay_steps=10, decay_factor=0.25)
    assert rates(stairs, 0, 9, 10, 25) == pytest.approx([1.0, 1.0, 0.25, 0.0625])
    smooth = ExponentialRate(learning_rate=1.0, decay_steps=10, decay_factor=0.25, staircase=False)
    assert rates(smooth, 5) == pytest.approx([0.5])


def test_a_cosine_falls_from_the_end_of_the_warm_up_to_zero():
    given = CosineRate(learning_rate=1.0, warmup_steps=20)
    assert rates(given, 10, 20, 60, 100, 200) == pytest.approx([0.5, 1.0, 0.5, 0.0, 0.0], abs=1e-6)
    shorter = CosineRate(learning_rate=1.0, total_steps=50)
    assert rates(shorter, 25, 50) == pytest.approx([0.5, 0.0], abs=1e-6)


def test_manual_rates_begin_at_their_step():
    steps = (RateStep(step=10, learning_rate=0.5), RateStep(step=20, learning_rate=0.1))
    given = ManualStepRate(learning_rate=1.0, schedule=steps)
    assert rates(given, 9, 10, 19, 20) == pytest.approx([1.0, 0.5, 0.5, 0.1])


@pytest.mark.parametrize("optimizer", [Momentum(momentum=0.5), Adam(beta_1=0.8)], ids=["m", "a"])
@pytest.mark.parametrize("norm", [0.0, 1.0])
def test_graph_mode_and_fit_change_a_weight_alike(optimizer, norm):
    """Three steps down the gradient (3, 4) of norm 5, at one rate: with momentum, fit's velocity
    includes the rate, the graph's does not."""
    given = config(optimizer, norm)
    weight = tf.Variable([1.0, 1.0])
    of_fit = optimizers.keras_optimizer(given, 10)
    for _ in range(3):
        of_fit.apply_gradients([(tf.constant([3.0, 4.0]), weight)])
    assert in_graph_mode(given) == pytest.approx(weight.numpy().tolist(), rel=1e-4)


def test_rmsprop_divides_by_the_root_of_the_mean_square():
    """Fit begins with a mean square of 0: the first step is rate · g / √(0.1 g² + 1)."""
    given = config(RmsProp(momentum=0.0, decay=0.9, epsilon=1.0))
    weight = tf.Variable([1.0, 1.0])
    optimizers.keras_optimizer(given, 10).apply_gradients([(tf.constant([3.0, 4.0]), weight)])
    assert weight.numpy().tolist() == pytest.approx(
        [1 - 0.1 * 3 / 1.9**0.5, 1 - 0.1 * 4 / 2.6**0.5]
    )
    assert all(after < 0.8 for after in in_graph_mode(given))


def config(optimizer: object, norm: float = 0.0, rate: float = 0.1) -> TrainConfig:
    return TrainConfig(
        num_steps=10,
        optimizer=optimizer,
        learning_rate=ConstantRate(learning_rate=rate),
        gradient_clipping_by_norm=norm,
    )


def in_graph_mode(given: TrainConfig) -> list[float]:
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", initializer=[1.0, 1.0], use_resource=True)
        step = v1.train.get_or_create_global_step()
        optimizer = optimizers.graph_optimizer(
            given, optimizers.rate_at(step, given.learning_rate, 10)
        )
        job = graph_job(SimpleNamespace(train_config=given))
        (gradient,) = clipped([tf.constant([3.0, 4.0])], job.clip_norm)
        apply = optimizer.apply_gradients([(gradient, weight)], step)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run(apply)
            return session.run(weight).tolist()


def test_clipping_shrinks_the_step_to_the_norm():
    given = config(Momentum(momentum=0.0), norm=0.5, rate=1.0)
    assert in_graph_mode(given) == pytest.approx([1 - 3 * 0.3, 1 - 3 * 0.4])
