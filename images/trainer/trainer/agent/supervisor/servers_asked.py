"""The question of each attempt: do all servers answer, and do they show the GPUs they should?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from trainer.agent import outcome
from trainer.agent.injected.gpus import promise
from trainer.agent.outcome import Outcome
from trainer.agent.progress_file import Progress
from trainer.agent.servers import probe
from trainer.agent.servers.probe import ServersMissing, ServersReady
from trainer.agent.task import Task
from trainer.contract import endings


@dataclass(frozen=True)
class ServersAsked:
    """The answer to one attempt's question whether all servers are there."""

    attempt: int
    answer: ServersReady | ServersMissing


def ask(
    task: Task, attempt: int, then: Callable[[ServersAsked], None], cancelled: threading.Event
) -> None:
    """Call `then` with the answer: from a thread, unless none serves."""
    if not task.servers:
        then(ServersAsked(attempt, ServersReady({})))
        return

    def wait() -> None:
        answer = probe.wait_for(task.servers, task.start_deadline_s, cancelled=cancelled)
        then(ServersAsked(attempt, answer))

    threading.Thread(target=wait, name="probe", daemon=True).start()


def promises_broken(task: Task, ready: ServersReady, progress: Progress) -> Outcome | None:
    """Compare the GPUs that servers show with what they were promised, and write both down."""
    broken = {}
    for name, promised in task.promises.items():
        sees = ready.gpus.get(name)
        if sees is None:
            continue
        names, seen = [gpu.name for gpu in promised], list(map(promise.shown, sees))
        message = promise.broken(name, promised, sees)
        progress.write("devices", of=name, promised=names, sees=seen, broken=message)
        if message:
            broken[name] = message
    if not broken or not task.gpu_check:
        return None
    return outcome.because(endings.GPU_MISSING, "; ".join(broken.values()), tuple(broken))


def beside(target: Callable[..., None], *arguments: object) -> None:
    """Run it in a thread of its own, which ends with the process at the latest."""
    threading.Thread(target=target, args=arguments, name=target.__module__, daemon=True).start()
