"""A program under a light supervisor: it starts the program, and knows how and when to end it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from queue import SimpleQueue

from trainer import outcome
from trainer.beacon import client
from trainer.beacon.server import Announcer, Joined, Left, Reported
from trainer.errors import TrainerError
from trainer.events import Progress
from trainer.network.bandwidth import REFUSED
from trainer.outcome import Outcome
from trainer.supervisor.child import find_program
from trainer.supervisor.follower import follow
from trainer.supervisor.leader import Lead
from trainer.task import Task


def supervise(task: Task, name: str, arguments: Sequence[str]) -> int:
    """Run the program to its end; the exit code. The leader's end is the job's end."""
    events: SimpleQueue[object] = SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: events.put(outcome.stopped()))
    signal.signal(signal.SIGINT, lambda *_: events.put(outcome.stopped()))
    progress = Progress(task.progress_file)
    announcer = None
    try:
        if task.is_leader and task.beacon:
            announcer = Announcer(task.beacon, lambda heard: events.put(meaning(heard)))
        program = find_program(name, arguments)
        if task.is_leader:
            ended = Lead(task, program, progress, events, announcer).run()
        else:
            ended = follow(task, program, progress, events)
    except TrainerError as problem:
        ended = Outcome(problem.exit_code, outcome.FAILED, str(problem))
    ended.record(progress)
    if ended.exit_code or ended.reason == outcome.CUT_OFF:
        print(f"{task.name}: {ended.headline}", file=sys.stderr, flush=True)
    if announcer:
        announcer.announce(ended.exit_code)
    elif task.beacon and ended.reason == outcome.GPU_MISSING:
        client.report(task.beacon, ended.message)
    return ended.exit_code


def meaning(heard: Joined | Left | Reported) -> object:
    """What followers report is what their host cannot give them: the end of the job."""
    if isinstance(heard, Reported):
        task, _, why = heard.line.partition(" ")
        lacks = outcome.cannot_shape if why.startswith(REFUSED) else outcome.gpu_missing
        return lacks(heard.line, (task,))
    return heard
