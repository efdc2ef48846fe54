"""A workspace, an engine and a clock for playing the whole of `up`."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.host import Host
from cluster_kit.run import attach
from cluster_kit.run import launch as launching
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.request import Request
from cluster_kit.workspace import RunDirectory, Workspace
from tests.fakes.acting import Life
from tests.fakes.clock import Clock
from tests.fakes.docker import FakeDocker
from tests.fakes.engine import FakeEngine
from tests.fakes.hosts import Machine, fake_host
from tests.fakes.view import RecordingView
from tests.schemas import check

NAME = "demo"
MANIFEST = f'format = 1\nname = "{NAME}"\nworker = 2\nps = 1\nevaluator = 1\nretries = 2\n'


class Stage:
    """The place of one run. `engine`, `docker`, `view` can be changed before it."""

    def __init__(self, root: Path, machine: Machine | None = None) -> None:
        self.workspace = Workspace(root)
        self.clock = Clock()
        self.engine = FakeEngine(self.clock)
        self.docker = FakeDocker(self.engine)
        self.view = RecordingView(self.engine, NAME)
        self.interruptible = True
        self.machine = machine or Machine(fake_host())
        host = fake_host(lambda: self.engine, self.clock, self.docker)
        self.machine.host = replace(host, interrupts=self)
        self.machine.locks_in(root)

    def interrupt_once(self) -> None:
        """See `host.Interrupts`."""
        self.interruptible = True

    def ignore(self) -> None:
        """See `host.Interrupts`."""
        self.interruptible = False

    @property
    def host(self) -> Host:
        return self.machine.host

    def up(
        self,
        acting: Mapping[str, Sequence[Life]] | None = None,
        *,
        keep: bool = False,
        resume: bool = False,
        **overrides: Any,
    ) -> Outcome:
        """Run `cluster-kit up demo` with tasks that behave like this."""
        self.engine.acting = dict(acting or {})
        request = Request(NAME, overrides)
        return launching.launch(
            self.host, request, self.workspace, self.view, keep=keep, resume=resume
        )

    def detach(self, acting: Mapping[str, Sequence[Life]] | None = None, **overrides: Any) -> None:
        """Run `cluster-kit up demo --detach` with tasks that behave like this."""
        self.engine.acting = dict(acting or {})
        request = Request(NAME, overrides)
        launching.launch_detached(self.host, request, self.workspace, self.view, resume=False)

    def attach(self, *, keep: bool = False) -> Outcome:
        """Run `cluster-kit attach demo`."""
        return attach.attach(self.host, NAME, self.workspace, self.view, keep=keep)

    def wait(self) -> Outcome:
        """Run `cluster-kit wait demo`."""
        return attach.wait(self.host, NAME, self.workspace, self.view, keep=False)

    @property
    def directory(self) -> RunDirectory:
        """The directory of the newest run."""
        return RunDirectory((self.workspace.runs(NAME) / "latest").resolve())

    @property
    def ran(self) -> bool:
        return (self.workspace.runs(NAME) / "latest").exists()

    def saved(self) -> dict[str, Any]:
        """Returns the outcome.json of the newest run, after checking it against its schema."""
        found: dict[str, Any] = json.loads(self.directory.outcome.read_text())
        check("outcome", found)
        return found

    def events(self) -> list[dict[str, Any]]:
        lines = (self.directory.path / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def subnet(self) -> str:
        """Returns the subnet in the newest compose file."""
        lines = self.docker.ups[-1].read_text().splitlines()
        return next(line.split()[-1] for line in lines if "subnet:" in line)

    def is_clean(self) -> bool:
        """Returns whether the engine has nothing left of the cluster."""
        ours = [cluster for cluster, _ in self.engine.subnets.values() if cluster == NAME]
        return not self.engine.boxes and not ours


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Iterator[Stage]:
    yield from set_up(tmp_path, machine)


def set_up(root: Path, machine: Machine | None = None) -> Iterator[Stage]:
    """Yield a stage in a new directory; its threads end with the test."""
    (root / "compose").mkdir(exist_ok=True)
    (root / "compose" / f"{NAME}.toml").write_text(MANIFEST)
    made = Stage(root, machine)
    try:
        yield made
    finally:
        made.engine.finish()


def close(run: RunDirectory, patch: pytest.MonkeyPatch) -> None:
    """Let the directory be another user's, which this one may not look into."""
    stat, access = os.stat, os.access

    def refuse(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if isinstance(path, Path) and run.path in path.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, *args, **options)

    patch.setattr(os, "stat", refuse)
    patch.setattr(os, "access", lambda path, mode: path != run.path and access(path, mode))
