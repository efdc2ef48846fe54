"""What may go wrong while a run is ended, without keeping it from being saved and removed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType

from cluster_kit.errors import EngineError, HostError, KitError, UsageError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.tracebacks import known_hint, last_words, on_host, without_message
from cluster_kit.platforms.docker.docker_connection import START_AGAIN
from cluster_kit.platforms.engine import SIDECAR, Container, Engine
from cluster_kit.resolved import Cluster
from cluster_kit.run import companions, run_directory
from cluster_kit.run.known_secrets import Known, mask_outcome, mask_verdict, values_of
from cluster_kit.run.outcome import REASON_BY_CODE, Outcome, outcome_of
from cluster_kit.run.run import Run
from cluster_kit.run.run_directory import last_lines, log_lines, save_events, save_logs, without_log
from cluster_kit.run.run_metrics import write_metrics
from cluster_kit.run.run_report import write_report
from cluster_kit.run.verdict import CODES, Ending, Reason, Verdict, blamed, judge, sidecar_notes
from cluster_kit.util import process
from cluster_kit.util.masking import Mask, masked, masker
from cluster_kit.workspace import RunDirectory


class Failures:
    """Suppresses EngineError and OSError of its `with` blocks, and keeps the first one."""

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


@contextlib.contextmanager
def answering(engine: Engine) -> Iterator[None]:
    """Raise EngineError if the engine does not answer; a call of one that hangs takes minutes."""
    if not engine.answers():
        raise EngineError(
            "the Docker engine does not answer",
            START_AGAIN,
        )
    yield


_FULL = ("No space left on device", "Disk quota exceeded", "the disk of /output is full")
_RESUME = "`--resume` continues from the last checkpoint"


def explained(verdict: Verdict, said: str, run: RunDirectory) -> Verdict:
    """The verdict with the directory and its room, if the output is why the run ended.

    Programs fail over a full disk in words of their own, and may free what they had begun to write
    as they fail. Without room nobody can leave an `end`.

    Args:
        said: the last words of the task to blame, or of the leader.
    """
    if verdict.reason == Reason.FAILED and _says_full(f"{verdict.message}\n{said}"):
        return _full(verdict, run)
    if verdict.reason not in (Reason.DISK_FULL, Reason.OUTPUT_LOST):
        return verdict
    output = run.output
    if verdict.reason == Reason.DISK_FULL or _says_full(said) or run_directory.is_full(output):
        return _full(verdict, run)
    gone = "was removed" if not output.is_dir() else "cannot be written any more"
    message = f"the output directory {output} {gone} while the run went on"
    return replace(verdict, message=message, hint=f"bring it back, or make it writable: {_RESUME}")


def _full(verdict: Verdict, run: RunDirectory) -> Verdict:
    """As a program fails, it may free what it had begun to write: then the disk was full."""
    free = run_directory.free(run.output)
    full = f"was full ({free} now)" if run_directory.has_room(run.output) else f"is full ({free})"
    return replace(
        verdict,
        exit_code=CODES[Reason.DISK_FULL],
        reason=Reason.DISK_FULL,
        blame="",
        message=f"the disk of {run.output} {full}; the checkpoints that were complete are kept",
        hint=f"make room there: {_RESUME}",
    )


def _says_full(words: str) -> bool:
    """Whether a line says that the disk is full, and does not mean the memory that is /tmp."""
    lines = (line for line in words.splitlines() if "/tmp/" not in line)
    return any(sign in line for line in lines for sign in _FULL)


def without_verdict(error: BaseException) -> Verdict:
    """The verdict on a run that this error ended before it was judged."""
    if not isinstance(error, KitError):
        # With the type: the text alone may say nothing (`SystemExit: 1`).
        words = f"a bug in the kit: {type(error).__name__}: {error}".rstrip(": ")
        return Verdict(False, KitError.exit_code, Reason.INTERNAL, "", words)
    reason = REASON_BY_CODE.get(error.exit_code, Reason.INTERNAL)
    return Verdict(False, error.exit_code, reason, "", error.message, error.hint)


def incomplete(launch: Run, outcome: Outcome, error: EngineError | OSError) -> KitError:
    """The error that the run ended, but was not saved or removed completely."""
    ended = f"the run ended ({outcome.reason}), but"
    if isinstance(error, EngineError):
        return EngineError(f"{ended} not everything was saved and removed: {error.message}",
                           error.hint)  # fmt: skip
    return HostError(
        f"{ended} its evidence in {launch.directory.path} is not complete: "
        f"{run_directory.why(error, launch.directory.path)}",
        run_directory.HINT,
    )


@process.completing()
def conclude(launch: Run, cluster: Cluster, seen: RunState, ending: Ending) -> Outcome:
    """Judge, stop, save and remove a run, save it again with all timings, and return its outcome.

    Raises:
        EngineError: the engine failed meanwhile; what could be saved is saved.
        HostError: the run's directory cannot be written; everything is removed.
    """
    failures = Failures()
    try:
        with _removed_if_it_fails(launch):
            return _concluded(launch, cluster, seen, ending, failures)
    finally:
        launch.directory.give_to_owner()


@contextlib.contextmanager
def _removed_if_it_fails(launch: Run) -> Iterator[None]:
    """Remove a run's containers if the block fails, even by a bug of the kit's own."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, KitError):
            with Failures(), answering(launch.engine):
                launch.engine.remove(launch.name, launch.id)
        raise


def _concluded(
    launch: Run, cluster: Cluster, seen: RunState, ending: Ending, failures: Failures
) -> Outcome:
    verdict = judge(cluster, seen, ending)
    containers: list[Container] = []
    with failures, answering(launch.engine):
        containers = [*launch.containers(), *launch.sidecars()]
    verdict = blamed(cluster, verdict, ending, containers)
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
        launch.directory.open_to_others()
        outcome = replace(outcome, timings_s=launch.timings.read(seen, launch.since))
        with failures:
            outcome.write(launch.directory)
    notes = _report(launch, values_of(cluster, containers))
    if notes:
        outcome = replace(outcome, notes=[*outcome.notes, *notes])
        with contextlib.suppress(OSError):
            outcome.write(launch.directory)
    if failures.first is None:
        return outcome
    error = incomplete(launch, outcome, failures.first)
    error.run = outcome.run
    if isinstance(failures.first, EngineError) or outcome.success:
        raise error
    return replace(outcome, notes=[*outcome.notes, error.message])


@process.completing()
def fail(launch: Run, cluster: Cluster, seen: RunState, error: BaseException) -> None:
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
    launch.directory.open_to_others()
    _report(launch, values_of(cluster, containers))
    launch.directory.give_to_owner()


def _saved(
    launch: Run,
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
    lacking = without_log(launch.engine, containers)
    secrets = values_of(cluster, containers)
    verdict = mask_verdict(verdict, secrets)
    mask = masker(secrets)
    said = _last_words(launch.engine, containers, verdict, verdict.blame or seen.leader, mask)
    words = without_message(said, verdict.message) if verdict.blame else ""
    told = f"{words}\n{verdict.message}"
    hint = known_hint(f"{verdict.message}\n{words}", cluster.all_mounts, launch.caller)
    verdict = replace(verdict, message=on_host(verdict.message, cluster.all_mounts))
    verdict = explained(verdict, said, directory)
    launch.followed.finish(_logs(launch.engine, containers, mask), told if verdict.blame else "")
    hint = verdict.hint or hint
    run_directory.release(directory)
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
        hint=hint,
        run_id=launch.id,
    )
    notes = [*outcome.notes]
    notes += [f"{name}: the engine did not give its log" for name in lacking]
    notes += sidecar_notes(containers, verdict.blame)
    notes += companions.note_of(launch, cluster) if kept else []
    times = launch.timings.read(seen, launch.since)
    outcome = replace(outcome, notes=notes, timings_s=times)
    outcome = mask_outcome(outcome, secrets)
    _write(launch, outcome, containers, mask, failures)
    return outcome


def _write(
    launch: Run,
    outcome: Outcome,
    containers: Sequence[Container],
    mask: Mask,
    failures: Failures,
) -> None:
    with failures:
        outcome.write(launch.directory)
    with failures:
        save_logs(launch.directory, launch.engine, containers, mask)


def _report(launch: Run, secrets: set[str]) -> list[str]:
    """Write page and metrics; a note for each that cannot be made, which changes no verdict.

    There is neither of a run whose containers were never started.
    """
    notes = []
    known = Known(frozenset(secrets), are_all=True)
    for what, write in (("report", write_report), ("metrics", write_metrics)):
        try:
            write(launch.directory, known)
        except UsageError:
            pass
        except OSError as error:
            notes.append(
                f"no {what} of this run: {run_directory.why(error, launch.directory.path)}"
            )
        except Exception as error:  # noqa: BLE001 a bug here must not change the verdict
            notes.append(f"no {what} of this run: {masked(repr(error), secrets)}")
    return notes


def _last_words(
    engine: Engine,
    containers: list[Container],
    verdict: Verdict,
    task: str,
    mask: Mask,
) -> str:
    """The end of a task's log, as far as the verdict does not tell it; "" after a success."""
    container = next((one for one in containers if one.name == task), None)
    if verdict.success or container is None:
        return ""
    stderr = last_lines(engine, container, stderr=True, mask=mask)
    return last_words(
        last_lines(engine, container, mask=mask), error=verdict.message, stderr=stderr
    )


def _logs(engine: Engine, containers: Sequence[Container], mask: Mask) -> dict[str, Iterator[str]]:
    """The lines of each task's log, by its name; they are read when they are asked for."""
    return {one.name: log_lines(engine, one, mask=mask) for one in containers}
