"""A running cluster: its tasks, their output, and methods that break, stop and wait for them."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from cluster_kit.api import host_chief
from cluster_kit.api.host_chief import HostChief
from cluster_kit.errors import UsageError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.plan.tasks import tf_configs
from cluster_kit.platforms.engine import CommandOutput, Container, Engine, reaching
from cluster_kit.resolved import Cluster
from cluster_kit.run import task_exec
from cluster_kit.run.attach import wait
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.run import Run
from cluster_kit.show.view import View
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import RunDirectory


def container_of(engine: Engine, run: Run, task: str) -> Container:
    """The container of a task; raises UsageError."""
    for container in engine.containers(run.name, run.id):
        if container.name == task:
            return container
    raise unknown_task(run, task)


def running_container(engine: Engine, run: Run, task: str) -> Container:
    """The container of a task whose processes run; raises UsageError if they do not."""
    container = container_of(engine, run, task)
    if container.state == State.PAUSED:
        raise UsageError(f"{task} is frozen", f'thaw("{task}") lets it continue')
    if container.state != State.RUNNING:
        raise UsageError(
            f"{task} does not run: it is {state_of(container)}",
            f'logs("{task}") has its last lines',
        )
    return container


def unknown_task(run: Run, task: str) -> UsageError:
    """The error for a task that does not exist, or has no container."""
    known = [other.name for other in run.cluster.tasks]
    if task in known:
        return UsageError(
            f"the container of {task} no longer exists: {run.name} was removed",
            f"logs and outcome.json are in {run.directory.path}",
        )
    return UsageError(f"{run.name} has no task {task}", proposal(task, known))


def state_of(container: Container) -> str:
    """A container's state for messages: `exited, exit code 137`."""
    if container.exit_code is None:
        return container.state
    return f"{container.state}, exit code {container.exit_code}"


EXEC_S = 60
MOST_LINES, MOST_CHARACTERS = 100_000, 16_000_000


class RunningCluster:
    """See `cluster`. Tasks are named `chief-0`, `worker-1`; methods raise UsageError for others."""

    def __init__(self, run: Run, view: View, chief: HostChief | None = None) -> None:
        self._run = run
        self._view = view
        self._chief = chief

    def __repr__(self) -> str:
        tasks = ", ".join(task.name for task in self.cluster.tasks)
        return f"<cluster {self.name}: {tasks}; {self.directory.path}>"

    @property
    def name(self) -> str:
        """The cluster's name: its containers are called `NAME-chief-0` and so on."""
        return self._run.name

    @property
    def cluster(self) -> Cluster:
        """The plan: every task with its role, index and address."""
        return self._run.cluster

    @property
    def directory(self) -> RunDirectory:
        """The run's directory: its output and, after the end, logs and outcome.json."""
        return self._run.directory

    @property
    def addresses(self) -> Mapping[str, str]:
        """`IP:port` of each task's TensorFlow server, by task name; with that of a chief on this
        host.
        """
        addresses = {task.name: f"{task.ip}:{self.cluster.port}" for task in self.cluster.tasks}
        return (
            {**addresses, self.cluster.leader.name: self._chief.address}
            if self._chief
            else addresses
        )

    def tasks(self) -> list[Container]:
        """The tasks' containers as they are now: state, exit code, restarts, address."""
        with self._engine() as engine:
            return engine.containers(self.name, self._run.id)

    def logs(self, task: str) -> str:
        """What a task has printed so far, stdout and stderr in order, each line with its time.

        Of a log with more than 100,000 lines or 16 million characters, only the end is returned.
        """
        with self._engine() as engine:
            lines = engine.lines(container_of(engine, self._run, task).id)
            last, characters = deque[str](), 0
            for line in lines:
                last.append(f"{line}\n")
                characters += len(last[-1])
                while len(last) > MOST_LINES or characters > MOST_CHARACTERS:
                    characters -= len(last.popleft())
            return "".join(last)

    def exec(self, task: str, *command: str, within_s: int = EXEC_S) -> CommandOutput:
        """Run a command inside a task's container, and return what it prints, stdout and stderr.

        The result is a str with the attribute `exit_code`: 124 if the command took longer than
        `within_s`.

        Raises:
            UsageError: the task has ended or is frozen, or no command is given.
        """
        if not command:
            raise UsageError(f"no command for {task}", 'name one: exec("worker-0", "ls", "/data")')
        with self._engine() as engine:
            container = running_container(engine, self._run, task)
            words = task_exec.as_the_task(container, command)
            return reaching(engine).ask(container.id, words, within_s)

    def kill(self, task: str) -> None:
        """End a task's processes at once and for good: the engine does not restart it."""
        with self._engine() as engine:
            engine.kill(container_of(engine, self._run, task).id)

    def crash(self, task: str) -> None:
        """Kill a task's processes: the engine restarts it, as often as `retries` allows.

        Raises:
            UsageError: the task has ended, or is frozen.
        """
        with self._engine() as engine:
            reaching(engine).execute(running_container(engine, self._run, task).id, task_exec.CRASH)

    def freeze(self, task: str) -> None:
        """Pause a task's processes until `thaw`; its connections stay open.

        The other tasks notice it after `deadline.silent`, as if its machine hangs.

        Raises:
            UsageError: the task has ended, or is frozen already.
        """
        with self._engine() as engine:
            reaching(engine).freeze(running_container(engine, self._run, task).id)

    def thaw(self, task: str) -> None:
        """Let a frozen task continue; raises UsageError if it is not frozen."""
        with self._engine() as engine:
            container = container_of(engine, self._run, task)
            if container.state != State.PAUSED:
                raise UsageError(f"{task} is not frozen: it is {state_of(container)}")
            reaching(engine).thaw(container.id)

    @contextlib.contextmanager
    def frozen(self, task: str) -> Iterator[None]:
        """A block in which a task is frozen; see `freeze`.

        At its end the task continues, unless it was restarted or removed meanwhile.
        """
        self.freeze(task)
        try:
            yield
        finally:
            with contextlib.suppress(UsageError):
                self.thaw(task)

    def tf_config(self, task: str = "") -> dict[str, Any]:
        """The TF_CONFIG of a task, as TensorFlow reads it; by default of the chief on this host.

        Raises:
            UsageError: there is no such task, or the chief is in its container.
            HostError: no port is free here for the chief's own server.
        """
        if not task:
            return self._host_chief.tf_config()
        texts = tf_configs(self.cluster)
        if task not in texts:
            raise unknown_task(self._run, task)
        return cast(dict[str, Any], json.loads(texts[task]))

    def environment(self) -> dict[str, str]:
        """The variables for the chief's process: TF_CONFIG, and an exemption of the cluster from
        proxies.

        Errors are those of `tf_config`.
        """
        return self._host_chief.environment()

    def wait(self) -> Outcome:
        """Watch the cluster to its end, judge it, save its logs, remove it; returns its outcome.

        Before this call nothing watches the cluster; earlier crashes are detected here. For a chief
        on this host, this call ends the job.
        """
        if self._chief:
            self._chief.end(well=True)
        return wait(
            self._run.host,
            self.name,
            self._run.workspace,
            self._view,
            keep=False,
            caller=self._run.caller,
        )

    def begin(self) -> None:
        """Wait until the chief on this host can begin, if there is one; see `Job.up`.

        Raises:
            HostError: this host does not reach the servers.
            EngineError, DeadlinePassed, TrainingFailed: it has ended meanwhile.
        """
        if self._chief and not self._chief.wait_until_ready():
            raise host_chief.why_not_ready(self.wait())
        if self._chief:
            host_chief.refuse_unreachable(self.cluster)

    def end(self) -> None:
        """Wait for the end of a job whose chief is on this host, if it has not ended yet."""
        if self._chief and not self._chief.has_ended:
            self.wait()

    @contextlib.contextmanager
    def _engine(self) -> Iterator[Engine]:
        with contextlib.closing(self._run.host.connect()) as engine:
            yield engine

    @property
    def _host_chief(self) -> HostChief:
        if self._chief is None:
            leader = self.cluster.leader.name
            raise UsageError(
                f"this process is not the chief of {self.name}",
                f'name a task, as in tf_config("{leader}"), or start it with chief="host"',
            )
        return self._chief


@dataclass(frozen=True)
class RunEvent:
    """An event of a run. `kind` and the other attributes:

    - `phase`: `text` is the current step of the run, such as `planning`;
    - `warning`: `text`;
    - `log`: `text` is a line of `task`'s log, as the task wrote it;
    - `state`: `seen` is the state of all tasks, `seen.tasks["worker-0"].step` for example.
    """

    kind: Literal["phase", "warning", "log", "state"]
    text: str = ""
    task: str = ""
    seen: RunState | None = None


OnEvent = Callable[[RunEvent], None]
"""It is called from several threads, but for the lines of one task by only one at a time."""


def nothing(event: RunEvent) -> None:
    """Ignores an event: the default of `on_event`."""


class EventView:
    """A view (see `show.view`) that turns everything into RunEvents."""

    draws = False

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event

    def count_from(self, began: float) -> None:
        pass

    def phase(self, text: str) -> None:
        self._on_event(RunEvent("phase", text))

    def note(self, text: str) -> None:
        self._on_event(RunEvent("phase", text))

    def warn(self, text: str) -> None:
        self._on_event(RunEvent("warning", text))

    def update(self, seen: RunState) -> None:
        self._on_event(RunEvent("state", seen=seen))

    def log(self, task: str, line: str) -> None:
        self._on_event(RunEvent("log", line, task))

    def close(self) -> None:
        pass
