"""A cluster that runs: its tasks, what they say, and what can be done to them."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, cast

from cluster_kit.api import bridge, containers, host_chief
from cluster_kit.api.host_chief import HostChief
from cluster_kit.cluster import Cluster
from cluster_kit.engine import client
from cluster_kit.engine.containers import CommandOutput, Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import UsageError
from cluster_kit.observe.task_view import State
from cluster_kit.plan.tf_config import tf_configs
from cluster_kit.run import inside
from cluster_kit.run.attach import wait
from cluster_kit.run.context import Launch
from cluster_kit.run.judging.outcome import Outcome
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory

EXEC_S = 60
MOST_LINES = 100_000


class RunningCluster:
    """See `cluster`. Tasks are named `chief-0`, `worker-1`; methods raise UsageError for others."""

    def __init__(self, run: Launch, view: View, chief: HostChief | None = None) -> None:
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
        """Where the run's output and, when it has ended, logs and outcome.json are."""
        return self._run.directory

    @property
    def addresses(self) -> Mapping[str, str]:
        """`IP:port` of each task's TensorFlow server, by the task's name; the host's own, too."""
        found = {task.name: f"{task.ip}:{self.cluster.port}" for task in self.cluster.tasks}
        return {**found, self.cluster.leader.name: self._chief.address} if self._chief else found

    def tasks(self) -> list[Container]:
        """The tasks' containers as they are now: state, exit code, restarts, address."""
        with _engine() as engine:
            return engine.containers(self.name, self._run.id)

    def logs(self, task: str) -> str:
        """What a task has printed so far, stdout and stderr in order, each line with its time.

        Of a log with more than 100,000 lines these are the last ones.
        """
        with _engine() as engine:
            lines = engine.lines(containers.found(engine, self._run, task).id)
            return "".join(f"{line}\n" for line in deque(lines, MOST_LINES))

    def exec(self, task: str, *command: str, within_s: int = EXEC_S) -> CommandOutput:
        """Run a command inside a task's container, and return what it prints, stdout and stderr.

        That is a str, with the command's `exit_code`: 124 if it took longer than `within_s`.

        Raises:
            UsageError: the task has ended, or is frozen; or there is no command.
        """
        if not command:
            raise UsageError(f"no command for {task}", 'name one: exec("worker-0", "ls", "/data")')
        with _engine() as engine:
            return engine.ask(containers.running(engine, self._run, task).id, command, within_s)

    def kill(self, task: str) -> None:
        """End a task's processes at once, for good: the engine does not start it again."""
        with _engine() as engine:
            engine.kill(containers.found(engine, self._run, task).id)

    def crash(self, task: str) -> None:
        """Kill a task's processes: the engine starts it again, as often as `retries` allows.

        Raises:
            UsageError: the task has ended, or is frozen.
        """
        with _engine() as engine:
            engine.execute(containers.running(engine, self._run, task).id, inside.CRASH)

    def freeze(self, task: str) -> None:
        """Stop a task's processes where they are, until `thaw`; its connections stay open.

        The others miss it after `deadline.silent`, as they would miss a machine that hangs.

        Raises:
            UsageError: the task has ended, or is frozen already.
        """
        with _engine() as engine:
            engine.freeze(containers.running(engine, self._run, task).id)

    def thaw(self, task: str) -> None:
        """Let a frozen task go on; raises UsageError if it is not frozen."""
        with _engine() as engine:
            container = containers.found(engine, self._run, task)
            if container.state != State.PAUSED:
                raise UsageError(f"{task} is not frozen: it is {containers.state(container)}")
            engine.thaw(container.id)

    @contextlib.contextmanager
    def frozen(self, task: str) -> Iterator[None]:
        """A block in which a task is frozen; see `freeze`.

        At its end the task goes on, unless it was started again or removed meanwhile.
        """
        self.freeze(task)
        try:
            yield
        finally:
            with contextlib.suppress(UsageError):
                self.thaw(task)

    def tf_config(self, task: str = "") -> dict[str, Any]:
        """The TF_CONFIG of a task, as TensorFlow reads it; without one, of the chief on this host.

        Raises:
            UsageError: there is no such task, or the chief is in its container.
            HostError: no port is free here for the chief's own server.
        """
        if not task:
            return self._host_chief.tf_config()
        texts = tf_configs(self.cluster)
        if task not in texts:
            raise containers.unknown(self._run, task)
        return cast(dict[str, Any], json.loads(texts[task]))

    def environment(self) -> dict[str, str]:
        """The variables of the process that is the chief: TF_CONFIG, and no proxy for the cluster.

        Errors are those of `tf_config`.
        """
        return self._host_chief.environment()

    def wait(self) -> Outcome:
        """Watch it to its end, judge it, save its logs, remove it; its outcome.

        Until then nobody watches it: what crashes meanwhile is seen here. A chief on this host says
        by this that it has done its work.
        """
        if self._chief:
            self._chief.end(well=True)
        return wait(self.name, self._run.workspace, self._view, keep=False)

    def begin(self) -> None:
        """Wait until the chief on this host can begin, if there is one; see `Job.up`.

        Raises:
            HostError: this host does not reach the servers.
            EngineError, DeadlinePassed, TrainingFailed: it has ended meanwhile.
        """
        if self._chief and not self._chief.wait_until_ready():
            raise host_chief.why_not_ready(self.wait())
        if self._chief:
            bridge.refuse_unreachable(self.cluster)

    def end(self) -> None:
        """Wait for the end of a job whose chief is on this host, if it has not ended yet."""
        if self._chief and not self._chief.has_ended:
            self.wait()

    @property
    def _host_chief(self) -> HostChief:
        if self._chief is None:
            leader = self.cluster.leader.name
            raise UsageError(
                f"this process is not the chief of {self.name}",
                f'name a task, as in tf_config("{leader}"), or start it with chief="host"',
            )
        return self._chief


@contextlib.contextmanager
def _engine() -> Iterator[Engine]:
    engine = client.connect()
    try:
        yield engine
    finally:
        engine.close()
