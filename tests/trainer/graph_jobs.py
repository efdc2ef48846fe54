"""With TensorFlow: a small job in graph mode, and the contents of its checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss
from trainer.programs.training.graph_mode.options import GraphOptions

tf1 = tf.compat.v1
SIZE, BATCH = 4, 6
QUICK = GraphOptions(steps=20, save_secs=0, log_steps=10, summary_steps=5)


def numbers(replica: int, replicas: int) -> tf.data.Dataset:
    """Returns batches of one sequence, divided so that a round of n replicas equals one large
    batch."""
    drawn = np.random.default_rng(5).normal(size=(120 * BATCH, SIZE)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((drawn, (drawn**2).sum(1, keepdims=True)))
    return data.repeat().batch(BATCH).shard(replicas, replica)


def whole_rounds(replicas: int):
    """Returns the same sequence in large batches, for a single replica."""
    return lambda replica, _: numbers(0, 1).unbatch().batch(BATCH * replicas)


def weights() -> dict[str, tf.Variable]:
    start = tf1.random_normal_initializer(stddev=0.3, seed=7)
    return {name: tf1.get_variable(name, (SIZE, 1), initializer=start) for name in ("v", "w")}


def squared(made: dict[str, tf.Variable], batch: tuple[tf.Tensor, tf.Tensor]) -> ModelLoss:
    x, y = batch
    error = tf.matmul(x, made["v"]) + tf.matmul(x**2, made["w"]) - y
    return ModelLoss(tf.reduce_mean(error**2), {"largest": tf.reduce_max(error)})


def small_job(rate: float = 0.02, **changes: object) -> GraphJob:
    plain = GraphJob(
        inputs=numbers,
        build=weights,
        loss=squared,
        optimizer=lambda step: tf1.train.MomentumOptimizer(rate, 0.5),
        examples_per_batch=BATCH,
    )
    return replace(plain, **changes)


def values(checkpoint: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {name: reader.get_tensor(name) for name in ("v", "w", "global_step")}


def assert_same(found: Path, expected: Path) -> None:
    for name, value in values(expected).items():
        np.testing.assert_allclose(values(found)[name], value, atol=1e-5, err_msg=name)


def variable_on_ps(
    name: str, *shape: int, ps: int = 0, dtype: str = "float32", trained: bool = True
) -> tf.Variable:
    with tf1.device(f"/job:ps/task:{ps}/device:CPU:0"):
        return tf1.get_variable(name, shape, dtype, trainable=trained, use_resource=True)
