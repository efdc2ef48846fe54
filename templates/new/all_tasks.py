"""A starter: Keras `fit` by all-reduce. It learns y = 2 x0 - 3 x1 + 1 from made-up data.

Every worker runs this program. TF_CONFIG tells TensorFlow who the others are; after each step all
apply the mean of everybody's gradients. What has to outlive a container goes to /output, the same
directory for all tasks.
"""

import argparse
import json
import os
import time
from pathlib import Path

import tensorflow as tf  # tf.keras is tf_keras here: Keras 3's fit does not know this strategy

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--steps-per-epoch", type=int, default=40)
parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
parser.add_argument("--learning-rate", type=float, default=0.05)
options = parser.parse_args()

# Before anything else of TensorFlow's: the workers meet in here.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
LEADS = json.loads(os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}
# All workers save, because that is a step that they take together; only the leader's counts.
HERE = "/output" if LEADS else "/tmp/not-kept"


def examples():
    """The whole data set: `fit` gives each worker its own part of every batch."""
    x = tf.random.uniform([4096, 2], -1, 1, seed=7)
    y = 2 * x[:, :1] - 3 * x[:, 1:] + 1
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(4096, seed=7).repeat()
    sharding = tf.data.Options()
    sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    batch = options.batch_size * strategy.num_replicas_in_sync
    return data.batch(batch).prefetch(2).with_options(sharding)


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


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(optimizer=tf.keras.optimizers.Adam(options.learning_rate), loss="mse")

history = model.fit(
    examples(),
    epochs=options.epochs,
    steps_per_epoch=options.steps_per_epoch,
    verbose=2 if LEADS else 0,
    callbacks=[
        # Saves each epoch. From there all go on by themselves when a worker was lost, and with
        # `make cluster RESUME=1` when they were stopped, or are to train for more epochs.
        tf.keras.callbacks.BackupAndRestore("/output/backup", delete_checkpoint=False),
        tf.keras.callbacks.ModelCheckpoint(
            HERE + "/checkpoints/ckpt-{epoch}", save_weights_only=True
        ),
        Report(),
    ],
)

weights, bias = (value.numpy() for value in model.weights)
(w0,), (w1,) = weights
print(f"learned y = {w0:.2f} x0 {w1:+.2f} x1 {bias[0]:+.2f}")
if LEADS and history.history.get("loss"):
    report("metrics", loss=float(history.history["loss"][-1]))
