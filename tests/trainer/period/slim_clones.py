"""Slim on several clones in each worker: one copy of the model per device, shared variables."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.framework import arg_scope
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_ops

tf.app.flags.DEFINE_string('type', '', 'One of `ps`, `worker`')
tf.app.flags.DEFINE_integer('index', 0, 'Number within the job')
tf.app.flags.DEFINE_string('ps_hosts', '', 'Comma-separated list of hosts')
tf.app.flags.DEFINE_string('worker_hosts', '', 'Comma-separated list of hosts')
tf.app.flags.DEFINE_string('train_dir', '/tmp/tfmodel/', 'Directory of checkpoints')
tf.app.flags.DEFINE_integer('num_clones', 2, 'Number of model clones to deploy.')
tf.app.flags.DEFINE_boolean('clone_on_cpu', True, 'Use CPUs to deploy clones.')
tf.app.flags.DEFINE_integer('batch_size', 16, 'Samples in each clone.')
tf.app.flags.DEFINE_float('weight_decay', 0.00004, 'The weight decay on the model weights.')
tf.app.flags.DEFINE_integer('max_number_of_steps', 60, 'The maximum number of training steps.')
FLAGS = tf.app.flags.FLAGS


def network_fn(images, num_classes=2):
  with arg_scope([slim.conv2d, slim.fully_connected],
                 weights_regularizer=slim.l2_regularizer(FLAGS.weight_decay),
                 normalizer_fn=slim.batch_norm,
                 normalizer_params={'is_training': True, 'decay': 0.9}):
    with tf.variable_scope('SmallNet', values=[images]):
      net = slim.repeat(images, 2, slim.conv2d, 4, [3, 3], scope='conv1')
      net = slim.max_pool2d(net, [2, 2], scope='pool1')
      net = slim.flatten(net)
      return slim.fully_connected(net, num_classes, activation_fn=None, normalizer_fn=None,
                                  scope='logits')


def create_clones(model_fn, setter):
  clones = []
  with arg_scope([slim.model_variable, slim.variable], device=setter):
    for i in range(FLAGS.num_clones):
      device = '/job:worker/task:%d/device:CPU:0' % FLAGS.index
      with ops.name_scope('clone_%d' % i) as scope, tf.device(device):
        with tf.variable_scope(tf.get_variable_scope(), reuse=True if i > 0 else None):
          clones.append((model_fn(), scope))
  return clones


def main(_):
  cluster = tf.train.ClusterSpec({'ps': FLAGS.ps_hosts.split(','),
                                  'worker': FLAGS.worker_hosts.split(',')})
  server = tf.train.Server(cluster, job_name=FLAGS.type, task_index=FLAGS.index)
  if FLAGS.type == 'ps':
    server.join()
    return
  tf.logging.set_verbosity(tf.logging.INFO)
  with tf.Graph().as_default():
    setter = tf.train.replica_device_setter(
        cluster=cluster, worker_device='/job:worker/task:%d' % FLAGS.index)
    with tf.device(setter):
      global_step = slim.create_global_step()

    def clone_fn():
      labels = tf.random_uniform([FLAGS.batch_size], 0, 2, dtype=tf.int32)
      bright = tf.to_float(tf.reshape(labels, [-1, 1, 1, 1]))
      images = tf.random_uniform([FLAGS.batch_size, 8, 8, 1]) + bright
      logits = network_fn(images)
      slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(labels, 2))
      return logits

    clones = create_clones(clone_fn, setter)
    optimizer = tf.train.MomentumOptimizer(0.05, momentum=0.9)
    sums = []
    losses = []
    for _, scope in clones:
      clone_losses = tf.get_collection(tf.GraphKeys.LOSSES, scope)
      loss = tf.div(tf.add_n(clone_losses), 1.0 * FLAGS.num_clones)
      losses.append(loss)
      sums.append(optimizer.compute_gradients(loss))
    grads_and_vars = []
    for pairs in zip(*sums):
      grads_and_vars.append((tf.add_n([grad for grad, _ in pairs]), pairs[0][1]))
    with tf.device(setter):
      grad_updates = optimizer.apply_gradients(grads_and_vars, global_step=global_step)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS, clones[0][1])
    update_op = tf.group(grad_updates, *update_ops)
    total_loss = tf.add_n(losses, name='total_loss')
    train_tensor = control_flow_ops.with_dependencies([update_op], total_loss, name='train_op')
    slim.summaries.add_scalar_summary(total_loss, 'total_loss')

    final = slim.learning.train(
        train_tensor,
        logdir=FLAGS.train_dir,
        master=server.target,
        is_chief=(FLAGS.index == 0),
        number_of_steps=FLAGS.max_number_of_steps,
        log_every_n_steps=20,
        save_summaries_secs=30,
        save_interval_secs=60)
    print('worker %d: final loss %.3f' % (FLAGS.index, final))


if __name__ == '__main__':
  tf.app.run()
