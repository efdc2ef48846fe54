"""`tensorflow.examples.tutorials.mnist.mnist`: the tutorial's network of two hidden layers."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: tf.Tensor, hidden1_units: int, hidden2_units: int) -> tf.Tensor:
    """The logits of images, each a row of IMAGE_PIXELS; layers `hidden1`, `hidden2` and
    `softmax_linear`, each with `weights` and `biases`."""
    hidden = tf.nn.relu(_layer("hidden1", images, IMAGE_PIXELS, hidden1_units))
    hidden = tf.nn.relu(_layer("hidden2", hidden, hidden1_units, hidden2_units))
    return _layer("softmax_linear", hidden, hidden2_units, NUM_CLASSES)


def _layer(name: str, inputs: tf.Tensor, before: int, after: int) -> tf.Tensor:
    with tf.name_scope(name):
        spread = tf.truncated_normal([before, after], stddev=before**-0.5)
        weights = tf.Variable(spread, name="weights")
        biases = tf.Variable(tf.zeros([after]), name="biases")
        return tf.matmul(inputs, weights) + biases


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The mean cross entropy; labels are class numbers."""
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.cast(labels, tf.int64), logits=logits)


def training(loss: tf.Tensor, learning_rate: float) -> tf.Operation:
    """A step of gradient descent, which counts `global_step` and leaves the loss as a summary."""
    tf.summary.scalar("loss", loss)
    step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)


def evaluation(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """How many of the images are recognised."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
