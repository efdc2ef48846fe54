"""Keras `fit` in the manner of TensorFlow's tutorials: all tasks run the same program.

Workers and ps start a server and wait in it forever; only the chief trains.
"""

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()

if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc",
        start=True,
    )
    print(f"{resolver.task_type} {resolver.task_id} serves by itself", flush=True)
    server.join()


def examples(context):
    x = tf.random.uniform([512, 4], seed=1)
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(512).repeat().batch(32)
    return data.shard(context.num_input_pipelines, context.input_pipeline_id).prefetch(2)


strategy = tf.distribute.ParameterServerStrategy(
    resolver,
    variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(
        min_shard_bytes=256 << 10, max_shards=1
    ),
)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
history = model.fit(
    tf.keras.utils.experimental.DatasetCreator(examples),
    epochs=3,
    steps_per_epoch=20,
    callbacks=[
        tf.keras.callbacks.ModelCheckpoint("/output/mine/ckpt-{epoch}", save_weights_only=True)
    ],
    verbose=2,
)
losses = history.history["loss"]
print("losses", [round(loss, 4) for loss in losses])
assert losses[-1] < losses[0], losses
