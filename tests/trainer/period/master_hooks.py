"""ps, master and workers, each started with --type and --index; hooks and a Scaffold."""
import os
import time

import tensorflow as tf
from tensorflow.python.training import session_run_hook

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('type', '', 'ps, master or worker')
tf.app.flags.DEFINE_integer('index', 0, 'index of the task')
tf.app.flags.DEFINE_string('ps', '', 'ps hosts')
tf.app.flags.DEFINE_string('master', '', 'master host')
tf.app.flags.DEFINE_string('workers', '', 'worker hosts')
tf.app.flags.DEFINE_string('train_dir', '/tmp/train', '')
tf.app.flags.DEFINE_integer('steps', 120, '')


class _LoggerHook(session_run_hook.SessionRunHook):
    """Logs loss and runtime."""

    def __init__(self, loss):
        self._loss = loss

    def begin(self):
        self._step = -1
        self._start = time.time()

    def before_run(self, run_context):
        self._step += 1
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        if self._step % 40 == 0:
            print('%s %d: step %d, loss = %.4f (%.1f s)' % (
                FLAGS.type, FLAGS.index, self._step, run_values.results,
                time.time() - self._start))


def main(argv=None):
    spec = {'ps': FLAGS.ps.split(','), 'master': FLAGS.master.split(','),
            'worker': FLAGS.workers.split(',')}
    cluster = tf.train.ClusterSpec(spec)
    server = tf.train.Server(cluster, job_name=FLAGS.type, task_index=FLAGS.index)
    if FLAGS.type == 'ps':
        server.join()
        return
    is_chief = FLAGS.type == 'master'
    device = '/job:%s/task:%d' % (FLAGS.type, FLAGS.index)
    with tf.device(tf.train.replica_device_setter(
            worker_device=device, cluster=cluster,
            ps_strategy=tf.contrib.training.GreedyLoadBalancingStrategy(
                len(spec['ps']), tf.contrib.training.byte_size_load_fn))):
        global_step = tf.train.get_or_create_global_step()
        x = tf.random_normal([64, 3], seed=1)
        with tf.variable_scope('model'):
            w = tf.get_variable('w', [3, 1], initializer=tf.zeros_initializer())
        y = tf.matmul(x, [[1.0], [-2.0], [0.5]])
        loss = tf.losses.mean_squared_error(y, tf.matmul(x, w))
        lr = tf.train.exponential_decay(0.05, global_step, 100, 0.9, staircase=True)
        opt = tf.train.GradientDescentOptimizer(lr)
        ema = tf.train.ExponentialMovingAverage(0.9, global_step)
        with tf.control_dependencies([opt.minimize(loss, global_step=global_step)]):
            train_op = ema.apply(tf.trainable_variables())
        tf.summary.scalar('loss', loss)
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2))
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps), _LoggerHook(loss),
             tf.train.NanTensorHook(loss)]
    config = tf.ConfigProto(device_filters=['/job:ps', device])
    if is_chief:
        creator = tf.train.ChiefSessionCreator(scaffold, server.target, config, FLAGS.train_dir)
        hooks.append(tf.train.CheckpointSaverHook(
            FLAGS.train_dir, save_steps=50, scaffold=scaffold))
        hooks.append(tf.train.SummarySaverHook(
            save_steps=20, output_dir=FLAGS.train_dir, scaffold=scaffold))
    else:
        creator = tf.train.WorkerSessionCreator(scaffold, server.target, config)
    with tf.train.MonitoredSession(creator, hooks) as sess:
        while not sess.should_stop():
            _, value = sess.run([train_op, w])
    print('%s %d: w = %s' % (FLAGS.type, FLAGS.index, ' '.join('%.2f' % v for v in value[:, 0])))
    if is_chief:
        print('checkpoint: %s' % os.path.basename(tf.train.latest_checkpoint(FLAGS.train_dir)))


if __name__ == '__main__':
    tf.app.run()
