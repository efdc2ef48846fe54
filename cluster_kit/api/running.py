"""A cluster that runs: its tasks, what they say, and what can be done to them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, cast

from cluster_kit.cluster import Cluster
from cluster_kit.engine import client
from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import UsageError
from cluster_kit.plan.tf_config import tf_configs
from cluster_kit.run.attach import wait
from cluster_kit.run.context import Launch
from cluster_kit.run.outcome import Outcome
from cluster_kit.show.view import View
from cluster_kit.util.nearest import proposal
from cluster_kit.workspace import RunDirectory

EXEC_S = 60


class RunningCluster:
    """See `Job.up`. Tasks are named `chief-0`, `worker-1`; methods raise UsageError for others."""

    def __init__(self, run: Launch, view: View) -> None:
        self._run = run
        self._view = view

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

    def tasks(self) -> list[Container]:
        """The tasks' containers as they are now: state, exit code, restarts, address."""
        with _engine() as engine:
            return engine.containers(self.name, self._run.id)

    def logs(self, task: str) -> str:
        """What a task has printed so far, stdout and stderr in order, each line with its time."""
        with _engine() as engine:
            return engine.logs(self._container(engine, task).id)

    def exec(self, task: str, *command: str, within_s: int = EXEC_S) -> str:
        """What a command prints that is run inside a task's container, stdout and stderr."""
        with _engine() as engine:
            return engine.ask(self._container(engine, task).id, command, within_s)

    def kill(self, task: str) -> None:
        """End a task's processes at once. A task that fails so is started again by `wait`."""
        with _engine() as engine:
            engine.kill(self._container(engine, task).id)

    def tf_config(self, task: str) -> dict[str, Any]:
        """The TF_CONFIG of a task, as TensorFlow reads it."""
        texts = tf_configs(self.cluster)
        if task not in texts:
            raise self._unknown(task)
        return cast(dict[str, Any], json.loads(texts[task]))

    def wait(self) -> Outcome:
        """Watch it to its end, judge it, save its logs, remove it; its outcome.

        Until then nobody watches it: what crashes meanwhile is seen here.
        """
        return wait(self.name, self._run.workspace, self._view, keep=False)

    def _container(self, engine: Engine, task: str) -> Container:
        for container in engine.containers(self.name, self._run.id):
            if container.name == task:
                return container
        raise self._unknown(task)

    def _unknown(self, task: str) -> UsageError:
        known = [one.name for one in self.cluster.tasks]
        return UsageError(f"{self.name} has no task {task}", proposal(task, known))


@contextlib.contextmanager
def _engine() -> Iterator[Engine]:
    engine = client.connect()
    try:
        yield engine
    finally:
        engine.close()
