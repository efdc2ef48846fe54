"""Distributed MNIST with replica_device_setter and SyncReplicasOptimizer.

The ps waits; the workers train the same softmax on their own batches, and each update is made of
the gradients of all of them.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import sys
import tempfile
import time

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "/tmp/mnist-data", "Directory for storing mnist data")
flags.DEFINE_integer("task_index", None, "Worker task index, should be >= 0")
flags.DEFINE_integer("replicas_to_aggregate", None, "Number of replicas to aggregate")
flags.DEFINE_integer("train_steps", 100, "Number of (global) training steps to perform")
flags.DEFINE_integer("batch_size", 50, "Training batch size")
flags.DEFINE_float("learning_rate", 0.5, "Learning rate")
flags.DEFINE_boolean("sync_replicas", True, "Use the sync_replicas mode")
flags.DEFINE_string("ps_hosts", "localhost:2222", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "localhost:2223,localhost:2224", "Comma-separated list")
flags.DEFINE_string("job_name", None, "job name: worker or ps")
FLAGS = flags.FLAGS

IMAGE_PIXELS = 28


def main(unused_argv):
  mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, validation_size=100)
  if FLAGS.job_name is None or FLAGS.job_name == "":
    raise ValueError("Must specify an explicit `job_name`")
  if FLAGS.task_index is None or FLAGS.task_index == "":
    raise ValueError("Must specify an explicit `task_index`")
  print("job name = %s" % FLAGS.job_name)
  print("task index = %d" % FLAGS.task_index)

  ps_spec = FLAGS.ps_hosts.split(",")
  worker_spec = FLAGS.worker_hosts.split(",")
  num_workers = len(worker_spec)
  cluster = tf.train.ClusterSpec({"ps": ps_spec, "worker": worker_spec})
  server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
  if FLAGS.job_name == "ps":
    server.join()
    sys.exit(0)

  is_chief = (FLAGS.task_index == 0)
  with tf.device(
      tf.train.replica_device_setter(
          worker_device="/job:worker/task:%d" % FLAGS.task_index,
          ps_device="/job:ps/cpu:0",
          cluster=cluster)):
    global_step = tf.Variable(0, name="global_step", trainable=False)
    W = tf.Variable(tf.zeros([IMAGE_PIXELS * IMAGE_PIXELS, 10]), name="W")
    b = tf.Variable(tf.zeros([10]), name="b")
    x = tf.placeholder(tf.float32, [None, IMAGE_PIXELS * IMAGE_PIXELS])
    y_ = tf.placeholder(tf.float32, [None, 10])
    y = tf.nn.softmax(tf.nn.xw_plus_b(x, W, b))
    cross_entropy = -tf.reduce_mean(tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)), 1))
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

    opt = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)
    if FLAGS.sync_replicas:
      if FLAGS.replicas_to_aggregate is None:
        replicas_to_aggregate = num_workers
      else:
        replicas_to_aggregate = FLAGS.replicas_to_aggregate
      opt = tf.train.SyncReplicasOptimizer(
          opt,
          replicas_to_aggregate=replicas_to_aggregate,
          total_num_replicas=num_workers,
          name="mnist_sync_replicas")
    train_step = opt.minimize(cross_entropy, global_step=global_step)

    local_init_op = opt.local_step_init_op
    if is_chief:
      local_init_op = opt.chief_init_op
    ready_for_local_init_op = opt.ready_for_local_init_op
    chief_queue_runner = opt.get_chief_queue_runner()
    sync_init_op = opt.get_init_tokens_op()
    init_op = tf.global_variables_initializer()

  sv = tf.train.Supervisor(
      is_chief=is_chief,
      logdir=tempfile.mkdtemp(),
      init_op=init_op,
      local_init_op=local_init_op,
      ready_for_local_init_op=ready_for_local_init_op,
      recovery_wait_secs=1,
      global_step=global_step)
  sess_config = tf.ConfigProto(
      allow_soft_placement=True,
      log_device_placement=False,
      device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
  if is_chief:
    print("Worker %d: Initializing session..." % FLAGS.task_index)
  else:
    print("Worker %d: Waiting for session to be initialized..." % FLAGS.task_index)
  sess = sv.prepare_or_wait_for_session(server.target, config=sess_config)
  print("Worker %d: Session initialization complete." % FLAGS.task_index)

  if is_chief:
    sess.run(sync_init_op)
    sv.start_queue_runners(sess, [chief_queue_runner])

  time_begin = time.time()
  local_step = 0
  while True:
    batch_xs, batch_ys = mnist.train.next_batch(FLAGS.batch_size)
    _, step = sess.run([train_step, global_step], feed_dict={x: batch_xs, y_: batch_ys})
    local_step += 1
    if step >= FLAGS.train_steps:
      break
  print("Worker %d: %d steps of its own in %g s" %
        (FLAGS.task_index, local_step, time.time() - time_begin))
  if is_chief:
    feed = {x: mnist.test.images, y_: mnist.test.labels}
    print("After %d training step(s), test accuracy = %g" %
          (step, sess.run(accuracy, feed_dict=feed)))


if __name__ == "__main__":
  tf.app.run()
