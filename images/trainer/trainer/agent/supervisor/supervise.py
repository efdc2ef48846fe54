"""A program under a light supervisor: it starts the program, and knows how and when to end it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from queue import SimpleQueue
from typing import NoReturn

from trainer.agent import disk_space, outcome
from trainer.agent.beacon import client, handshake
from trainer.agent.beacon.heard import Heard
from trainer.agent.beacon.messages import Report
from trainer.agent.beacon.server import BeaconServer
from trainer.agent.errors import TrainerError
from trainer.agent.injected import dead_connections
from trainer.agent.outcome import Outcome
from trainer.agent.profiling import at_step
from trainer.agent.progress_file import Progress
from trainer.agent.sampling.recorder import Recorder
from trainer.agent.supervisor.child import find_program
from trainer.agent.supervisor.follower import follow
from trainer.agent.supervisor.leader import Leader
from trainer.agent.task import EVALUATOR, Task
from trainer.contract import endings
from trainer.contract.times import BEAT_S


def supervise(task: Task, name: str, arguments: Sequence[str]) -> int:
    """Run the program to its end; the exit code. The leader's end is the job's end."""
    events: SimpleQueue[object] = SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: events.put(outcome.stopped()))
    signal.signal(signal.SIGINT, lambda *_: events.put(outcome.stopped()))
    progress = Progress(task.progress_file)
    recorder = Recorder(task)
    beacon_server, over = None, threading.Event()
    try:
        if task.is_leader and task.beacon:
            beacon_server = BeaconServer(
                task.beacon,
                handshake.make_secret(task),
                lambda heard: events.put(meaning(heard)),
                beat=lambda: beat(task),
                silent_s=task.silent_s,
            )
        program = find_program(name, arguments)
        if task.is_leader:
            # Else its questions to a server that was cut off go on into a connection that is dead.
            dead_connections.limit(task.silent_s, os.environ.get("TF_CONFIG", ""))
            at_step.begin(task, progress)
            watched = (task, events.put, over)
            threading.Thread(target=disk_space.watch, args=watched, daemon=True).start()
            ended = Leader(task, program, progress, events, beacon_server).run()
        else:
            if task.role == EVALUATOR:
                threading.Thread(target=beats, args=(task,), name="beats", daemon=True).start()
            ended = follow(task, program, progress, events)
    except TrainerError as problem:
        ended = Outcome(problem.exit_code, endings.FAILED, str(problem))
    except OSError as problem:  # the program cannot be started in an output that is gone
        if disk_space.trouble(task) is None:
            raise
        ended = disk_space.of(task, problem)
    over.set()
    ended = disk_space.instead(task, ended)
    recorder.stop()
    ended.record(progress)
    if not ended.printed and (ended.exit_code or ended.reason == endings.CUT_OFF):
        print(f"{task.name}: {ended.headline}", file=sys.stderr, flush=True)
    if beacon_server:
        beacon_server.announce(ended.exit_code)
        with contextlib.suppress(OSError):
            handshake.forget_secret(task)
    elif task.beacon and ended.reason == endings.GPU_MISSING:
        secret = partial(handshake.read_secret, task)
        client.send_report(task.beacon, secret, Report(ended.reason, task.name, ended.message))
    return ended.exit_code


def beats(task: Task) -> NoReturn:
    """Show the host that this evaluator is alive: there is no leader any more at its end."""
    while True:
        beat(task)
        time.sleep(BEAT_S)


def beat(task: Task) -> None:
    """Show the host that this task is alive; what cannot be written is the host's to notice."""
    with contextlib.suppress(OSError):
        task.beat_file.touch()


def meaning(heard: Heard) -> object:
    """What the leader makes of a follower's word: an Outcome if it ends the job."""
    if isinstance(heard, Report):
        return outcome.because(heard.reason, heard.message, (heard.task,))
    return heard
