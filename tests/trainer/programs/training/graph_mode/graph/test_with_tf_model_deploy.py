"""With TensorFlow: clones equal one large batch; sums, means, summaries, and devices."""

from __future__ import annotations

import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402

from trainer.programs.training.graph_mode import model_deploy  # noqa: E402
from trainer.programs.training.graph_mode.model_deploy import Placement  # noqa: E402
from trainer.programs.training.graph_mode.replica import DeploymentConfig  # noqa: E402

tf1 = tf.compat.v1
STEPS, BATCH, SIZE = 6, 8, 5


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def session(clones: int) -> tf1.Session:
    return tf1.Session(config=tf1.ConfigProto(device_count={"CPU": clones}))


def batches(clones: int):
    """Returns batches whose element i is the same data, however many clones share it."""
    numbers = np.random.default_rng(3)
    x = numbers.normal(size=(STEPS * BATCH * 4, SIZE)).astype(np.float32)
    y = (x**2).sum(1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH * 4 // clones)
    return tf1.data.make_one_shot_iterator(data)


def two_layers(iterator, scale: float = 0.0):
    """A model function with a loss, an update, and weights with a penalty of `scale`."""
    x, y = iterator.get_next()
    penalty = (lambda w: scale * tf.nn.l2_loss(w)) if scale else None
    layer = x
    for number, width in enumerate((7, 1)):
        kernel = tf1.get_variable(
            f"layer_{number}/kernel", (layer.shape[1], width), regularizer=penalty,
            initializer=tf1.random_normal_initializer(stddev=0.3, seed=number + 1),
        )  # fmt: skip
        layer = tf.matmul(layer, kernel)
        layer = tf.tanh(layer) if number == 0 else layer
    tf1.losses.add_loss(tf.reduce_mean(tf.square(layer - y)))
    return layer


OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.05),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.02, 0.9),
    "adam": lambda: tf1.train.AdamOptimizer(0.01),
}


def after_training(clones: int, optimizer: str, scale: float) -> dict[str, np.ndarray]:
    with tf.Graph().as_default():
        config = DeploymentConfig(num_clones=clones, clone_on_cpu=True)
        model = model_deploy.deploy(
            config, two_layers, (batches(clones),), {"scale": scale}, OPTIMIZERS[optimizer]()
        )
        with session(clones) as running:
            running.run(tf1.global_variables_initializer())
            for _ in range(STEPS):
                running.run(model.train_op)
            return {v.op.name: running.run(v) for v in tf1.global_variables()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("scale", [0.0, 0.3])
def test_clones_equal_one_large_batch(optimizer, scale):
    whole = after_training(1, optimizer, scale)
    for clones in (2, 4):
        shared = after_training(clones, optimizer, scale)
        assert shared.keys() == whole.keys(), "a checkpoint of n clones is that of one"
        for name, value in whole.items():
            np.testing.assert_allclose(shared[name], value, atol=1e-5, err_msg=name)
    assert whole["global_step"] == STEPS


def test_regularization_has_an_effect_and_is_counted_once():
    plain, penalized = after_training(2, "sgd", 0.0), after_training(2, "sgd", 0.3)
    name = "layer_0/kernel"
    assert np.abs(plain[name] - penalized[name]).max() > 0.01
    clones = model_deploy.create_clones(
        DeploymentConfig(num_clones=2, clone_on_cpu=True), two_layers, (batches(2), 0.3)
    )
    total, _ = model_deploy.optimize_clones(clones, OPTIMIZERS["sgd"]().compute_gradients)
    losses = tf1.get_collection(tf1.GraphKeys.LOSSES)
    penalties = tf1.get_collection(tf1.GraphKeys.REGULARIZATION_LOSSES)
    assert (len(losses), len(penalties)) == (2, 2)
    with session(2) as running:
        running.run(tf1.global_variables_initializer())
        found = running.run((total, losses, penalties))
    np.testing.assert_allclose(found[0], np.mean(found[1]) + np.sum(found[2]), rtol=1e-6)


def test_the_sum_and_the_mean_of_gradients():
    v, w, unused = (tf1.get_variable(name, ()) for name in ("v", "w", "unused"))
    of_clones = [
        [(tf.constant(1.0), v), (None, w), (None, unused)],
        [(tf.constant(4.0), v), (tf.constant(6.0), w), (None, unused)],
    ]
    summed = model_deploy.sum_gradients(of_clones)
    mean = model_deploy.average_gradients(of_clones)
    assert [pair[1] for pair in summed] == [v, w]
    with session(1) as running:
        assert running.run([gradient for gradient, _ in summed]) == [5.0, 6.0]
        assert running.run([gradient for gradient, _ in mean]) == [2.5, 3.0]


def test_sparse_gradients_are_summed_with_dense_ones():
    table = tf1.get_variable("table", (3, 2))
    sparse = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1]), tf.constant([3, 2]))
    ((total, _),) = model_deploy.sum_gradients([[(sparse, table)], [(tf.ones((3, 2)), table)]])
    with session(1) as running:
        assert running.run(total).tolist() == [[1, 1], [2, 2], [1, 1]]


def test_gradient_summaries():
    config = DeploymentConfig(num_clones=2, clone_on_cpu=True)
    model = model_deploy.deploy(
        config, two_layers, (batches(2),), optimizer=OPTIMIZERS["sgd"](), summarize_gradients=True
    )
    with session(2) as running:
        running.run(tf1.global_variables_initializer())
        written = tf1.Summary.FromString(running.run(model.summary_op))
    tags = {value.tag: value for value in written.value}
    assert {"total_loss", "gradients/layer_0/kernel", "gradient_norm/layer_1/kernel"} <= set(tags)
    assert tags["gradient_norm/layer_0/kernel"].simple_value > 0
    assert tags["gradients/layer_0/kernel"].histo.num == SIZE * 7


def test_without_an_optimizer_there_are_only_clones():
    model = model_deploy.deploy(DeploymentConfig(clone_on_cpu=True), two_layers, (batches(1),))
    assert model.train_op is None
    assert model.total_loss is None
    assert [clone.scope for clone in model.clones] == [""]


def test_only_the_updates_of_the_first_clone_run():
    def counting():
        count = tf1.get_variable("count", (), initializer=tf1.zeros_initializer())
        weight = tf1.get_variable("weight", ())
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, count.assign_add(1.0).op)
        tf1.losses.add_loss(weight**2)
        return count

    config = DeploymentConfig(num_clones=3, clone_on_cpu=True)
    model = model_deploy.deploy(config, counting, optimizer=OPTIMIZERS["sgd"]())
    with session(3) as running:
        running.run(tf1.global_variables_initializer())
        running.run(model.train_op)
        running.run(model.train_op)
        assert running.run(model.clones[0].outputs) == 2


def test_devices_of_a_replica_with_clones(graph):
    config = DeploymentConfig(
        num_clones=2, clone_on_cpu=True, replica_id=1, num_replicas=2, num_ps_tasks=2
    )
    placement = Placement(config)
    with tf1.device(placement.around(config.inputs_device())):
        iterator = tf1.data.make_one_shot_iterator(tf.data.Dataset.from_tensors((1.0, 2.0)))

    def model():
        with tf1.device(config.inputs_device()):
            x, y = iterator.get_next()
        big = tf1.get_variable("big", (100,))
        small = [tf1.get_variable(f"small_{n}", (10,)) for n in range(3)]
        tf1.losses.add_loss(tf.reduce_sum(tf.add_n(small) * x) + tf.reduce_sum(big) * y)
        return x

    clones = model_deploy.create_clones(config, model, placement=placement)
    worker = "/job:worker/task:1/device:CPU:"
    assert [clone.device for clone in clones] == [f"{worker}0", f"{worker}1"]
    assert [clone.scope for clone in clones] == ["clone_0/", "clone_1/"]
    assert {clone.outputs.device for clone in clones} == {f"{worker}0"}
    where = {v.op.name: v.device for v in tf1.global_variables()}
    assert where.pop("big") == "/job:ps/task:0/device:CPU:0"
    assert set(where) == {"small_0", "small_1", "small_2"}
    assert set(where.values()) == {"/job:ps/task:1/device:CPU:0"}, "the lighter ps"
    for number, clone in enumerate(clones):
        sums = [op for op in graph.get_operations() if op.type == "AddN"]
        assert {op.device for op in sums if op.name.startswith(clone.scope)} == {
            f"{worker}{number}"
        }
