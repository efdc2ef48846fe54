"""With TensorFlow: variables in packs, and the tensors that a coordinator's step sends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402
from graph_jobs import variable_on_ps as variable  # noqa: E402

from trainer.programs.training import packs  # noqa: E402

tf1 = tf.compat.v1


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_variables_of_a_pack_are_alike_and_few_enough(graph):
    quarter = packs.PACK_BYTES // 16  # four bytes for each element
    variables = [
        variable("a", quarter),
        variable("other_ps", 1, ps=1),
        variable("b", 2 * quarter),
        variable("other_type", 1, dtype="float64"),
        variable("not_trained", 1, trained=False),
        variable("c", quarter),
        variable("too_much", 1),
        variable("alone", 2, packs.PACK_BYTES),
        variable("after_it"),
        variable("also_other_ps", ps=1),
    ]
    assert [[v.op.name for v in pack] for pack in packs.packs_of(variables)] == [
        ["a", "b", "c"], ["other_ps", "also_other_ps"], ["other_type"], ["not_trained"],
        ["too_much", "after_it"], ["alone"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "shapes", [[(), (3,), (2, 3), (0, 4), (1, 1, 5)], [()], [(3,)], [(2, 3)]], ids=str
)
def test_values_are_the_same_after_packing(graph, shapes):
    pack = [tf1.get_variable(f"v{n}", shape, use_resource=True) for n, shape in enumerate(shapes)]
    values = [np.random.default_rng(n).normal(size=s).astype("f") for n, s in enumerate(shapes)]
    vector = packs.packed([tf.constant(value) for value in values])
    assert vector.shape.rank == 1
    with tf1.Session() as session:
        found = session.run(packs.unpacked(vector, pack))
    for one, value in zip(found, values, strict=True):
        np.testing.assert_array_equal(one, value)


@pytest.fixture
def norm() -> tf.keras.Model:
    image = tf.keras.Input((1, 1, 2))
    return tf.keras.Model(image, tf.keras.layers.BatchNormalization(momentum=0.9)(image))


def test_averages_are_those_of_all_clones(norm):
    images = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], shape=(4, 1, 1, 2))

    @tf.function(autograph=False)
    def step() -> None:
        with packs.pulled(norm):
            for of_clone in tf.split(images, 2):
                norm(of_clone, training=True)

    step()
    step()
    mean = norm.layers[-1].moving_mean
    np.testing.assert_allclose(mean, (1 - 0.9**2) * np.array([4.0, 5.0]), rtol=1e-5)


def test_an_error_in_a_step_leaves_the_model_as_it_was(norm):
    @tf.function(autograph=False)
    def step() -> None:
        with packs.pulled(norm):
            norm(tf.zeros((1, 1, 1, 2)), training=True)
            raise ValueError("no step")

    with pytest.raises(ValueError, match="no step"):
        step()
    norm(tf.ones((4, 1, 1, 2)), training=True)
    np.testing.assert_allclose(norm.layers[-1].moving_mean, [0.1, 0.1], rtol=1e-5)


COMPARED = """
import json
import sys
import tensorflow as tf
from trainer.programs.training import optimizers, packs

keras = tf.keras
LAYERS = 20
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver()
)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
x = tf.random.stateless_uniform((16, 6), (1, 2))
y = tf.one_hot(tf.argmax(x[:, :3], 1), 3)

options = json.loads(sys.argv[2])

def build():
    keras.utils.set_random_seed(1)
    image = out = keras.Input((6,))
    for _ in range(LAYERS):
        # A bias before BatchNorm has the gradient 0: Adam makes a step of rounding errors.
        out = keras.layers.Dense(6, use_bias=False)(out)
        image_like = keras.layers.Reshape((1, 1, 6))(out)  # BatchNorm is fused for images only
        out = keras.layers.Flatten()(keras.layers.BatchNormalization()(image_like))
    model = keras.Model(image, keras.layers.Dense(3, activation="softmax")(out))
    optimizer = getattr(optimizers, sys.argv[1])(0.01, global_clipnorm=1.0, **options)
    optimizer.build(model.trainable_variables)
    return model, optimizer

def sent(function):
    # An op without a device runs where its variable is, or on the worker.
    graph = function.get_concrete_function().graph
    held = {inner.op: captured.device for captured, inner in graph.captures}
    def task(op):
        device = op.device or next((held[t.op] for t in op.inputs if t.op in held), "")
        spec = tf.DeviceSpec.from_string(device)
        return spec.job or "worker", spec.task or 0
    return {
        (given.name, task(op))
        for op in graph.get_operations()
        for given in op.inputs
        if given.op not in held and task(given.op) != task(op)
    }

with strategy.scope():
    ours, our_optimizer = build()
    theirs, their_optimizer = build()
    their_optimizer._is_for_servers = lambda distribution: False
    theirs.set_weights(ours.get_weights())

def in_packs():
    with packs.pulled(ours) as weights, tf.GradientTape() as tape:
        tape.watch(weights)
        loss = tf.reduce_mean(keras.losses.categorical_crossentropy(y, ours(x, training=True)))
    gradients = tape.gradient(loss, weights)
    our_optimizer.apply_gradients(zip(gradients, ours.trainable_variables))

def plain():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(keras.losses.categorical_crossentropy(y, theirs(x, training=True)))
    gradients = tape.gradient(loss, theirs.trainable_variables)
    their_optimizer.apply_gradients(zip(gradients, theirs.trainable_variables))

steps = [
    tf.function(lambda step=step: strategy.run(step), autograph=False) for step in (in_packs, plain)
]
for _ in range(5):
    for step in steps:
        coordinator.schedule(step)
        coordinator.join()
worst = max(
    float(tf.reduce_max(tf.abs(one.read_value() - other.read_value())))
    for one, other in zip(
        [*ours.weights, *our_optimizer.variables], [*theirs.weights, *their_optimizer.variables]
    )
)
assert [v._cached_value for v in map(packs.stored, ours.variables)] == [None] * len(ours.variables)
sent_by = [sorted(sent(step)) for step in steps]
figures = {
    "steps": int(our_optimizer.iterations.numpy()),
    "worst": worst,
    "sent": sent_by[0],
    "plain": len(sent_by[1]),
}
print("FIGURES", json.dumps(figures), flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "options"),
    [("Adam", {}), ("SGD", {"momentum": 0.9}), ("RMSprop", {"momentum": 0.9})],
)
def test_a_coordinators_step_sends_few_tensors_and_changes_the_same(
    run_task, tmp_path, free_port, kind, options
):
    cluster = {
        "chief": [f"127.0.0.1:{free_port()}"],
        "worker": [f"127.0.0.1:{free_port()}"],
        "ps": [f"127.0.0.1:{free_port()}" for _ in range(2)],
    }
    shared = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_LEADER": "chief-0"}
    for name in ("worker-0", "ps-0", "ps-1"):
        run_task(name, cluster, "serve", **shared)
    (tmp_path / "steps.py").write_text(COMPARED)
    chief = run_task(
        "chief-0", cluster, "run", str(tmp_path / "steps.py"), kind, json.dumps(options), **shared
    )
    output = chief.communicate(timeout=150)[0]
    assert chief.returncode == 0, output
    (line,) = [line for line in output.splitlines() if line.startswith("FIGURES ")]
    figures = json.loads(line.removeprefix("FIGURES "))
    assert figures["steps"] == 5
    assert figures["worst"] < 1e-6, figures
    assert len(figures["sent"]) <= 12 < 150 < figures["plain"], figures
