"""The end of a run: judge, stop, save, remove, whatever fails on the way."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Container
from cluster_kit.errors import EngineError, HostError, KitError, ManifestError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.tracebacks import beyond, cure, last_words, on_host
from cluster_kit.run.context import Launch
from cluster_kit.run.evidence import save_events, save_logs
from cluster_kit.run.outcome import Outcome, outcome_of
from cluster_kit.run.verdict import Reason, Verdict, judge
from cluster_kit.run.watch import How


class Trouble:
    """A block that may fail where the engine or the disk does: the first failure is kept, and what
    comes after the block is still done."""

    def __init__(self) -> None:
        self.first: EngineError | OSError | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, EngineError | OSError):
            return False
        self.first = self.first or error
        return True


def conclude(launch: Launch, cluster: Cluster, seen: RunState, how: How) -> Outcome:
    """Judge, stop, save, remove, and save again with the time that stop and removal took.

    Raises:
        EngineError: the engine was lost on the way; what could be saved is saved.
        HostError: the run's directory cannot be written; everything is removed.
    """
    trouble = Trouble()
    verdict = judge(cluster, seen, how)
    containers: list[Container] = []
    with trouble:
        containers = launch.engine.containers(launch.name)
    stays = launch.keep and how != "interrupted"
    if not stays:  # first of all: what a task says of its end, and of what it saved, is evidence
        with trouble, launch.timings.step("down"):
            launch.engine.stop(launch.name)
    outcome = _saved(launch, cluster, seen, containers, verdict, trouble)
    if not stays:
        launch.view.phase("removing the containers")
        with trouble, launch.timings.step("down"):
            launch.engine.remove(launch.name)
        outcome = replace(outcome, timings_s=launch.timings.read(seen, launch.since))
        with trouble:
            outcome.write(launch.directory)
    if trouble.first is not None:
        raise _raised(launch, outcome, trouble.first)
    return outcome


def fail(launch: Launch, cluster: Cluster, seen: RunState, error: BaseException) -> None:
    """The end of a run that never comes to a verdict: it says so where one looks for it, with its
    logs, and is removed where the engine still does that."""
    trouble = Trouble()
    containers: list[Container] = []
    with trouble:
        containers = launch.engine.containers(launch.name)
    _saved(launch, cluster, seen, containers, _without_verdict(error), trouble)
    with trouble:
        launch.engine.remove(launch.name)


def _saved(
    launch: Launch,
    cluster: Cluster,
    seen: RunState,
    containers: list[Container],
    verdict: Verdict,
    trouble: Trouble,
) -> Outcome:
    """Save events, logs and the outcome, which is returned."""
    logs: dict[str, str] = {}
    with trouble:
        save_events(launch.directory, seen.events)
    with trouble:
        logs = save_logs(launch.engine, launch.directory, containers)
    words = beyond(verdict.message, last_words(logs.get(verdict.blame, "")))
    known_cure = verdict.cure or cure(f"{verdict.message}\n{words}")
    verdict = replace(verdict, message=on_host(verdict.message, cluster.mounts))
    outcome = outcome_of(
        cluster, verdict, seen, containers, launch.directory, last_words=words, cure=known_cure
    )
    unread = [
        f"{c.name}: the engine did not give its log" for c in containers if c.name not in logs
    ]
    outcome = replace(
        outcome,
        notes=[*outcome.notes, *unread],
        timings_s=launch.timings.read(seen, launch.since),
    )
    with trouble:
        outcome.write(launch.directory)
    return outcome


def _without_verdict(error: BaseException) -> Verdict:
    if not isinstance(error, KitError):
        # `SystemExit: 1`: a bug in the kit, whose own text alone may say nothing.
        words = f"a bug in the kit: {type(error).__name__}: {error}".rstrip(": ")
        return Verdict(False, KitError.exit_code, Reason.INTERNAL, "", words)
    reason = _REASONS.get(error.exit_code, Reason.INTERNAL)
    return Verdict(False, error.exit_code, reason, "", error.message, error.cure)


_REASONS = {
    ManifestError.exit_code: Reason.MANIFEST,
    HostError.exit_code: Reason.HOST,
    EngineError.exit_code: Reason.ENGINE,
}
"""Which error of the kit's, by its exit code, ended a run that never came to a verdict."""


def _raised(launch: Launch, outcome: Outcome, error: EngineError | OSError) -> KitError:
    ended = f"the run ended ({outcome.reason}), but"
    if isinstance(error, EngineError):
        return EngineError(f"{ended} not everything was saved and removed: {error.message}",
                           error.cure)  # fmt: skip
    return HostError(
        f"{ended} its evidence in {launch.directory.path} is not complete: {error.strerror}",
        "make room there, or write access, and run it again",
    )
