"""Commands, variables and paths of a container, and the beacon's lines: the README's source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMMANDS: Mapping[str, str] = {
    "serve": "a TensorFlow server that waits for work: every ps, and workers under a coordinator",
    "data-service": "a task of tf.data service: its dispatcher, or one of its workers",
    "run PROGRAM [ARG…]": (
        "a program: chief, evaluator, workers that train. `PROGRAM` is the name of a built-"
        "in program (`classifier`) or the path of a Python file"
    ),
    "stacks": "prints the stack of each thread of the task that runs in this container",
    "profile SECONDS [TASK…]": (
        "traces these tasks (default: all) for SECONDS, writes the trace to "
        "`/output/profile/`, and prints its facts as JSON"
    ),
    "arguments PROGRAM [ARG…]": (
        "exits with 0 if the arguments of the built-in program are valid, else with 2 and the "
        "reason; with `--help` it prints the program's help. The host calls it with its own"
        " Python"
    ),
    "verdict RUN OPTION…": (
        "judges the run in this directory by the files of its tasks, writes `RUN/outcome.json`, "
        "and exits with the kit's exit code. A Slurm job calls it at its end"
    ),
}
"""The commands of `python3 -m trainer`, each with its description."""


@dataclass(frozen=True)
class Variable:
    """An environment variable.

    If `of_image`, the supervisor sets it for its program; else the host sets it.
    """

    meaning: str
    of_image: bool = False


VARIABLES: Mapping[str, Variable] = {
    "TF_CONFIG": Variable(
        "TensorFlow's variable. The evaluator's contains only the evaluator (its program can get "
        "another one: `CLUSTER_KIT_TRAINING`), and that of tf.data service's tasks only these"
    ),
    "CLUSTER_KIT_TRAINING": Variable(
        "only for the evaluator: JSON, the training cluster as in TF_CONFIG. The TF_CONFIG"
        " of a user's program has this cluster, too, if there is a chief and TensorFlow has"
        " Estimators (below 2.16), which require it; absent: it does not"
    ),
    "CLUSTER_KIT_SHARED": Variable(
        "path of a JSON file with values that all tasks share: "
        '`{"cluster": …, "variables": {…}}`, TF_CONFIG\'s cluster and further variables. A '
        "container's environment overrides it; absent: the environment is complete. On a swarm: "
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
    "CLUSTER_KIT_DATA_SERVICE": Variable(
        "`grpc://host:port` of tf.data service's dispatcher; absent: there are no data workers"
    ),
    "CLUSTER_KIT_START_DEADLINE_S": Variable("seconds within which every server must answer"),
    "CLUSTER_KIT_WAITS_FOR": Variable(
        'JSON, the services that must answer before programs start: `[{"name": "redis", "host": '
        '"10.0.0.200", "port": 6379, "path": ""}]`; a `path` is asked for by HTTP. Absent: none'
    ),
    "CLUSTER_KIT_JOB_DEADLINE_S": Variable(
        "seconds the program may run, including retries, from the first time that all servers "
        "answer; absent or 0: no deadline"
    ),
    "CLUSTER_KIT_EVALUATOR_GRACE_S": Variable(
        "seconds the evaluator may continue after the job's end"
    ),
    "CLUSTER_KIT_SILENT_S": Variable(
        "seconds without a heartbeat after which a task is lost (frozen or cut off); 10 if "
        "absent, 0: never"
    ),
    "CLUSTER_KIT_STALL_S": Variable(
        "seconds without progress after which the leader restarts its program; the second time, "
        "it ends the job; `auto` or absent: derived from the program's reports; 0: never"
    ),
    "CLUSTER_KIT_RETRIES": Variable(
        "how often the leader restarts its program after a server or a peer was lost or the "
        "program was killed; how often a peer may fail"
    ),
    "CLUSTER_KIT_SUCCESS": Variable(
        'JSON, who decides that the job succeeded: `{"text": "{worker = 0.5}", "needed": '
        '{"worker": 2}}`, the manifest\'s line, and how many tasks of each role must end well. '
        "Absent: the leader decides"
    ),
    "CLUSTER_KIT_RESTART": Variable(
        'JSON, exit codes of programs, as ranges with both ends: `{"permanent": [[3, 3]], '
        '"retryable": [[64, 78]]}`: after a permanent one, a program is never started again, and '
        "after a retryable one the leader's is, too. Absent: none"
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
        "`off`: the GPUs that tasks see are recorded (`devices` events), but no task is ended "
        "because of them"
    ),
    "CLUSTER_KIT_COUNT_STEPS": Variable(
        "`off`: steps and epochs of a user's program that reports none are not counted in its "
        "process; a manifest can set it in `environment`. Absent: they are"
    ),
    "CLUSTER_KIT_DEVICE_FILTERS": Variable(
        "`own`: a session of a user's program (TensorFlow 1's) that has no device filters gets "
        "those of the ps and its own task, so that it needs no other task; a manifest can set it "
        "in `environment`. Absent: sessions are left as they are"
    ),
    "CLUSTER_KIT_GPU_MEMORY_MB": Variable(
        "TensorFlow's memory limit per GPU of this task; absent: memory growth"
    ),
    "CLUSTER_KIT_TRAINERS": Variable(
        "only for a task that computes gradients: the number of such tasks on its machine. It gets "
        "as many threads for each op (`TF_NUM_INTRAOP_THREADS`) as it has CPUs, divided by this "
        "number; absent: it is alone, or the number is unknown"
    ),
    "CLUSTER_KIT_SCHEDULING": Variable(
        "`batch`: the kernel schedules the task's threads as those of batch jobs (`SCHED_BATCH`), "
        "which preempt no other thread when they wake up; `normal` or absent: as any others; a "
        "manifest can set it in `environment`"
    ),
    "CLUSTER_KIT_SIMULATE_GPUS": Variable(
        "number of logical CPU devices of a task without a GPU; default: one"
    ),
    "CLUSTER_KIT_BANDWIDTH_BPS": Variable(
        "limit of this task's network in bits per second, in each direction. Such a container "
        "starts as root with NET_ADMIN, SETUID, SETGID, SETPCAP and KILL, sets the limit, and "
        "drops these rights before anything else runs"
    ),
    "CLUSTER_KIT_USER": Variable(
        "`uid:gid` of the task after the limit was set, or `owner`: a container that starts as "
        "root continues as the owner of its output directory, without capabilities"
    ),
    "CLUSTER_KIT_OLD_API": Variable(
        "`on`: a user's program is written for TensorFlow 1: `import tensorflow` gives that API; "
        "absent: it does not"
    ),
    "CLUSTER_KIT_OWN_SERVER": Variable(
        "`on`: a user's program starts no TensorFlow server but connects to this task's "
        "(`--master`), which is started in its process; absent: it is not"
    ),
    "CLUSTER_KIT_BEACON_SECRET": Variable(
        "the secret by which tasks of one run authenticate on the beacon, new for each run; "
        "programs do not get it. Empty or absent: the leader creates one in "
        "`/output/progress/.beacon-secret`, which only its user can read"
    ),
    "CLUSTER_KIT_SECRETS": Variable(
        "JSON, the secrets that become files in `/run/secrets`, by name: `variable` has the "
        "value, and `stays` tells whether the program keeps that variable. Removed before the "
        "program begins"
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
        "the limit of this task's network that was set, in bits per second",
        of_image=True,
    ),
    "CLUSTER_KIT_PROGRESS": Variable(
        "the task's progress file; a user's program may append events",
        of_image=True,
    ),
    "CLUSTER_KIT_MAILBOX": Variable(
        "a private directory in which supervisor and program exchange files",
        of_image=True,
    ),
    "CLUSTER_KIT_AFTER_IMPORT": Variable(
        "what happens at the end of the program's `import tensorflow`, separated by commas: "
        "`devices`, `connections`, `iterators`, `tf1`, `closures`, `placement`, `refuse`, `join`, "
        "`estimator`, `own-server`, `imported`, `built`, `peers`, `sessions`, `sigterm`, "
        "`steps`, `epochs`, `servers`",
        of_image=True,
    ),
    "CLUSTER_KIT_STACKS": Variable(
        "the file into which the program writes the stacks of its threads at SIGUSR2",
        of_image=True,
    ),
}

PATHS: Mapping[str, str] = {
    "/output": "read-write, the same for all tasks: each ps writes its part of a checkpoint",
    "/data": "read-only: the user's data set",
    "/program": "read-only: the user's code",
    "/tmp": "tmpfs, separate for each task",
    "/run/secrets": "secrets as files, read-only, or written by the trainer into a tmpfs",
}
"""Directories that a container has."""

BEACON: Mapping[str, str] = {
    "challenge NONCE": "leader, as its first line: the follower must answer NONCE",
    "answer NONCE PROOF": (
        "follower: PROOF is an HMAC of both nonces with the run's secret; the leader closes the "
        "connection of a client that sends anything else. The leader must answer NONCE"
    ),
    "answer PROOF": "leader: proves that it knows the secret; a follower accepts nothing else "
    "before this line",
    "hello TASK RUN": (
        "follower, after the proof: its name; RUN is the same on all connections of one process"
    ),
    "done TASK": "follower: its program finished",
    "failed TASK MESSAGE": (
        "follower: its program failed, not because of another task; lines of the message are "
        "separated by `\\x1e`"
    ),
    "permanent TASK EXIT_CODE MESSAGE": (
        "follower: its program failed with an exit code after which it is not started again"
    ),
    "report REASON TASK MESSAGE": (
        "follower, on a separate connection: a problem of TASK that ends the job"
    ),
    "beat CPU_SECONDS RECEIVED SENT THROTTLED_SECONDS FAULTS MEMORY_SECONDS CPUS BANDWIDTH": (
        "follower: a heartbeat, once a second, with its container's usage since the start (bytes, "
        "major page faults), the time lost to its CPU limit and to lack of memory, and its "
        "limits (CPUs, bits per second); `-`: unknown, or no limit"
    ),
    "stopping": "leader: it was stopped, and saves",
    "stacks": "leader: the job makes no progress, or its deadline has passed; the follower saves "
    "the stacks of all threads",
    "beat": "leader: a heartbeat, once a second",
    "end EXIT_CODE": "leader, as its last line: the job has ended",
}
"""Lines of text between the leader's supervisor and the other tasks, each with its sender."""
