"""A server task: a TensorFlow server that ends with the job."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

from trainer.agent import outcome, stacks
from trainer.agent.beacon import client, handshake
from trainer.agent.beacon.client import BeaconClient, JobEnded, LeaderStopping, StacksWanted
from trainer.agent.beacon.messages import Report
from trainer.agent.errors import ServerError, TrainerError
from trainer.agent.event_queue import next_event, put_signals
from trainer.agent.injected import dead_connections, gpu_promises
from trainer.agent.injected.gpu_promises import Gpu
from trainer.agent.outcome import Outcome
from trainer.agent.progress_file import Progress
from trainer.agent.servers import tensorflow_server, wire
from trainer.agent.servers.probe import check_port
from trainer.agent.task import Task
from trainer.agent.usage_recorder import Recorder
from trainer.contract import endings
from trainer.contract.times import LEADER_LOST_S, SERVER_SAVE_S, SERVER_STOP_S


def gpus_missing(task: Task) -> Outcome | None:
    """The outcome of a server that has other GPUs or slices than it was promised; None if they are
    right, the leader compares them, or the driver does not say which they are.

    The leader cannot distinguish MIG slices of a GPU, and does not know which GPUs a node of a
    swarm assigned.
    """
    if not task.gpu_check or not any(_only_known_by_uuid(gpu) for gpu in task.gpus):
        return None
    sliced = any(gpu.sliced for gpu in task.gpus)
    name, prefix = ("a MIG slice", "MIG-") if sliced else ("a GPU", "")
    sees = [Gpu(name, pci, prefix + uuid) for pci, uuid in gpu_promises.cuda_devices() if uuid]
    message = gpu_promises.broken_promise(task.name, task.gpus, sees) if sees else ""
    return outcome.because(endings.GPU_MISSING, message, (task.name,)) if message else None


def _only_known_by_uuid(gpu: Gpu) -> bool:
    """Whether a GPU is only identified by its UUID; the leader sees only bus ids."""
    return gpu.sliced or bool(gpu.uuid and not gpu.pci)


def serve(
    task: Task,
    start: Callable[[Task, SimpleQueue[object]], str] | None = None,
    what: str = "TensorFlow server",
) -> int:
    """Run until the leader announces the job's end, or SIGTERM; return the exit code.

    Args:
        start: starts the server and returns its target; returns "" if an event came first by which
            the task ends, and leaves that in the queue. If not given, `start_server`.
        what: the server, for the log.
    """
    events: SimpleQueue[object] = SimpleQueue()
    put_signals(events, outcome.stopped, signal.SIGTERM)
    progress = Progress(task.progress_file)
    recorder = Recorder(task)
    stacks.arm(task)
    leader, secret = None, partial(handshake.read_secret, task)
    if task.beacon:
        leader = BeaconClient(
            task.beacon, secret, task.name, task.start_deadline_s, events.put,
            silent_s=task.silent_s, others=client.others(task),
        )  # fmt: skip
    # Ops that run here save to the paths of the program, which starts in the same directory.
    with contextlib.suppress(OSError):
        os.chdir(task.output)
    dead_connections.limit(task.silent_s, os.environ.get("TF_CONFIG", ""))
    try:
        target = start(task, events) if start else start_server(task)
    except TrainerError as problem:
        Outcome(problem.exit_code, endings.FAILED, str(problem)).record(progress)
        raise
    if wrong := gpus_missing(task):
        wrong.record(progress)
        if task.beacon:
            client.send_report(task.beacon, secret, Report(wrong.reason, task.name, wrong.message))
        return wrong.exit_code
    if target:
        progress.write("ready")
        print(f"{task.name}: {what} ready, {target}", flush=True)
    ended = until_the_end(task, events, leader)
    recorder.stop()
    ended.record(progress)
    print(f"{task.name}: {ended.message}", flush=True)
    return ended.exit_code


def until_the_end(task: Task, events: SimpleQueue[object], leader: BeaconClient | None) -> Outcome:
    """Wait for the job's end or SIGTERM, and after SIGTERM until the leader has saved."""
    leader_stops = False
    while True:
        event = next_event(events)
        if isinstance(event, JobEnded):
            return job_ended(task, event)
        if isinstance(event, LeaderStopping):
            leader_stops = True
        elif isinstance(event, StacksWanted):
            stacks.keep(task, "the job makes no progress")
        elif isinstance(event, Outcome):
            break
    until = time.monotonic() + (SERVER_SAVE_S if leader_stops else SERVER_STOP_S)
    while leader and leader.connected and time.monotonic() < until:
        leader_says = next_event(events, min(until, time.monotonic() + 0.05))
        if isinstance(leader_says, JobEnded):
            break
        if isinstance(leader_says, LeaderStopping):
            until += SERVER_SAVE_S - SERVER_STOP_S
    return event


def start_server(task: Task) -> str:
    """Start the server that the task needs, and return its target; raises ServerError if it cannot
    listen."""
    check_port(task.address)
    gpus = max(1, len(task.gpus))
    while True:
        try:
            return start_server_with(task, gpus)
        except ServerError as problem:
            # Fewer GPUs than assigned. The leader reports that, and needs a server that answers.
            if gpus == 0 or "virtual devices" not in str(problem):
                raise
            gpus -= 1


def start_server_with(task: Task, gpus: int) -> str:
    """Start the server with a memory limit for each of `gpus` GPUs, if there is a limit."""
    config = wire.session_config(task.gpu_memory_mb, gpus, task.simulate_gpus)
    definition = wire.server_def(task.cluster, task.job, task.index, task.address.port, config)
    if task.server == "native":
        try:
            return tensorflow_server.start_native(definition)
        except tensorflow_server.NativeUnavailable as problem:
            print(f"{task.name}: no native server ({problem}); using tf.distribute.Server",
                  file=sys.stderr, flush=True)  # fmt: skip
    return tensorflow_server.start_python(definition)


def job_ended(task: Task, ended: JobEnded) -> Outcome:
    """A server's outcome: exit code 0 if the job ended in any way; otherwise the leader was lost,
    or never appeared."""
    if ended.exit_code is not None:
        return Outcome(
            0, endings.FINISHED, f"the job ended (exit code {ended.exit_code} of {task.leader})"
        )
    if ended.seen:
        return outcome.because(
            endings.LEADER_LOST, f"{task.leader} did not answer for {LEADER_LOST_S:g} s"
        )
    return outcome.because(
        endings.START_DEADLINE,
        f"{task.leader} did not appear at {task.beacon} within {task.start_deadline_s:g} s",
        (task.leader,),
    )
