"""The training loop of the first Slim trainers: --master is the server that runs the session."""
import functools

import tensorflow as tf

slim = tf.contrib.slim

tf.logging.set_verbosity(tf.logging.INFO)
flags = tf.app.flags
flags.DEFINE_string('master', '', 'BNS name of the TensorFlow master to use.')
flags.DEFINE_integer('task', 0, 'task id')
flags.DEFINE_integer('worker_replicas', 1, 'Number of worker+trainer replicas.')
flags.DEFINE_integer('ps_tasks', 0, 'Number of parameter server tasks.')
flags.DEFINE_string('train_dir', '', 'Directory to save the checkpoints and training summaries.')
flags.DEFINE_string('pipeline_config_path', '', 'Path to a config file: one key: value per line')
FLAGS = flags.FLAGS


def get_configs_from_pipeline_file():
  config = tf.contrib.training.HParams(num_steps=50, batch_size=8, learning_rate=0.1)
  with tf.gfile.GFile(FLAGS.pipeline_config_path, 'r') as f:
    config.parse(','.join(line.strip().replace(': ', '=') for line in f if line.strip()))
  return config


def create_input(batch_size):
  image, label = tf.train.slice_input_producer(
      [tf.reshape(tf.range(64.0), [32, 2]) / 64.0, tf.range(32) // 16], shuffle=True)
  return tf.train.batch([image, label], batch_size=batch_size, num_threads=1)


def train(create_input_fn, config):
  with tf.Graph().as_default():
    with tf.device(tf.train.replica_device_setter(
        FLAGS.ps_tasks, worker_device='/job:worker/task:%d' % FLAGS.task)):
      global_step = slim.get_or_create_global_step()
      images, labels = create_input_fn()
      logits = slim.fully_connected(images, 2, activation_fn=None)
      loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
      optimizer = tf.train.AdamOptimizer(config.learning_rate)
      train_op = slim.learning.create_train_op(loss, optimizer, global_step=global_step)
      saver = tf.train.Saver(keep_checkpoint_every_n_hours=1)
    session_config = tf.ConfigProto(allow_soft_placement=True)
    loss = slim.learning.train(
        train_op,
        logdir=FLAGS.train_dir,
        master=FLAGS.master,
        is_chief=(FLAGS.task == 0),
        session_config=session_config,
        startup_delay_steps=0,
        number_of_steps=config.num_steps,
        save_summaries_secs=120,
        sync_optimizer=None,
        saver=saver)
    tf.logging.info('task %d of %d: loss %.3f', FLAGS.task, FLAGS.worker_replicas, loss)


def main(_):
  assert FLAGS.train_dir, '`train_dir` is missing.'
  config = get_configs_from_pipeline_file()
  train(functools.partial(create_input, config.batch_size), config)


if __name__ == '__main__':
  tf.app.run()
