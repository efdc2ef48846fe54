"""A starter: Keras `fit` on parameter servers. It learns y = 2 x0 - 3 x1 + 1 from made-up data.

This program runs on the chief alone. TF_CONFIG tells TensorFlow where the workers and the ps are;
they are servers that do what `fit` sends them. What has to outlive a container goes to /output, the
same directory for all tasks.
"""

import argparse
import json
import os
import time
from pathlib import Path

import tensorflow as tf  # tf.keras is tf_keras here: Keras 3 does not support parameter servers

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--steps-per-epoch", type=int, default=40)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.05)
options = parser.parse_args()


def examples(context):
    """Runs on each worker. With files: shard the list of files first, then read them."""
    x = tf.random.uniform([4096, 2], -1, 1, seed=7)
    y = 2 * x[:, :1] - 3 * x[:, 1:] + 1
    data = tf.data.Dataset.from_tensor_slices((x, y))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.shuffle(4096).repeat().batch(options.batch_size).prefetch(2)


def report(event, **figures):
    """Show figures while the program runs (`step`), or keep them in outcome.json (`metrics`)."""
    line = {"time": time.time(), "event": event, **figures}
    with Path(os.environ.get("CLUSTER_KIT_PROGRESS", os.devnull)).open("a") as file:
        file.write(json.dumps(line) + "\n")


class Report(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        rate = options.steps_per_epoch / (time.monotonic() - self.began)
        step = (epoch + 1) * options.steps_per_epoch
        report("step", step=step, steps_per_s=rate, loss=float(logs["loss"]))


tf.get_logger().setLevel("ERROR")  # or each save on the ps warns of retracing
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver()
)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(optimizer=tf.keras.optimizers.Adam(options.learning_rate), loss="mse")

history = model.fit(
    tf.keras.utils.experimental.DatasetCreator(examples),
    epochs=options.epochs,
    steps_per_epoch=options.steps_per_epoch,
    verbose=2,
    callbacks=[
        # Saves each epoch. From there it goes on by itself when the chief crashed or lost a ps, and
        # with `make cluster RESUME=1` when it was stopped, or is to train for more epochs.
        tf.keras.callbacks.BackupAndRestore("/output/backup", delete_checkpoint=False),
        tf.keras.callbacks.ModelCheckpoint(
            "/output/checkpoints/ckpt-{epoch}", save_weights_only=True
        ),
        Report(),
    ],
)

weights, bias = (value.numpy() for value in model.weights)
(w0,), (w1,) = weights
print(f"learned y = {w0:.2f} x0 {w1:+.2f} x1 {bias[0]:+.2f}")
if history.history.get("loss"):
    report("metrics", loss=float(history.history["loss"][-1]))
