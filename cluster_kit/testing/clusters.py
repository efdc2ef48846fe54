"""The value of the fixture `cluster`: it runs clusters with unique names and folders."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from cluster_kit.api import HostError, Job, Outcome, RunEvent, RunningCluster, load
from cluster_kit.api.job import located
from cluster_kit.host import Host
from cluster_kit.manifest.load import find
from cluster_kit.run.outcome import outcome_from
from cluster_kit.run.take_down import take_down as stop_and_remove
from cluster_kit.util import locks
from cluster_kit.util.terminal import Guard, duration, is_ci
from cluster_kit.workspace import RunDirectory


def text(root: Path) -> str:
    """A paragraph for each run below `root/runs`, oldest first; "" if there is none.

    On CI, where pytest prints it, it has no commands for the runner.
    """
    runs = [path for path in root.glob("runs/*/*") if path.is_dir() and not path.is_symlink()]
    runs.sort(key=lambda path: path.stat().st_mtime)
    outcomes = "\n\n".join("\n".join(_told(RunDirectory(run))) for run in runs)
    return Guard()(outcomes) if is_ci(os.environ) else outcomes


def _told(run: RunDirectory) -> Iterator[str]:
    outcome = _outcome(run)
    if outcome is None:
        yield f"{run.path.parent.name}: without a verdict"
    else:
        yield _headline(outcome)
        yield from (f"  {line}" for line in outcome.message.splitlines())
        yield from (f"  | {line}" for line in outcome.last_words.splitlines())
        if outcome.cure:
            yield f"  \u2192 {outcome.cure}"
        yield from (f"  note: {note}" for note in outcome.notes)
    yield f"  everything is in {run.path}"


def _headline(outcome: Outcome) -> str:
    ending = "success" if outcome.success else outcome.reason
    blame = f", blame {outcome.blame}" if outcome.blame else ""
    return f"{outcome.cluster}: {ending} in {duration(outcome.timings_s.get('total', 0.0))}{blame}"


def _outcome(run: RunDirectory) -> Outcome | None:
    try:
        return outcome_from(json.loads(run.outcome.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


WAIT_S = 3600.0


class Turns:
    """Lets one test at a time use a subnet that a manifest sets; others are chosen freely."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held: set[str] = set()

    @contextlib.contextmanager
    def of(self, job: Job) -> Iterator[None]:
        """A block in which no other test has a cluster in the job's subnet.

        A second cluster of the same test does not wait: the kit refuses it.

        Raises:
            HostError: another test uses the subnet for more than WAIT_S.
        """
        subnet = job.fixed_subnet
        name = f"cluster-kit-subnet-{re.sub('[^0-9]', '-', subnet)}.lock"
        if not subnet or name in self._held:
            yield
            return
        with contextlib.ExitStack() as held:
            try:
                file = self._host.locks.directory() / name
                held.enter_context(locks.lock(file, f"the cluster {job.name}", WAIT_S))
            except (locks.Locked, OSError) as error:
                raise HostError(
                    f'subnet = "{subnet}" is taken by another test: {error}',
                    'write subnet = "auto" in the manifest',
                ) from None
            self._held.add(name)
            held.callback(self._held.discard, name)
            yield


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """A block that SIGTERM interrupts like Ctrl-C, so that clusters are removed.

    A SIGTERM handler that is already set stays.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


LONGEST_PREFIX = 31
"""Maximum length of the test's part of a name; 9 more characters make a cluster's longest name."""


class Clusters:
    """Clusters of one test; their names begin with the test's.

    A relative path is searched in the folder of the test's file, then in pytest's root directory.
    The same applies to `program`, `data` and `requirements`. A manifest can also be a name: one in
    `compose/` of the root directory, or one of the kit's own.
    """

    def __init__(
        self,
        host: Host,
        test: str,
        folders: Sequence[Path],
        new_folder: Callable[[], Path],
        notes: Path,
    ) -> None:
        """Args:
        host: the machine that they run on.
        test: the test's name.
        folders: the folders in which relative paths are searched; the last one is the root
            directory.
        new_folder: creates the folder of the runs.
        notes: the folder for notes of the names of running clusters.
        """
        self.root: Path | None = None
        self._host = host
        self._test = test
        self._folders = tuple(folders)
        self._new_folder = new_folder
        self._notes = notes
        self._own_notes: list[Path] = []
        self._turns = Turns(host)

    def load(self, manifest: str | Path, **overrides: Any) -> Job:
        """The job of a manifest, with a unique name; see `cluster_kit.load`."""
        self.root = self.root or self._made()
        name = f"{_label(self._test)}-{secrets.token_hex(4)}"
        path = self._path(str(manifest))
        if not path.is_file():
            path = find(str(manifest), self._folders[-1] / "compose")
        values = {
            key: located(key, value, lambda path: self._path(str(path)))
            for key, value in overrides.items()
        }
        job = load(path, root=self.root, **{"name": name, **values})
        return replace(job, host=self._host)

    def run(
        self,
        manifest: str | Path,
        *,
        on_event: Callable[[RunEvent], None] | None = None,
        **overrides: Any,
    ) -> Outcome:
        """Run a cluster to its end; return its outcome, whether it succeeded or not. See
        `Job.run`."""
        job = self.load(manifest, **overrides)
        with self._noted(job), self._turns.of(job):
            return job.run(on_event)

    @contextlib.contextmanager
    def up(
        self,
        manifest: str | Path,
        *,
        on_event: Callable[[RunEvent], None] | None = None,
        **overrides: Any,
    ) -> Iterator[RunningCluster]:
        """A cluster that is up during the block. See `Job.up`."""
        job = self.load(manifest, **overrides)
        with self._noted(job), self._turns.of(job), job.up(on_event) as running:
            yield running

    def told(self) -> str:
        """How each run ended, and its directory, for the report of a failed test."""
        return text(self.root) if self.root else ""

    def take_down(self) -> None:
        """Remove all clusters of the test that are still up."""
        for note in list(self._own_notes):
            take_down(self._host, note.stem)
            self._forget(note)

    def _made(self) -> Path:
        """The folder of the runs, created at the first call, with the project's lock files."""
        root, manifests = self._new_folder(), self._folders[-1] / "compose"
        (root / "compose").mkdir()
        for file in manifests.glob("tensorflow-*.lock"):
            shutil.copy(file, root / "compose")
        return root

    @contextlib.contextmanager
    def _noted(self, job: Job) -> Iterator[None]:
        note = self._notes / f"{job.name}.cluster-kit"
        note.touch()
        self._own_notes.append(note)
        yield
        self._forget(note)  # if this raised, the end of the test tries again

    def _forget(self, note: Path) -> None:
        if note in self._own_notes:  # the `with` block may end after its test
            self._own_notes.remove(note)
        note.unlink(missing_ok=True)

    def _path(self, path: str) -> Path:
        """The absolute path, by the rule of the class; below the last folder if the path does not
        exist."""
        candidates = [folder / Path(path).expanduser() for folder in self._folders]
        return next((candidate for candidate in candidates if candidate.exists()), candidates[-1])


def take_down(host: Host, name: str) -> None:
    """Stop and remove a cluster if it is up; its logs and outcome are saved."""
    with contextlib.closing(host.connect()) as engine:
        stop_and_remove(host, engine, name)


def _label(test: str) -> str:
    """A test's name, made valid as the beginning of a cluster's name."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:LONGEST_PREFIX].strip("-")
    return words if words[:1].isalpha() else f"t-{words}"[:LONGEST_PREFIX].strip("-")
