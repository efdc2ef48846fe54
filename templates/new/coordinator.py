"""A starter: Keras `fit` on parameter servers. It learns y = 2 x0 - 3 x1 + 1 from made-up data.

This program runs on the chief alone. TF_CONFIG tells TensorFlow where the workers and the ps are;
they are servers that do what `fit` sends them. What has to outlive a container goes to /output, the
same directory for all tasks.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import tensorflow as tf  # tf.keras is tf_keras here: Keras 3 does not support parameter servers
from cluster_kit_input import shard  # in the image; elsewhere, put that file beside this one

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--steps-per-epoch", type=int, default=40)
parser.add_argument("--save-steps", type=int, default=100, help="between two backups, about")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.05)
options = parser.parse_args()

# With parameter servers, Keras can save only at the end of what it calls an epoch. Each of ours is
# some of those: whatever ends this program, what is lost is a part of an epoch. Rare saves are
# cheaper: TensorFlow traces each one anew, and the ps keep 0.3 MB of it until they end.
PARTS = max(1, round(options.steps_per_epoch / options.save_steps))
STEPS = math.ceil(options.steps_per_epoch / PARTS)


def examples(context):
    """Runs on each worker; `shard` leaves it its own part. Files: shard their list, then read."""
    x = tf.random.uniform([4096, 2], -1, 1, seed=7)
    y = 2 * x[:, :1] - 3 * x[:, 1:] + 1
    data = shard(tf.data.Dataset.from_tensor_slices((x, y)))
    return data.shuffle(4096).repeat().batch(options.batch_size).prefetch(2)


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
            print(f"epoch {epoch}/{options.epochs}: step {step}, loss {loss:.4f}", flush=True)
            self.model.save_weights(f"/output/checkpoints/ckpt-{epoch}")


tf.get_logger().setLevel("ERROR")  # or each save on the ps warns of retracing
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver()
)
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
        # From its backup it goes on by itself when the chief crashed or lost a ps, and with
        # `--resume` (make: `RESUME=1`) when it was stopped, or is to train for more epochs.
        tf.keras.callbacks.BackupAndRestore("/output/backup", delete_checkpoint=False),
    ],
)

learned = model(tf.constant([[1.0, -1.0]])).numpy()
print(f"learned: y = {learned} at x = (1, -1), where 6 is right")
if history.history.get("loss"):
    report("metrics", loss=float(history.history["loss"][-1]))
