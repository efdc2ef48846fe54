"""Between-graph replication as before TF_CONFIG: flags have the role and the addresses.

Every task runs it; a ps joins its server forever. The chief is the master if there is one, else
worker 0.
"""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

flags = tf.app.flags
flags.DEFINE_string("job_name", None, "ps, worker or master")
flags.DEFINE_integer("task_index", None, "Index within the job")
flags.DEFINE_string("ps_hosts", "", "host:port of every ps, by commas")
flags.DEFINE_string("worker_hosts", "", "Those of the workers")
flags.DEFINE_string("master_hosts", "", "That of the master, if any")
flags.DEFINE_string("train_dir", "/tmp/train", "Where the checkpoints go")
flags.DEFINE_integer("last_step", 300, "End at this global step")
FLAGS = flags.FLAGS


def main(_):
    jobs = {"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts, "master": FLAGS.master_hosts}
    cluster = tf.train.ClusterSpec({job: hosts.split(",") for job, hosts in jobs.items() if hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        print("ps: waiting in its own server", flush=True)
        server.join()
    chief_job = "master" if FLAGS.master_hosts else "worker"
    is_chief = FLAGS.job_name == chief_job and FLAGS.task_index == 0
    me = f"/job:{FLAGS.job_name}/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        x = tf.random_uniform([32, 1], -1, 1)
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(w * x + b - (3 * x + 2)))
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
    print(f"{me} on {w.device}, chief: {is_chief}", flush=True)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.train_dir,
        hooks=[tf.train.StopAtStepHook(last_step=FLAGS.last_step)],
        config=tf.ConfigProto(device_filters=["/job:ps", me]),
    ) as session:
        while not session.should_stop():
            now, found, slope, offset = session.run([step, loss, w, b, train])[:4]
    print(f"{me} step {now} loss {found:.5f} w {slope:.3f} b {offset:.3f}", flush=True)


if __name__ == "__main__":
    tf.app.run()
