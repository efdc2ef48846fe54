"""A custom loop under a ClusterCoordinator, as in TensorFlow's guide to parameter servers.

The program does not use the kit. It learns w and b of y = 3x + 2.
"""

import sys

import tensorflow as tf

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)


def examples(_context=None):
    x = tf.random.uniform([256, 1], -1, 1, seed=1)
    return tf.data.Dataset.from_tensor_slices((x, 3 * x + 2)).shuffle(256).repeat().batch(16)


with strategy.scope():
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    steps = tf.Variable(0, dtype=tf.int64)


@tf.function
def train(iterator):
    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(w * x + b - y))
        for variable, gradient in zip((w, b), tape.gradient(loss, (w, b)), strict=True):
            variable.assign_sub(0.1 * gradient)
        steps.assign_add(1)
        return loss

    return strategy.run(replica, args=next(iterator))


@tf.function
def per_worker_examples():
    return strategy.distribute_datasets_from_function(examples)


iterator = iter(coordinator.create_per_worker_dataset(per_worker_examples))
for _ in range(STEPS):
    loss = coordinator.schedule(train, args=(iterator,))
coordinator.join()
print(f"{steps.numpy()} steps, loss {loss.fetch():.4f}, w {w.numpy():.3f}, b {b.numpy():.3f}")
checkpoint = tf.train.Checkpoint(w=w, b=b)
print("saved", checkpoint.save("/output/mine/ckpt"))
assert abs(w.numpy() - 3) < 0.1 and abs(b.numpy() - 2) < 0.1, "it has not learned anything"
