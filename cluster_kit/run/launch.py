"""The whole story of one run: plan, build, up, watch, judge, save, down."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster_kit.backends.compose import cli as compose
from cluster_kit.backends.compose.render import render
from cluster_kit.cluster import Cluster
from cluster_kit.engine import client
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import HostError, KitError
from cluster_kit.image import extra as extra_image
from cluster_kit.image.build import image_present
from cluster_kit.observe.logs import follow_logs
from cluster_kit.observe.state import Observed
from cluster_kit.observe.tracebacks import beyond, cure, last_words, on_host
from cluster_kit.run import evidence, outcome
from cluster_kit.run.doctor import refuse_if_unfit
from cluster_kit.run.prepare import Prepared, Request, prepare, prepare_again
from cluster_kit.run.watch import Watch
from cluster_kit.show.live import View
from cluster_kit.util import signals
from cluster_kit.workspace import RunDirectory, Workspace, last_run, new_run, write_atomically

PLANS = 3
"""How often a plan is made again because somebody took its subnet in between."""


@dataclass
class Stopwatch:
    """Seconds by name of the step, added up where it was taken twice."""

    timings: dict[str, float]
    started: float

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.monotonic() - began


def launch(
    request: Request, workspace: Workspace, view: View, *, keep: bool, resume: bool
) -> dict[str, Any]:
    """Run a cluster to its end and return its outcome, which is also saved with the run.

    Whatever happens after the start, the evidence is saved and, unless `keep`, everything removed.

    Raises:
        KitError: it never came to a run: a wrong manifest, an unfit host, a failing engine.
        KeyboardInterrupt: before anything was started.
    """
    watch = Stopwatch({}, time.monotonic())
    engine = client.connect()
    view.phase("planning")
    with watch.step("plan"):
        prepared = prepare(request, workspace, engine)
        for hint in prepared.hints:
            view.warn(str(hint))
    cluster = prepared.cluster
    with watch.step("render"):
        text = render(cluster)
    _refuse_running(engine, cluster.name)
    with watch.step("preflight"):
        refuse_if_unfit(prepared.facts, cluster)
    with watch.step("build"):
        _build(cluster, view)
    now = datetime.now()
    runs = workspace.runs(cluster.name)
    run = last_run(runs) if resume else new_run(runs, now)
    return _run(Launch(prepared, workspace, view, engine, watch, run, keep), cluster, text)


@dataclass(frozen=True)
class Launch:
    """What all steps of one run share."""

    prepared: Prepared
    workspace: Workspace
    view: View
    engine: Engine
    watch: Stopwatch
    run: RunDirectory
    keep: bool


def _run(it: Launch, cluster: Cluster, text: str) -> dict[str, Any]:
    since = time.time()
    watcher: Watch | None = None
    how = "interrupted"
    try:
        count = len(cluster.tasks)
        it.view.phase(f"starting {count} container{'s' if count > 1 else ''}")
        with it.watch.step("up"):
            cluster = _up(it, cluster, text)
        watcher = Watch(it.engine, cluster, it.run, since)
        it.view.phase(f"running {cluster.name} on {cluster.subnet}")
        _follow(it, cluster)
        how = watcher.until_ended(it.view.update)
        signals.ignore()
    except KeyboardInterrupt:
        it.view.phase("interrupted: stopping the containers, saving the evidence and cleaning up")
    except BaseException as error:
        signals.ignore()
        _note_failure(it, error, cluster, watcher)
        it.engine.remove(cluster.name)
        raise
    return _conclude(it, cluster, watcher, how, since)


def _note_failure(
    it: Launch, error: BaseException, cluster: Cluster, watcher: Watch | None
) -> None:
    """A run that never came to a verdict still says so where one looks for it, with its logs."""
    with contextlib.suppress(Exception):  # the engine may be what failed
        seen = watcher.seen if watcher else Observed.of(cluster)
        evidence.save(it.engine, it.run, seen, it.engine.containers(cluster.name))
    told = {"success": False, "exit_code": 1, "reason": "internal", "message": _described(error)}
    if isinstance(error, KitError):
        reason = _REASONS.get(type(error).exit_code, "internal")
        told |= {"exit_code": error.exit_code, "reason": reason, "message": error.message}
        told["cure"] = error.cure
    write_atomically(it.run.outcome, json.dumps(told, indent=2) + "\n")


_REASONS = {2: "manifest", 3: "host", 4: "engine"}
"""Which error of the kit's, by its exit code, ended a run that never came to a verdict."""


def _described(error: BaseException) -> str:
    """`SystemExit: 1`: a bug in the kit, whose own text alone may say nothing."""
    return f"a bug in the kit: {type(error).__name__}: {error}".rstrip(": ")


def _up(it: Launch, cluster: Cluster, text: str) -> Cluster:
    """Write the file and start it; with a new plan where the subnet was taken meanwhile."""
    prepared = it.prepared
    for attempt in range(1, PLANS + 1):
        file = write_compose(it.workspace, cluster, text)
        write_atomically(it.run.path / "compose.yaml", text)
        try:
            compose.up(file, it.run.output)
            return cluster
        except compose.SubnetTaken:
            it.engine.remove(cluster.name)
            if attempt == PLANS or prepared.manifest.manifest.subnet != "auto":
                raise
            prepared = prepare_again(prepared, it.engine)
            cluster = prepared.cluster
            text = render(cluster)
    raise AssertionError("unreachable")


def write_compose(workspace: Workspace, cluster: Cluster, text: str) -> Path:
    """Write a cluster's compose file, and the output directory of a plain `docker compose up`."""
    file = workspace.generated(cluster.name)
    write_atomically(file, text)
    (file.parent / "output").mkdir(exist_ok=True)
    return file


def _follow(it: Launch, cluster: Cluster) -> None:
    heard = {cluster.leader.name, *(task.name for task in cluster.sidecars)}
    containers = [c for c in it.engine.containers(cluster.name) if c.name in heard]
    follow_logs(it.engine, containers, it.view.log)


def _conclude(
    it: Launch, cluster: Cluster, watcher: Watch | None, how: str, since: float
) -> dict[str, Any]:
    """Judge, stop, save, remove, and save again with the time that stop and removal took."""
    seen = watcher.seen if watcher else Observed.of(cluster)
    containers = it.engine.containers(cluster.name)
    verdict = outcome.judge(cluster, seen, how)
    stays = it.keep and how != "interrupted"
    if not stays:  # first of all: what a task says of its end, and of what it saved, is evidence
        with it.watch.step("down"):
            it.engine.stop(cluster.name)
    logs = evidence.save(it.engine, it.run, seen, containers)
    words = beyond(verdict.message, last_words(logs.get(verdict.blame, "")))
    known_cure = cure(f"{verdict.message}\n{words}")
    verdict = replace(verdict, message=on_host(verdict.message, cluster.mounts))
    it.watch.timings.update(_training_times(seen, cluster, since))

    def save() -> dict[str, Any]:
        it.watch.timings["total"] = time.monotonic() - it.watch.started
        told = outcome.outcome(cluster, verdict, seen, containers, it.watch.timings, words)
        told |= {"cure": known_cure, "run": str(it.run.path)}
        write_atomically(it.run.outcome, json.dumps(told, indent=2) + "\n")
        return told

    told = save()
    if stays:
        return told
    it.view.phase("removing the containers")
    with it.watch.step("down"):
        it.engine.remove(cluster.name)
    return save()


def _training_times(seen: Observed, cluster: Cluster, since: float) -> dict[str, float]:
    """Seconds from the start of the containers to the first step, and from there to the end."""
    leader = cluster.leader.name
    steps = [e.time for e in seen.entries if e.task == leader and e.event in ("step", "epoch")]
    if not steps:
        return {}
    ends = [e.time for e in seen.events if e.task == leader and e.action == "die"]
    times = {"first_step": steps[0] - since}
    return {**times, "train": ends[-1] - steps[0]} if ends else times


def _build(cluster: Cluster, view: View) -> None:
    if cluster.variant is None or image_present(cluster.image):
        return
    view.phase(f"building the shared image {cluster.image}")
    view.close()
    extra_image.ensure(cluster, view.phase, show=True)


def _refuse_running(engine: Engine, name: str) -> None:
    """Ended containers of an earlier run are in the way and are removed; running ones are not."""
    found = engine.containers(name)
    running = [
        container.name for container in found if container.state in ("running", "restarting")
    ]
    if running:
        raise HostError(
            f"the cluster {name} is already up ({len(running)} running tasks)",
            f"`cluster-kit down {name}` first, or run this one beside it with `--name OTHER`",
        )
    if found:
        engine.remove(name)
