# -*- coding: utf-8 -*-
"""Linear regression: Supervisor initialises or restores, saves every second and keeps one
checkpoint; the chief alone writes summaries."""
from __future__ import print_function

import time

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string('job_name', None, "'ps' or 'worker'")
flags.DEFINE_integer('task_index', None, 'Index of task within the job')
flags.DEFINE_string('ps_hosts', 'localhost:2222', 'Comma-separated list of hostname:port pairs')
flags.DEFINE_string('worker_hosts', 'localhost:2223', 'Comma-separated list of hostname:port pairs')
flags.DEFINE_string('log_dir', '/tmp/linear', 'Directory of checkpoints and summaries')
flags.DEFINE_integer('last_step', 400, 'End at this global step')
FLAGS = flags.FLAGS


def main(unused_argv):
    if FLAGS.job_name is None or FLAGS.job_name == '':
        raise ValueError('Must specify an explicit job_name !')
    ps_spec = FLAGS.ps_hosts.split(',')
    worker_spec = FLAGS.worker_hosts.split(',')
    cluster = tf.train.ClusterSpec({'ps': ps_spec, 'worker': worker_spec})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == 'ps':
        server.join()
        return

    is_chief = (FLAGS.task_index == 0)
    me = '/job:worker/task:%d' % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
        global_step = tf.Variable(0, name='global_step', trainable=False)
        X = tf.placeholder('float')
        w = tf.Variable(0.0, name='weight')
        b = tf.Variable(0.0, name='bias')
        z = tf.add(tf.multiply(X, w), b)
        cost = tf.reduce_mean(tf.square(z - (2 * X - 1)))
        train = tf.train.GradientDescentOptimizer(0.05).minimize(cost, global_step=global_step)
        tf.summary.histogram('z', z)
        tf.summary.scalar('loss_function', cost)
        merged_summary_op = tf.summary.merge_all()
        saver = tf.train.Saver(max_to_keep=1)
        init = tf.global_variables_initializer()

    sv = tf.train.Supervisor(is_chief=is_chief, logdir=FLAGS.log_dir, init_op=init,
                             summary_op=None, saver=saver, global_step=global_step,
                             save_model_secs=1)
    config = tf.ConfigProto(device_filters=['/job:ps', me])
    with sv.managed_session(server.target, config=config) as sess:
        step = sess.run(global_step)
        print('%s begins at step %d' % (me, step))
        feed = {X: [-1.0, -0.5, 0.0, 0.5, 1.0]}
        while not sv.should_stop() and step < FLAGS.last_step:
            _, step, loss = sess.run([train, global_step, cost], feed_dict=feed)
            time.sleep(0.01)
            if is_chief and step % 50 < 2:
                sv.summary_computed(sess, sess.run(merged_summary_op, feed_dict=feed))
        print('%s step %d loss %.5f w %.3f b %.3f' % (me, step, loss, sess.run(w), sess.run(b)))
        if is_chief:
            saver.save(sess, sv.save_path, global_step=step)


if __name__ == '__main__':
    tf.app.run()
