"""With TensorFlow: updates by a coordinator equal those of `fit` on the same batches."""

from __future__ import annotations

import json
import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
SMALL = ("--model", "cnn", "--image-size", "8", "--batch-size", "8", "--no-flip")


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


SETUP = """
import sys
import tensorflow as tf
from trainer.programs.classifier.async_calls import AsyncCalls, STEPS
from trainer.programs.classifier.classifier_model import Adam
from trainer.programs.classifier.interruption import Coordinated
from trainer.programs.classifier.sync_rounds import SyncRounds

keras = tf.keras
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver(),
    variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2),
)
x = tf.random.stateless_uniform((16, 6), (1, 2))
y = tf.one_hot(tf.argmax(x[:, :3], 1), 3)

def build(kind, optimizer):
    keras.utils.set_random_seed(1)
    image = keras.Input((6,))
    model = kind(image, keras.layers.Dense(3, activation="softmax")(image))
    model.compile(optimizer(0.05), "categorical_crossentropy")
    return model

def always_the_same():
    return tf.data.Dataset.from_tensors((x, y)).repeat()

with strategy.scope():
    network = build(Coordinated, Adam)
plain = build(keras.Model, keras.optimizers.Adam)
last = network.layers[-1]
ours = (last.kernel, last.bias)  # in two parts each
plain.set_weights([tf.convert_to_tensor(weight).numpy() for weight in ours])
"""
ROUNDS = """
rounds = SyncRounds(network, always_the_same, workers=2)
losses = [rounds.run(5)["loss"] for _ in range(2)]
"""
CALLS = """
rounds = AsyncCalls(network, always_the_same, workers=1)
figures = [rounds.run(5), rounds.run(5)]
losses = [one["loss"] for one in figures]
assert [(one["staleness_mean"], one["staleness_max"]) for one in figures] == [(0, 0)] * 2, figures
"""
COMPARED = """
history = plain.fit(x, y, batch_size=16, epochs=10, shuffle=False, verbose=0).history["loss"]
expected = [sum(history[:5]) / 5, sum(history[5:]) / 5]
worst = max(abs(a - b) for a, b in zip(losses, expected))
for weight, theirs in zip(ours, plain.get_weights()):
    worst = max(worst, float(tf.reduce_max(tf.abs(tf.convert_to_tensor(weight) - theirs))))
print("updates", int(network.optimizer.iterations.numpy()), "worst", worst, flush=True)
if worst >= 1e-5:
    sys.exit(9)
"""
AGAIN = """
# A call whose first three of five steps another worker has made.
rounds._tallies[0, STEPS].assign(3.0)
rounds._coordinator.schedule(rounds._call, (rounds._batches, tf.constant(0), tf.constant(5)))
rounds._coordinator.join()
print("then", int(network.optimizer.iterations.numpy()), rounds._tallies[0, STEPS].numpy())
"""


def trained(run_task, folder, free_port, workers: int, *parts: str) -> str:
    """Returns what the chief of a program made of these parts prints."""
    cluster = cluster_of(free_port, "chief", *["worker"] * workers, "ps", "ps")
    shared = {
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}",
        "CLUSTER_KIT_LEADER": "chief-0",
    }
    for name in (*(f"worker-{index}" for index in range(workers)), "ps-0", "ps-1"):
        run_task(name, cluster, "serve", **shared)
    (folder / "rounds.py").write_text("".join(parts))
    chief = run_task("chief-0", cluster, "run", str(folder / "rounds.py"), **shared)
    output = chief.communicate(timeout=150)[0]
    assert chief.returncode == 0, output
    return output


def test_a_round_applies_the_mean_of_all_gradients_once(run_task, tmp_path, free_port):
    output = trained(run_task, tmp_path, free_port, 2, SETUP, ROUNDS, COMPARED)
    assert "updates 10 " in output


def test_a_call_makes_the_steps_of_fit_and_none_of_them_twice(run_task, tmp_path, free_port):
    output = trained(run_task, tmp_path, free_port, 1, SETUP, CALLS, COMPARED, AGAIN)
    assert "updates 10 " in output
    assert "then 12 5.0" in output
