"""With TensorFlow: the value of the staleness; a synchronous update equals one of a large batch."""

from __future__ import annotations

import json
import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.classifier.callbacks import LIMIT, AsynchronousModel, Staleness  # noqa: E402

keras = tf.keras
SMALL = ("--model", "cnn", "--image-size", "8", "--batch-size", "8", "--no-flip")


def figures(staleness: Staleness) -> tuple[float, float]:
    found = staleness.result()
    return float(found["staleness_mean"]), float(found["staleness_max"])


def test_staleness_is_the_number_of_other_pushes_between_pull_and_push():
    staleness = Staleness()
    for pulled in (0, 0, 0, 3, LIMIT * -2):
        staleness.update_state(tf.constant(pulled, tf.int64))
    # there were 0, 1, 2, 3, 4 pushes before each
    assert figures(staleness) == pytest.approx(((0 + 1 + 2 + 0 + LIMIT - 1) / 5, LIMIT - 1))
    staleness.reset_state()
    assert figures(staleness) == (0.0, 0.0)


def test_the_asynchronous_model_trains_like_any_other():
    def trained(kind: type[keras.Model]) -> list:
        keras.utils.set_random_seed(1)
        image = keras.Input((4,))
        model = kind(image, keras.layers.Dense(3, activation="softmax")(image))
        model.compile(keras.optimizers.Adam(0.1), "categorical_crossentropy",
                      [keras.metrics.CategoricalAccuracy(name="accuracy")])  # fmt: skip
        if kind is AsynchronousModel:
            model.staleness = Staleness()
        x = tf.random.stateless_uniform((32, 4), (1, 2))
        y = tf.one_hot(tf.argmax(x[:, :3], 1), 3)
        history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history
        assert "staleness" not in history
        if kind is AsynchronousModel:
            assert history["staleness_max"] == [0.0] * 3
        return [*model.get_weights()[:2], history["loss"], history["accuracy"]]

    for ours, plain in zip(trained(AsynchronousModel), trained(keras.Model), strict=True):
        assert abs(tf.constant(ours) - tf.constant(plain)).numpy().max() < 1e-6


def cluster_of(free_port, *roles: str) -> dict[str, list[str]]:
    cluster: dict[str, list[str]] = {}
    for role in roles:
        cluster.setdefault(role, []).append(f"127.0.0.1:{free_port()}")
    return cluster


def test_two_tasks_reduce_to_the_same_losses_and_one_result(run_task, events, pictures, free_port):
    cluster = cluster_of(free_port, "worker", "worker")
    beacon = f"127.0.0.1:{free_port()}"
    tasks = [
        run_task(
            f"worker-{index}", cluster, "run", "classifier", *SMALL, "--strategy", "all-reduce",
            "--epochs", "2", "--steps-per-epoch", "10", "--learning-rates", "0:1e-3",
            CLUSTER_KIT_DATA=pictures, CLUSTER_KIT_BEACON=beacon, CLUSTER_KIT_LEADER="worker-0",
            CLUSTER_KIT_SERVERS="", CLUSTER_KIT_SIMULATE_GPUS=2 * index,
        )
        for index in (0, 1)
    ]  # fmt: skip
    outputs = [task.communicate(timeout=150)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    assert "of 2 simulated devices it takes the first" in outputs[1]
    leader = events("worker-0")
    metrics = next(e for e in leader if e["event"] == "metrics")
    assert (metrics["updates"], metrics["staleness_max"]) == (20, 0)
    training = next(e for e in leader if e["event"] == "training")
    assert (training["strategy"], training["images_per_step"]) == ("all-reduce", 16)
    assert not [e for e in events("worker-1") if e["event"] in ("epoch", "metrics", "step")]
    assert json.loads((pictures.parent / "result.json").read_text())["test_accuracy"] > 0.9


ROUNDS = """
import sys
import tensorflow as tf
from trainer.programs.classifier.interruption import Resumable
from trainer.programs.classifier.sync_rounds import SyncRounds

keras = tf.keras
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver(),
    variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2),
)
x = tf.random.stateless_uniform((16, 6), (1, 2))
y = tf.one_hot(tf.argmax(x[:, :3], 1), 3)

def build():
    keras.utils.set_random_seed(1)
    image = keras.Input((6,))
    model = Resumable(image, keras.layers.Dense(3, activation="softmax")(image))
    model.compile(keras.optimizers.Adam(0.05), "categorical_crossentropy")
    return model

def always_the_same():
    return tf.data.Dataset.from_tensors((x, y)).repeat()

with strategy.scope():
    network = build()
plain = build()
last = network.layers[-1]
ours = (last.kernel, last.bias)  # in two parts each
plain.set_weights([tf.convert_to_tensor(weight).numpy() for weight in ours])
rounds = SyncRounds(network, always_the_same, workers=2)
losses = [rounds.run(5)["loss"] for _ in range(2)]
history = plain.fit(x, y, batch_size=16, epochs=10, shuffle=False, verbose=0).history["loss"]
expected = [sum(history[:5]) / 5, sum(history[5:]) / 5]
worst = max(abs(a - b) for a, b in zip(losses, expected))
for weight, theirs in zip(ours, plain.get_weights()):
    worst = max(worst, float(tf.reduce_max(tf.abs(tf.convert_to_tensor(weight) - theirs))))
print("updates", int(network.optimizer.iterations.numpy()), "worst", worst, flush=True)
sys.exit(0 if worst < 1e-5 else 9)
"""


def test_a_round_applies_the_mean_of_all_gradients_once(run_task, tmp_path, free_port):
    cluster = cluster_of(free_port, "chief", "worker", "worker", "ps", "ps")
    shared = {
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}",
        "CLUSTER_KIT_LEADER": "chief-0",
    }
    for name in ("worker-0", "worker-1", "ps-0", "ps-1"):
        run_task(name, cluster, "serve", **shared)
    (tmp_path / "rounds.py").write_text(ROUNDS)
    chief = run_task("chief-0", cluster, "run", str(tmp_path / "rounds.py"), **shared)
    output = chief.communicate(timeout=150)[0]
    assert chief.returncode == 0, output
    assert "updates 10 " in output
