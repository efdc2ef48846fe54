"""What a container is started with, and the lines of the beacon: for the tables of the README."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMMANDS: Mapping[str, str] = {
    "serve": "a TensorFlow server that waits for work: every ps, and workers under a coordinator",
    "run PROGRAM [ARG…]": (
        "a program: chief, evaluator, workers that train. `PROGRAM` is the name of a built-"
        "in program (`classifier`) or the path of a Python file"
    ),
    "stacks": "prints the stack of each thread of the task that runs in this container",
    "profile SECONDS [TASK…]": (
        "traces these tasks (all without one) for so long, writes the trace to "
        "`/output/profile/`, and prints its facts as JSON"
    ),
    "arguments PROGRAM [ARG…]": (
        "ends with 0 if the built-in program takes these arguments, else with 2 and the "
        "reason; with `--help` it prints the program's help. The host calls it with its own"
        " Python"
    ),
    "verdict RUN OPTION…": (
        "judges the run in this directory by what its tasks have left there, writes "
        "`RUN/outcome.json`, and ends with the kit's exit code. A job of Slurm calls it at "
        "its end"
    ),
}
"""Those of `python3 -m trainer`, each with what it does."""


@dataclass(frozen=True)
class Variable:
    """An environment variable. `of_image`: the supervisor sets it for its program, not the host."""

    meaning: str
    of_image: bool = False


VARIABLES: Mapping[str, Variable] = {
    "TF_CONFIG": Variable(
        "TensorFlow's own. The evaluator's holds only the evaluator (its program may find "
        "another one: `CLUSTER_KIT_TRAINING`)"
    ),
    "CLUSTER_KIT_TRAINING": Variable(
        "only for the evaluator: JSON, the training cluster as in TF_CONFIG. A user's program"
        " finds it in its TF_CONFIG where TensorFlow has Estimators, which demand it (below "
        "2.16), and there is a chief; absent: it does not"
    ),
    "CLUSTER_KIT_SHARED": Variable(
        "path of a JSON file with what all tasks share and what grows with the cluster: "
        '`{"cluster": …, "variables": {…}}`, TF_CONFIG\'s cluster and further variables. A '
        "container's own variables win; absent: all of them are there. On a swarm it is "
        "`/run/cluster-kit/cluster.json`"
    ),
    "CLUSTER_KIT_TASK": Variable(
        "this task's name, `worker-1`; the chief is `chief-0` even if TensorFlow's job is "
        "called `master`"
    ),
    "CLUSTER_KIT_LEADER": Variable("the leader's name: `chief-0`, or `worker-0` without a chief"),
    "CLUSTER_KIT_BEACON": Variable("`host:port` of the leader's beacon"),
    "CLUSTER_KIT_SERVERS": Variable(
        "names of the tasks that run `serve`, separated by commas. Absent: every ps, and the "
        "workers if there are a chief and a ps"
    ),
    "CLUSTER_KIT_DATA": Variable("directory of the data set (in the image, or the mount `/data`)"),
    "CLUSTER_KIT_START_DEADLINE_S": Variable("seconds within which every server must answer"),
    "CLUSTER_KIT_JOB_DEADLINE_S": Variable(
        "seconds the program may run, retries included, from the first time all servers "
        "answer; absent or 0: no deadline"
    ),
    "CLUSTER_KIT_EVALUATOR_GRACE_S": Variable(
        "seconds the evaluator may go on after the job's end"
    ),
    "CLUSTER_KIT_SILENT_S": Variable(
        "seconds after which a task that is not heard of is lost, frozen or cut off; 10 if "
        "absent, 0: never"
    ),
    "CLUSTER_KIT_STALL_S": Variable(
        "seconds without progress after which the leader starts its program again, and ends "
        "the job the second time; `auto` or absent: by what programs report; 0: never"
    ),
    "CLUSTER_KIT_RETRIES": Variable(
        "how often the leader starts its program again after a server or a peer was lost or "
        "the program was killed; how often a peer may fail"
    ),
    "CLUSTER_KIT_SERVER": Variable(
        "`native` (C API, the default) or `python` (`tf.distribute.Server`)"
    ),
    "CLUSTER_KIT_GPUS": Variable(
        'the GPUs this task was promised, JSON: `[{"name": "GPU 1 (GPU-5c1d…)", "pci": '
        '"00000000:5E:00.0", "uuid": "GPU-5c1d…"}]`; `name` is for messages, the others say '
        "which it is; absent or empty: none. Without them the UUIDs are those that a swarm "
        "gives in `DOCKER_RESOURCE_GPU`: `GPU-5c1d…,GPU-77ab…`, or their first digits"
    ),
    "CLUSTER_KIT_PROMISES": Variable(
        'only for the leader: JSON, the GPUs that each server was promised, `{"worker-0": '
        "[…]}`, each a list like `CLUSTER_KIT_GPUS`. A server with `[]` must show no GPU, one"
        " without an entry is not checked"
    ),
    "CLUSTER_KIT_GPU_CHECK": Variable(
        "`off`: what tasks see is written down (`devices` events), but no task is ended for it"
    ),
    "CLUSTER_KIT_GPU_MEMORY_MB": Variable(
        "TensorFlow's memory limit per GPU of this task; absent: memory growth"
    ),
    "CLUSTER_KIT_SIMULATE_GPUS": Variable(
        "how many logical CPU devices a task without a GPU shows, instead of one"
    ),
    "CLUSTER_KIT_BANDWIDTH_BPS": Variable(
        "bits per second to shape this task's network to, each way. Such a container starts "
        "as root with NET_ADMIN, SETUID, SETGID, SETPCAP and KILL, shapes, and gives up all "
        "of that before anything else"
    ),
    "CLUSTER_KIT_USER": Variable(
        "`uid:gid` to become after shaping, or `owner`: a container that starts as root "
        "becomes the owner of its output directory, and has no capability left"
    ),
    "CLUSTER_KIT_OLD_API": Variable(
        "`on`: a user's program is written for TensorFlow 1, so `import tensorflow` is its "
        "API; absent: it is not"
    ),
    "CLUSTER_KIT_OWN_SERVER": Variable(
        "`on`: a user's program starts no TensorFlow server but connects to this task's "
        "(`--master`), which is started in its process; absent: it is not"
    ),
    "CLUSTER_KIT_BEACON_SECRET": Variable(
        "the secret by which tasks of one run know each other on the beacon, new for each "
        "run; programs do not get it. Empty or absent: the leader makes one, in "
        "`/output/progress/.beacon-secret`, which only its user may read"
    ),
    "CLUSTER_KIT_SECRETS": Variable(
        "JSON, the secrets that become files in `/run/secrets`, by name: `variable` is where "
        "the value is, `stays` whether it is left there, too. Taken out before the program "
        "begins"
    ),
    "CLUSTER_KIT_PROFILE": Variable(
        'only for the leader: JSON, the trace of all tasks to take, `{"at_step": 100, '
        '"seconds": 2}`; absent: none'
    ),
    "CLUSTER_KIT_DEBUG": Variable(
        "the port of the host's 127.0.0.1 on which this task's program waits for a debugger: "
        "the container's port `ports.debugger` is published there, and debugpy is mounted at "
        "`/debugger`; absent: no debugger"
    ),
    "CLUSTER_KIT_OUTPUT": Variable(
        "the output directory, if it is not `/output` (tests outside a container)"
    ),
    "CLUSTER_KIT_SHAPED_BPS": Variable(
        "the bandwidth that this task's network was shaped to, bits per second",
        of_image=True,
    ),
    "CLUSTER_KIT_PROGRESS": Variable(
        "the task's progress file; a user's program may append events of its own",
        of_image=True,
    ),
    "CLUSTER_KIT_MAILBOX": Variable(
        "a private directory in which supervisor and program leave each other files",
        of_image=True,
    ),
    "CLUSTER_KIT_AFTER_IMPORT": Variable(
        "what happens at the end of the program's `import tensorflow`, separated by commas: "
        "`devices`, `connections`, `tf1`, `closures`, `refuse`, `join`, `own-server`, "
        "`imported`, `sessions`, `servers`",
        of_image=True,
    ),
    "CLUSTER_KIT_STACKS": Variable(
        "the file into which the program writes the stacks of its threads at SIGUSR2",
        of_image=True,
    ),
}

PATHS: Mapping[str, str] = {
    "/output": "read-write, the same for all tasks: ps tasks write their own checkpoint shards",
    "/data": "read-only: the user's data set",
    "/program": "read-only: the user's code",
    "/tmp": "tmpfs, a task's own",
    "/run/secrets": "secrets as files, read-only, or written by the trainer into a tmpfs",
}
"""Directories that a container has."""

BEACON: Mapping[str, str] = {
    "challenge NONCE": "leader, first of all: what the follower has to answer",
    "answer NONCE PROOF": (
        "follower: PROOF is an HMAC of both nonces with the run's secret; who sends "
        "anything else is cut off. NONCE is what the leader has to answer"
    ),
    "answer PROOF": "leader: it knows the secret, too; a follower hears nothing else before this",
    "hello TASK RUN": (
        "follower: who it is, after that; RUN is the same on all connections of one process"
    ),
    "done TASK": "follower: its program finished",
    "failed TASK MESSAGE": (
        "follower: its program failed by itself; lines of the message are separated by `\\x1e`"
    ),
    "report REASON TASK MESSAGE": (
        "follower, on a connection of its own: something about TASK that ends the job"
    ),
    "beat CPU_SECONDS RECEIVED SENT THROTTLED_SECONDS FAULTS MEMORY_SECONDS CPUS BANDWIDTH": (
        "follower: a sign of life, once a second, with what its container has used since "
        "its start (bytes, major page faults), for how long its CPU limit and a lack of "
        "memory have held it up, and its limits (CPUs, bits per second); `-`: unknown, or "
        "no limit"
    ),
    "stopping": "leader: it was told to stop, and saves",
    "stacks": "leader: the job makes no progress; keep the stacks of all threads",
    "beat": "leader: a sign of life, once a second",
    "end EXIT_CODE": "leader: the job has ended for good; its last line",
}
"""Lines of text between the leader's supervisor and the other tasks, each with who says it."""
