"""System B's listing, as it was written for TensorFlow 1: `Supervisor` initialises or restores,
saves every second and keeps one checkpoint; the chief alone writes summaries."""

import time

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

flags = tf.app.flags
flags.DEFINE_string("job_name", None, "ps or worker")
flags.DEFINE_integer("task_index", None, "Index within the job")
flags.DEFINE_string("ps_hosts", "", "host:port of every ps, by commas")
flags.DEFINE_string("worker_hosts", "", "Those of the workers")
flags.DEFINE_string("train_dir", "/tmp/train", "Where the checkpoints go")
flags.DEFINE_integer("last_step", 400, "End at this global step")
FLAGS = flags.FLAGS


def main(_):
    ps_hosts, worker_hosts = FLAGS.ps_hosts.split(","), FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    is_chief = FLAGS.task_index == 0
    me = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        x = tf.random_uniform([32], -1, 1)
        w = tf.Variable(0.0, name="w")
        b = tf.Variable(0.0, name="b")
        z = w * x + b
        loss = tf.reduce_mean(tf.square(z - (2 * x - 1)))
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("z", z)
        summary = tf.summary.merge_all()
        init = tf.global_variables_initializer()
        saver = tf.train.Saver(max_to_keep=1)
    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=FLAGS.train_dir,
        init_op=init,
        summary_op=None,
        saver=saver,
        global_step=global_step,
        save_model_secs=1,
        recovery_wait_secs=1,
    )
    config = tf.ConfigProto(device_filters=["/job:ps", me])
    with supervisor.managed_session(server.target, config=config) as session:
        step, found, slope, offset = session.run([global_step, loss, w, b])
        print(f"{me} begins at step {step}", flush=True)
        while not supervisor.should_stop() and step < FLAGS.last_step:
            _, step, found, slope, offset = session.run([train, global_step, loss, w, b])
            time.sleep(0.01)  # so that a worker that comes later has its part in it
            if is_chief and step % 50 < 2:
                supervisor.summary_computed(session, session.run(summary))
        print(f"{me} step {step} loss {found:.5f} w {slope:.3f} b {offset:.3f}", flush=True)
        if is_chief:
            saver.save(session, supervisor.save_path, global_step=step)


if __name__ == "__main__":
    tf.app.run()
