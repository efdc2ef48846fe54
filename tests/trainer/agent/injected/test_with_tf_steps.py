"""With TensorFlow: steps, losses and epochs of programs that report none; the programs are not
changed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import PYTHON

from trainer.agent.supervisor.child import HOOKS

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

FIT = """
import os, time
import {keras} as keras
import numpy as np
class Mine(keras.Sequential):
    def fit(self, *arguments, **keys):
        return super().fit(*arguments, **keys)
class Slow(keras.callbacks.Callback):
    ends = 0
    def on_train_batch_end(self, batch, logs=None):
        Slow.ends += 1
        time.sleep(0.02)
model = Mine([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["accuracy"])
x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
first = model.fit(x, y, 1, 2, 0, [Slow()], validation_data=(x, y))
again = model.fit(x, y, batch_size=1, epochs=1, verbose=0)
assert sorted(first.history) == ["accuracy", "loss", "val_accuracy", "val_loss"], first.history
assert len(first.history["loss"]) == 2 and first.epoch == [0, 1] and Slow.ends == 128
assert keras.models.clone_model(model).count_params() == 5
print("ended well")
"""
LOOP = """
import copy, time
import tensorflow as tf
import {keras} as keras
strategy = tf.distribute.{strategy}
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(1e-3)
    {build}
@tf.function
def step():
    def one():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones((8, 4))) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    strategy.run(one)
for _ in range(150):
    step()
    time.sleep(0.01)
assert int(optimizer.iterations.numpy()) == 150
print("ended well")
"""
KERASES = ["keras", "tf_keras"]


@pytest.fixture
def told(tmp_path: Path):
    """Returns a function that runs a program with the hooks, and returns its events."""
    progress = tmp_path / "worker-0.jsonl"

    def run(program: str, hooks: str = "steps,epochs", **variables: str) -> list[dict]:
        progress.write_text('{"event": "step", "step": 70}\n{"event": "start", "attempt": 2}\n')
        environment = os.environ | {
            "PYTHONPATH": str(HOOKS),
            "CLUSTER_KIT_AFTER_IMPORT": hooks,
            "CLUSTER_KIT_MAILBOX": str(tmp_path),
            "CLUSTER_KIT_PROGRESS": str(progress),
        }
        (tmp_path / "program.py").write_text(program)
        done = subprocess.run(
            [PYTHON, str(tmp_path / "program.py")],
            env=environment | variables,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == "ended well\n"
        events = [json.loads(line) for line in progress.read_text().splitlines()]
        return events[2:]

    return run


@pytest.mark.parametrize("keras", KERASES)
def test_steps_loss_and_epochs_of_fit(told, keras):
    events = told(FIT.format(keras=keras))
    assert all(event["counted"] for event in events)
    steps = [event for event in events if event["event"] == "step"]
    assert steps[-1]["step"] == 192  # of both calls
    assert [one["step"] for one in steps] == sorted({one["step"] for one in steps})
    assert 2 <= len(steps) <= 60
    assert all(one["loss"] >= 0 for one in steps[:2])
    assert 5 < steps[1]["steps_per_s"] < 200
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [one["epoch"] for one in epochs] == [1, 2, 1]
    assert all(one["loss"] >= 0 and 0 <= one["accuracy"] <= 1 for one in epochs)


@pytest.mark.parametrize("keras", KERASES)
@pytest.mark.parametrize("strategy", ["get_strategy()", 'MirroredStrategy(["CPU:0"])'])
def test_steps_of_a_custom_loop(told, keras, strategy):
    build = "optimizer.build(model.trainable_variables)"
    events = told(LOOP.format(keras=keras, strategy=strategy, build=build))
    assert {event["event"] for event in events} == {"step"}
    assert events[-1]["step"] == 150 and "loss" not in events[-1]


LOADED = """
import numpy as np
import {keras} as keras
x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
if {makes}:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
else:
    model = keras.models.load_model("{path}")
    assert int(np.array(model.optimizer.iterations)) == 64
    model.evaluate(x, y, verbose=0)
    __import__("time").sleep(2.5)
if {fits}:
    model.fit(x, y, 1, 1, 0)
    model.save("{path}")
print("ended well")
"""


@pytest.mark.parametrize("keras", KERASES)
def test_a_model_that_is_loaded_has_made_no_steps_before_fit(told, tmp_path, keras):
    def last_step(**what: bool) -> int:
        text = LOADED.format(keras=keras, path=tmp_path / "m.keras", **what)
        steps = [one["step"] for one in told(text) if one["event"] == "step"]
        return steps[-1] if steps else 0

    assert last_step(makes=True, fits=True) == 64
    assert last_step(makes=False, fits=False) == 0
    assert last_step(makes=False, fits=True) == 128


RESTORED = """
import tensorflow as tf
import {keras} as keras
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1)
optimizer.build(model.trainable_variables)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
if {trains}:
    for _ in range(70):
        optimizer.apply_gradients([(tf.ones_like(one), one) for one in model.trainable_variables])
    checkpoint.write("{path}")
else:
    checkpoint.read("{path}")
    assert int(optimizer.iterations.numpy()) == 70
    __import__("time").sleep(2.5)
print("ended well")
"""


@pytest.mark.parametrize("keras", KERASES)
def test_an_optimizer_that_is_only_restored_has_made_no_steps(told, tmp_path, keras):
    def steps(trains: bool) -> list[int]:
        text = RESTORED.format(keras=keras, path=tmp_path / "ckpt", trains=trains)
        return [event["step"] for event in told(text)]

    assert steps(True)[-1] == 70
    assert steps(False) == []


MIXED = """
import time
import {keras} as keras
import numpy as np
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
assert type(model.optimizer).__name__.startswith("LossScaleOptimizer")
model.fit(np.ones((64, 4), "float32"), np.ones((64, 1), "float32"), 1, 1, 0)
print("ended well")
"""


@pytest.mark.parametrize("keras", KERASES)
def test_steps_with_mixed_precision(told, keras):
    assert [one["step"] for one in told(MIXED.format(keras=keras)) if "step" in one][-1] == 64


def test_a_program_that_reports_steps_itself(told):
    says = """
import json, os
def say(**event):
    with open(os.environ["CLUSTER_KIT_PROGRESS"], "a") as file:
        file.write(json.dumps(event) + "\\n")
say(event="step", step=3)
"""
    events = told(says + FIT.format(keras="tf_keras"))
    assert events == [{"event": "step", "step": 3}]


def test_a_coordinators_epochs_only(told):
    events = told(FIT.format(keras="tf_keras"), "epochs")
    assert [event["event"] for event in events] == ["epoch"] * 3


def test_graph_mode_is_not_changed(told):
    program = """
import tensorflow as tf
tf.compat.v1.disable_v2_behavior()
import tf_keras
optimizer = tf_keras.optimizers.legacy.Adam()
model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(4,))])
model.compile(optimizer, "mse")
import numpy, time
model.fit(numpy.ones((640, 4)), numpy.ones((640, 1)), 1, verbose=0)
time.sleep(1.5)
model.fit(numpy.ones((640, 4)), numpy.ones((640, 1)), 1, verbose=0)
print("ended well")
"""
    assert not [event for event in told(program) if event["event"] == "step"]
