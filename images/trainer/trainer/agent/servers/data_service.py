"""A task of tf.data service: its dispatcher, or one of its workers. It ends with the job.

The dispatcher keeps a journal below the output. One that was started again reads it, and goes on
for the same programs and workers. Each run has a journal of its own: what an earlier run has read
is no matter of a later one that continues in the same output.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from trainer.agent.beacon import client, handshake
from trainer.agent.beacon.client import JobEnded
from trainer.agent.beacon.messages import Report
from trainer.agent.errors import ContractError, ServerError, TrainerError
from trainer.agent.event_queue import next_event
from trainer.agent.outcome import Outcome
from trainer.agent.servers.probe import CHANNEL_OPTIONS, check_port
from trainer.agent.servers.serve import serve as serve_with
from trainer.agent.task import DATA_DISPATCHER, DATA_WORKER, Task
from trainer.contract import endings
from trainer.contract.times import BEAT_S

JOURNALS = "data-service"
"""The directory of the journals below the output."""
LOOK_S, ANSWER_S = 0.05, 2.0
SCHEME = "grpc://"
_servers: list[Any] = []
"""Keeps the server alive: TensorFlow stops one that is garbage-collected."""


def serve(task: Task) -> int:
    """Run until the leader announces the job's end, or SIGTERM; return the exit code."""
    try:
        code = serve_with(task, start, "tf.data service")
    except ContractError as problem:
        # Another start would end the same way, and programs would wait for the service for ever.
        tell_leader(task, endings.FAILED, task.name, str(problem))
        raise
    if code == 0 and task.role == DATA_DISPATCHER:
        remove(task.output / JOURNALS)  # the job has ended
    return code


@dataclass(frozen=True)
class Started:
    """The server has started, or cannot."""

    problem: TrainerError | None = None


def start(task: Task, events: SimpleQueue[object]) -> str:
    """Start the task's server and return its target.

    It starts in a thread: a worker waits until its dispatcher answers, and the job may end, or the
    task be stopped, before that. The event then stays in the queue, and "" is returned.

    Raises:
        ContractError: this TensorFlow has no tf.data service, or the task has no dispatcher.
        ServerError: it cannot listen, or cannot write its journal.
    """
    check_port(task.address)
    threading.Thread(
        target=lambda: events.put(Started(start_now(task))), name="start", daemon=True
    ).start()
    while True:
        event = next_event(events)
        if isinstance(event, Started):
            if event.problem:
                raise event.problem
            return f"{SCHEME}{task.address}"
        if isinstance(event, (JobEnded, Outcome)):
            events.put(event)
            return ""


def start_now(task: Task) -> TrainerError | None:
    """Start the server; returns the error if that fails."""
    make = dispatcher if task.role == DATA_DISPATCHER else worker
    try:
        _servers.append(make(task, of_tensorflow()))
    except TrainerError as problem:
        return problem
    except Exception as problem:  # noqa: BLE001 - TensorFlow raises its own errors, and others
        return ServerError(f"tf.data service: {problem}")
    return None


def of_tensorflow() -> Any:
    """The module `tf.data.experimental.service`; raises ContractError if there is none."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    import tensorflow as tf

    service = getattr(getattr(tf.data, "experimental", None), "service", None)
    if not hasattr(service, "DispatcherConfig"):
        raise ContractError(
            f"TensorFlow {tf.__version__} has no tf.data service: data workers need 2.4 or newer;"
            " take another image, or set data_worker = 0"
        )
    return service


def dispatcher(task: Task, service: Any) -> Any:
    """Start the dispatcher, which continues with its journal if this run has one.

    Raises:
        OSError: the journal cannot be written.
    """
    journal = journal_of(task)
    if journal.parent.is_symlink():  # a program's: what is elsewhere is not the service's to remove
        journal.parent.unlink()
    journal.mkdir(parents=True, exist_ok=True)
    remove_others(journal)
    config = service.DispatcherConfig(
        port=task.address.port,
        protocol=SCHEME.partition(":")[0],
        work_dir=str(journal),
        fault_tolerant_mode=True,
        **worker_addresses(task, service),
    )
    server = service.DispatchServer(config)
    if task.beacon and (count := getattr(server, "_num_workers", None)):
        threading.Thread(
            target=expect_workers, args=(task, count), name="expected", daemon=True
        ).start()
    return server


def worker_addresses(task: Task, service: Any) -> dict[str, object]:
    """The workers' addresses, which sharding by worker needs; {} for a TensorFlow without it."""
    known = getattr(service.DispatcherConfig, "_fields", ())
    addresses = list(task.cluster.get(DATA_WORKER, ()))
    return {"worker_addresses": addresses} if "worker_addresses" in known else {}


def worker(task: Task, service: Any) -> Any:
    """Start a worker, which registers with the dispatcher as soon as that answers.

    Raises:
        ContractError: there is no dispatcher in the cluster.
    """
    dispatchers = task.cluster.get(DATA_DISPATCHER, ())
    if not dispatchers:
        raise ContractError(f"TF_CONFIG has no {DATA_DISPATCHER} for {task.name}")
    # TensorFlow waits for it, too, but lets no other thread of Python run: no heartbeat is sent.
    while not answers(dispatchers[0]):
        time.sleep(LOOK_S)
    config = service.WorkerConfig(
        dispatcher_address=dispatchers[0],
        worker_address=str(task.address),
        port=task.address.port,
        protocol=SCHEME.partition(":")[0],
        heartbeat_interval_ms=round(1000 * BEAT_S),
    )
    return service.WorkerServer(config)


def answers(address: str) -> bool:
    """Whether a gRPC server answers at `host:port`, and is not frozen."""
    import grpc

    with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_S)
        except grpc.FutureTimeoutError:
            return False
    return True


def expect_workers(task: Task, count: Callable[[], int]) -> None:
    """End the job if no worker has registered within the start deadline."""
    until = time.monotonic() + task.start_deadline_s
    while time.monotonic() < until:
        if count():
            return
        time.sleep(LOOK_S * 10)
    if not count():
        late = f"no data worker has registered with {task.name} within {task.start_deadline_s:g} s"
        tell_leader(task, endings.START_DEADLINE, f"{DATA_WORKER}-0", late)


def tell_leader(task: Task, reason: str, about: str, message: str) -> None:
    """Report to the leader a problem that ends the job."""
    if task.beacon:
        secret = partial(handshake.read_secret, task)
        client.send_report(task.beacon, secret, Report(reason, about, message))


def journal_of(task: Task) -> Path:
    """The directory of this run's journal, known by the run's secret.

    Raises:
        ServerError: neither the host nor the leader has made a secret within the start deadline.
    """
    until = time.monotonic() + task.start_deadline_s
    while True:
        try:
            secret = handshake.read_secret(task)
        except OSError as problem:
            if time.monotonic() > until:
                raise ServerError(f"the run has no secret: {problem}") from problem
            time.sleep(LOOK_S)
        else:
            return task.output / JOURNALS / hashlib.sha256(secret).hexdigest()[:16]


def remove_others(journal: Path) -> None:
    """Remove the journals of earlier runs; one that cannot be removed stays."""
    for folder in journal.parent.iterdir():
        if folder != journal:
            remove(folder)


def remove(folder: Path) -> None:
    """Remove a directory, with what programs have put into it; what cannot be removed stays."""
    # Python removes a directory inside a directory by a recursive call.
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
