"""A starter: Keras `fit` by all-reduce. It learns y = 2 x0 - 3 x1 + 1 from made-up data.

Every worker runs this program. TF_CONFIG tells TensorFlow who the others are; after each step all
apply the mean of everybody's gradients. What has to outlive a container goes to /output, the same
directory for all tasks.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import tensorflow as tf  # tf.keras is tf_keras here: Keras 3's fit does not know this strategy
from cluster_kit_input import num_workers, shard  # in the image; elsewhere, put it beside this file

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--steps-per-epoch", type=int, default=40)
parser.add_argument("--save-steps", type=int, default=10, help="between two backups, about")
parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
parser.add_argument("--learning-rate", type=float, default=0.05)
options = parser.parse_args()

# Keras saves at the end of what it calls an epoch. Each of ours is some of those: whatever ends
# this program, what is lost is a part of an epoch.
PARTS = max(1, round(options.steps_per_epoch / options.save_steps))
STEPS = math.ceil(options.steps_per_epoch / PARTS)

# Before anything else of TensorFlow's: the workers meet in here.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
LEADS = json.loads(os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}
# All workers save, because that is a step that they take together; only the leader's counts.
HERE = "/output" if LEADS else "/tmp/not-kept"


def examples(context):
    """`shard` leaves this worker its own part. With files: shard their list, then read them."""
    x = tf.random.uniform([4096, 2], -1, 1, seed=7)
    y = 2 * x[:, :1] - 3 * x[:, 1:] + 1
    data = shard(tf.data.Dataset.from_tensor_slices((x, y)))
    batch = context.get_per_replica_batch_size(options.batch_size * num_workers())
    return data.shuffle(4096).repeat().batch(batch).prefetch(2)


def report(event, **figures):
    """Show figures while the program runs (`step`), or keep them in outcome.json (`metrics`)."""
    line = {"time": time.time(), "event": event, **figures}
    with Path(os.environ.get("CLUSTER_KIT_PROGRESS", os.devnull)).open("a") as file:
        file.write(json.dumps(line) + "\n")


class Report(tf.keras.callbacks.Callback):
    """Figures after each part; after each epoch a line, and the weights as a checkpoint."""

    def on_train_begin(self, logs=None):
        self.reported = time.monotonic()

    def on_epoch_end(self, part, logs=None):
        before, self.reported = self.reported, time.monotonic()  # with what was saved in between
        rate, step, loss = STEPS / (self.reported - before), (part + 1) * STEPS, logs["loss"]
        report("step", step=step, steps_per_s=rate, loss=float(loss))
        epoch, rest = divmod(part + 1, PARTS)
        if not rest:
            self.model.save_weights(f"{HERE}/checkpoints/ckpt-{epoch}")
            if LEADS:
                print(f"epoch {epoch}/{options.epochs}: step {step}, loss {loss:.4f}", flush=True)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(optimizer=tf.keras.optimizers.Adam(options.learning_rate), loss="mse")

history = model.fit(
    tf.keras.utils.experimental.DatasetCreator(examples),
    epochs=options.epochs * PARTS,
    steps_per_epoch=STEPS,
    verbose=0,
    callbacks=[
        Report(),
        # From its backup all go on by themselves when a worker was lost, and with
        # `--resume` (make: `RESUME=1`) when they were stopped, or are to train for more epochs.
        tf.keras.callbacks.BackupAndRestore("/output/backup", delete_checkpoint=False),
    ],
)

learned = model(tf.constant([[1.0, -1.0]])).numpy()
print(f"learned: y = {learned} at x = (1, -1), where 6 is right")
if LEADS and history.history.get("loss"):
    report("metrics", loss=float(history.history["loss"][-1]))
