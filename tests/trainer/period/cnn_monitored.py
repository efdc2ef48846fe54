"""A convolutional network with tf.layers, trained by a MonitoredTrainingSession on each worker."""
import argparse
import sys

import numpy as np
import tensorflow as tf

FLAGS = None


def cnn_model(images, is_training):
    net = tf.reshape(images, [-1, 14, 14, 1])
    net = tf.layers.conv2d(net, filters=8, kernel_size=[3, 3], padding='same',
                           activation=tf.nn.relu, name='conv1')
    net = tf.layers.max_pooling2d(net, pool_size=[2, 2], strides=2)
    net = tf.layers.conv2d(net, 8, [3, 3], padding='same', name='conv2')
    net = tf.layers.batch_normalization(net, training=is_training, momentum=0.9)
    net = tf.nn.relu(net)
    net = tf.layers.flatten(net)
    net = tf.layers.dropout(net, rate=0.1, training=is_training)
    return tf.layers.dense(net, units=2,
                           kernel_initializer=tf.contrib.layers.xavier_initializer())


def input_fn():
    rng = np.random.RandomState(FLAGS.task_index)
    labels = rng.randint(0, 2, size=512).astype(np.int)
    images = rng.rand(512, 14, 14).astype(np.float32)
    images[labels == 1, :, :7] += 1
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(512).repeat().batch(FLAGS.batch_size)
    return dataset.make_one_shot_iterator().get_next()


def main(_):
    cluster = tf.train.ClusterSpec({'ps': FLAGS.ps_hosts.split(','),
                                    'worker': FLAGS.worker_hosts.split(',')})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == 'ps':
        server.join()
    elif FLAGS.job_name == 'worker':
        with tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
            images, labels = input_fn()
            logits = cnn_model(images, is_training=True)
            loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
            accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), labels)))
            global_step = tf.train.get_or_create_global_step()
            tf.summary.scalar('loss', loss)
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                opt = tf.train.AdamOptimizer(0.01)
                if FLAGS.sync_replicas:
                    num_workers = len(FLAGS.worker_hosts.split(','))
                    opt = tf.train.SyncReplicasOptimizer(
                        opt, replicas_to_aggregate=num_workers, total_num_replicas=num_workers)
                train_op = opt.minimize(loss, global_step=global_step)

        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps),
                 tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=20)]
        if FLAGS.sync_replicas:
            hooks.append(opt.make_session_run_hook(FLAGS.task_index == 0))
        tf.logging.set_verbosity(tf.logging.INFO)
        with tf.train.MonitoredTrainingSession(master=server.target,
                                               is_chief=(FLAGS.task_index == 0),
                                               checkpoint_dir=FLAGS.train_dir,
                                               save_checkpoint_secs=60,
                                               save_summaries_steps=10,
                                               hooks=hooks) as mon_sess:
            while not mon_sess.should_stop():
                _, step, value, good = mon_sess.run([train_op, global_step, loss, accuracy])
        print("task %d: last step %d, loss %.3f, accuracy %.2f"
              % (FLAGS.task_index, step, value, good))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.register("type", "bool", lambda v: v.lower() == "true")
    parser.add_argument("--ps_hosts", type=str, default="")
    parser.add_argument("--worker_hosts", type=str, default="")
    parser.add_argument("--job_name", type=str, default="", help="One of 'ps', 'worker'")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--sync_replicas", type="bool", default=False)
    parser.add_argument("--train_dir", type=str, default="/tmp/cnn")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch_size", type=int, default=32)
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
