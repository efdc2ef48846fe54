"""Ends a run: judges, stops, saves and removes, even if one of these fails."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import SIDECAR, Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import EngineError, KitError, UsageError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.tracebacks import cure, last_words, on_host, without_message
from cluster_kit.run import disk_space
from cluster_kit.run.beside import board
from cluster_kit.run.context import Launch
from cluster_kit.run.ending.ending_failures import Failures, answering
from cluster_kit.run.ending.output_trouble import explained
from cluster_kit.run.ending.unfinished import incomplete, without_verdict
from cluster_kit.run.judging import sidecars
from cluster_kit.run.judging.endings import Ending
from cluster_kit.run.judging.outcome import Outcome, outcome_of
from cluster_kit.run.judging.verdict import Verdict, judge
from cluster_kit.run.keeping.evidence import read_logs, save_events, save_logs
from cluster_kit.run.keeping.metrics import write_metrics
from cluster_kit.run.keeping.report import write_report
from cluster_kit.run.keeping.secrets import mask_files, mask_verdict, values_of
from cluster_kit.util import signals
from cluster_kit.util.masking import masked
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import RunDirectory


@signals.completing()
def conclude(launch: Launch, cluster: Cluster, seen: RunState, ending: Ending) -> Outcome:
    """Judge, stop, save and remove a run, save it again with all timings, and return its outcome.

    Raises:
        EngineError: the engine failed meanwhile; what could be saved is saved.
        HostError: the run's directory cannot be written; everything is removed.
    """
    failures = Failures()
    verdict = judge(cluster, seen, ending)
    containers: list[Container] = []
    with failures, answering(launch.engine):
        containers = [*launch.containers(), *launch.sidecars()]
    verdict = sidecars.blamed(cluster, verdict, ending, containers)
    stays = launch.keep and ending != "interrupted"
    if not stays:  # before saving: what tasks log while they stop is evidence, too
        with failures, launch.timings.step("down"), answering(launch.engine):
            launch.engine.stop(launch.name, launch.id)
    with failures:
        for one in containers if stays else ():
            if one.role == SIDECAR:
                launch.engine.end(one.id)
    outcome = _saved(launch, cluster, seen, containers, verdict, failures, kept=stays)
    if not stays:
        launch.view.phase("removing the containers")
        with failures, launch.timings.step("down"), answering(launch.engine):
            launch.engine.remove(launch.name, launch.id)
        outcome = replace(outcome, timings_s=launch.timings.read(seen, launch.since))
        with failures:
            outcome.write(launch.directory)
    _report(launch, values_of(cluster, containers), failures)
    if failures.first is None:
        return outcome
    error = incomplete(launch, outcome, failures.first)
    error.run = outcome.run
    if isinstance(failures.first, EngineError) or outcome.success:
        raise error
    return replace(outcome, notes=[*outcome.notes, error.message])


@signals.completing()
def fail(launch: Launch, cluster: Cluster, seen: RunState, error: BaseException) -> None:
    """End a run that failed before a verdict: save its outcome and logs, remove its containers.

    Failures of the engine or the disk are ignored here, since `error` is raised anyway.
    """
    if isinstance(error, KitError):
        error.run = str(launch.directory.path)
    failures = Failures()
    containers: list[Container] = []
    with failures, answering(launch.engine):
        containers = [*launch.containers(), *launch.sidecars()]
    _saved(launch, cluster, seen, containers, without_verdict(error), failures, kept=False)
    with failures, answering(launch.engine):
        launch.engine.remove(launch.name, launch.id)
    _report(launch, values_of(cluster, containers), failures)


def _saved(
    launch: Launch,
    cluster: Cluster,
    seen: RunState,
    containers: list[Container],
    verdict: Verdict,
    failures: Failures,
    *,
    kept: bool,
) -> Outcome:
    """Save events, logs and the outcome, and return the outcome.

    The outcome comes before the logs, too: on a full disk it may be all that there is room for.
    """
    directory = launch.directory
    logs = read_logs(launch.engine, containers)
    secrets = values_of(cluster, containers)
    verdict = mask_verdict(verdict, secrets)
    said = _last_words(launch.engine, containers, logs, verdict, verdict.blame or seen.leader)
    words = without_message(said, verdict.message) if verdict.blame else ""
    told = f"{words}\n{verdict.message}"
    verdict = replace(verdict, message=on_host(verdict.message, cluster.all_mounts))
    verdict = explained(verdict, said, directory)
    launch.followed.finish(logs, told if verdict.blame else "")
    known_cure = verdict.cure or cure(f"{verdict.message}\n{words}")
    disk_space.release(directory)
    with failures:
        save_events(directory, seen.events)
    outcome = outcome_of(
        cluster,
        verdict,
        seen,
        containers,
        directory,
        last_words=words,
        kept=kept,
        cure=known_cure,
        run_id=launch.id,
    )
    notes = [masked(note, secrets) for note in outcome.notes]
    notes += [
        f"{c.name}: the engine did not give its log" for c in containers if c.name not in logs
    ]
    notes += sidecars.notes_of(containers, verdict.blame)
    notes += board.note_of(launch, cluster) if kept else []
    times = launch.timings.read(seen, launch.since)
    outcome = replace(outcome, notes=notes, timings_s=times)
    _write(directory, outcome, logs, secrets, failures)
    return outcome


def _write(
    directory: RunDirectory,
    outcome: Outcome,
    logs: Mapping[str, str],
    secrets: set[str],
    failures: Failures,
) -> None:
    with failures:
        outcome.write(directory)
    with failures:
        save_logs(directory, logs)
    with failures:
        mask_files(directory.progress, secrets)


def _report(launch: Launch, secrets: set[str], failures: Failures) -> None:
    """Write page and metrics; there is no page of a run whose containers were never started."""
    with failures, contextlib.suppress(UsageError):
        write_report(launch.directory, secrets)
    with failures, contextlib.suppress(UsageError):
        write_metrics(launch.directory, secrets)


def _last_words(
    engine: Engine,
    containers: list[Container],
    logs: Mapping[str, str],
    verdict: Verdict,
    task: str,
) -> str:
    """The end of a task's log, as far as the verdict does not tell it; "" after a success."""
    if verdict.success or task not in logs:
        return ""
    stderr = ""
    with contextlib.suppress(EngineError):
        stderr = "".join(engine.logs(c.id, stderr=True) for c in containers if c.name == task)
    return last_words(logs[task], error=verdict.message, stderr=harmless(stderr))
