"""Concludes a run: judges, saves and removes it, even if single steps fail."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TypeVar

from cluster_kit.contract.endings import TMP_FULL
from cluster_kit.errors import EngineError, HostError, KitError, UsageError
from cluster_kit.observe.state import RunState
from cluster_kit.observe.tracebacks import (
    absolute_hint,
    in_mount,
    known_hint,
    last_words,
    missing_below,
    on_host,
    relative_hint,
    relative_paths,
    with_suggestion,
    without_message,
)
from cluster_kit.platforms.docker.docker_connection import START_AGAIN
from cluster_kit.platforms.engine import SIDECAR, Container, Engine
from cluster_kit.programs.resolve import PROGRAM
from cluster_kit.resolved import Cluster, Mount
from cluster_kit.run import companions, run_directory
from cluster_kit.run.known_secrets import Known, mask_outcome, mask_verdict, values_of
from cluster_kit.run.outcome import NOTHING, REASON_BY_CODE, Outcome, outcome_of
from cluster_kit.run.run import Run
from cluster_kit.run.run_directory import last_lines, log_lines, save_events, save_logs, without_log
from cluster_kit.run.run_report import write_metrics, write_report
from cluster_kit.run.verdict import (
    CODES,
    RESUME,
    Ending,
    Reason,
    Verdict,
    blamed,
    judge,
    sidecar_notes,
)
from cluster_kit.util import process, untrusted
from cluster_kit.util.masking import Mask, masked, masker
from cluster_kit.util.nearest import nearest_file
from cluster_kit.workspace import RunDirectory, withdraw

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_FEW_FILES = 5
_DOWN, _MOST_SEEN = 3, 20_000
"""How many directories down, and among how many entries, a missing file is searched for."""
_LONGEST_BUG = 300
"""Maximum characters of an error in a note."""


class Failures:
    """Suppresses EngineError and OSError in its `with` blocks, and stores the first one."""

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


class _Parts:
    """Computes the parts of an outcome from the tasks' output, which can have any content.

    A part that fails, even because of a bug in the kit, is left out, and `notes` names it.
    """

    def __init__(self, secrets: set[str]) -> None:
        self.notes: list[str] = []
        self._secrets = secrets

    def make(self, what: str, make: Callable[[], T], instead: T) -> T:
        """The part that `make` returns, or `instead` if it fails."""
        try:
            return make()
        except Exception as error:  # noqa: BLE001 the verdict must be saved after any error
            _LOG.debug("no %s: %r", what, error)
            bug = masked(repr(error), self._secrets)[:_LONGEST_BUG]
            self.notes.append(f"no {what}, by a bug in the kit: {bug}")
            return instead


@contextlib.contextmanager
def answering(engine: Engine) -> Iterator[None]:
    """Raise EngineError if the engine does not answer; a call to a hanging engine takes minutes."""
    if not engine.answers():
        raise EngineError(
            "the Docker engine does not answer",
            START_AGAIN,
        )
    yield


_FULL = ("No space left on device", "Disk quota exceeded", "the disk of /output is full")


def explained(verdict: Verdict, last_words: str, run: RunDirectory) -> Verdict:
    """The verdict with the directory and its free space, if the output is the reason for the end.

    Programs report a full disk in different words, and may free the space of unfinished files when
    they fail. On a full disk no task can write its `end` event.

    Args:
        last_words: the end of the log of the task to blame, or of the leader.
    """
    if verdict.reason == Reason.FAILED and _says_full(f"{verdict.message}\n{last_words}"):
        return _full(verdict, run)
    if verdict.reason not in (Reason.DISK_FULL, Reason.OUTPUT_LOST):
        return verdict
    output = run.output
    if (
        verdict.reason == Reason.DISK_FULL
        or _says_full(last_words)
        or run_directory.is_full(output)
    ):
        return _full(verdict, run)
    problem = "was removed" if not output.is_dir() else "cannot be written any more"
    message = f"the output directory {output} {problem} during the run"
    return replace(verdict, message=message, hint=f"bring it back, or make it writable: {RESUME}")


def _full(verdict: Verdict, run: RunDirectory) -> Verdict:
    """The verdict that the disk was full; a failing program may have freed space since."""
    free = run_directory.free(run.output)
    full = f"was full ({free} now)" if run_directory.has_room(run.output) else f"is full ({free})"
    return replace(
        verdict,
        exit_code=CODES[Reason.DISK_FULL],
        reason=Reason.DISK_FULL,
        blame="",
        decided="",
        message=f"the disk of {run.output} {full}; the checkpoints that were complete are kept",
        hint=f"free some space there: {RESUME}",
    )


def _says_full(words: str) -> bool:
    """Whether a line reports a full disk, other than /tmp, which is in memory."""
    if TMP_FULL in words:
        return False
    lines = (line for line in words.splitlines() if "/tmp/" not in line)
    return any(sign in line for line in lines for sign in _FULL)


def without_verdict(error: BaseException) -> Verdict:
    """The verdict on a run that this error ended before it was judged."""
    if not isinstance(error, KitError):
        # With the class: the text alone may be meaningless (`SystemExit: 1`).
        words = f"a bug in the kit: {type(error).__name__}: {error}".rstrip(": ")
        return Verdict(False, KitError.exit_code, Reason.INTERNAL, "", words)
    reason = REASON_BY_CODE.get(error.exit_code, Reason.INTERNAL)
    return Verdict(False, error.exit_code, reason, "", error.message, error.hint)


def incomplete(run: Run, outcome: Outcome, error: EngineError | OSError) -> KitError:
    """The error for a run that ended, but was not saved or removed completely."""
    ended = f"the run ended ({outcome.reason}), but"
    if isinstance(error, EngineError):
        down = f"`cluster-kit down {run.name}` removes what is left"
        hint = error.hint if "cluster-kit down" in error.hint else f"{down}; {error.hint}"
        return EngineError(f"{ended} not everything was saved and removed: {error.message}", hint)
    return HostError(
        f"{ended} its evidence in {run.directory.path} is not complete: "
        f"{run_directory.why(error, run.directory.path)}",
        run_directory.HINT,
    )


@process.completing()
def conclude(
    run: Run, cluster: Cluster, seen: RunState, ending: Ending, verdict: Verdict | None = None
) -> Outcome:
    """Judge, stop, save and remove a run, save it again with all timings, and return its outcome.

    Args:
        verdict: if the run was judged already.
    Raises:
        EngineError: the engine failed meanwhile; what could be saved is saved.
        HostError: the run's directory cannot be written; everything is removed.
    """
    failures = Failures()
    try:
        with _removed_if_it_fails(run):
            return _concluded(run, cluster, seen, ending, failures, verdict)
    finally:
        run.directory.give_to_owner()


@contextlib.contextmanager
def _removed_if_it_fails(run: Run) -> Iterator[None]:
    """Remove a run's containers if the block fails, even by a bug of the kit's own."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, KitError):
            with Failures(), answering(run.engine):
                run.engine.remove(run.name, run.id)
        raise


def _concluded(
    run: Run,
    cluster: Cluster,
    seen: RunState,
    ending: Ending,
    failures: Failures,
    verdict: Verdict | None,
) -> Outcome:
    containers: list[Container] = []
    with failures, answering(run.engine):
        containers = [*run.containers(), *run.sidecars()]
    try:
        if verdict is None:
            verdict = blamed(cluster, seen, judge(cluster, seen, ending), ending, containers)
    except Exception as bug:
        fail(run, cluster, seen, bug)
        raise
    kept = not verdict.success if run.keep == "failed" else run.keep
    stays = kept and ending != "interrupted"
    if not stays:  # before saving: what tasks log while they stop is evidence, too
        with failures, run.timings.step("down"), answering(run.engine):
            run.engine.stop(run.name, run.id)
    with failures:
        for one in containers if stays else ():
            if one.role == SIDECAR:
                run.engine.end(one.id)
    outcome = _saved(run, cluster, seen, containers, verdict, failures, kept=stays)
    if not stays:
        run.view.phase("removing the containers")
        with failures, run.timings.step("down"):
            _remove(run)
        outcome = replace(outcome, timings_s=run.timings.read(seen, run.since))
        with failures:
            outcome.write(run.directory)
    notes = _report(run, values_of(cluster, containers))
    if notes:
        outcome = replace(outcome, notes=[*outcome.notes, *notes])
        with contextlib.suppress(OSError):
            outcome.write(run.directory)
    if failures.first is None:
        return outcome
    error = incomplete(run, outcome, failures.first)
    error.run = outcome.run
    if isinstance(failures.first, EngineError) or outcome.success:
        raise error
    return replace(outcome, notes=[*outcome.notes, error.message])


def _in_a_mount(words: str, mounts: Sequence[Mount]) -> str:
    """The hint for a missing relative path that is in a mounted directory; "" if there is none."""
    places = {PROGRAM: "the program's directory", "/data": "the data's directory"}
    for mount in mounts:
        for path in relative_paths(words):
            for name, opened in in_mount(path, mount):
                with contextlib.suppress(OSError, ValueError):
                    untrusted.status(Path(mount.source), name)
                    place = places.get(mount.target, mount.target)
                    by = f'by `Path(__file__).parent / "{path}"` in the program itself, or as '
                    way = by if mount.target == PROGRAM else "as "
                    made = PurePosixPath(path).parent  # a run without the kit has left the file
                    writes = (
                        mount.target == PROGRAM and made != PurePosixPath() and ".." not in path
                    )
                    create = f"; to write it, create {made} first" if writes else ""
                    return (
                        f"relative paths start at /output, and this file is in {place}: "
                        f"open it {way}{opened}{create}"
                    )
    return ""


def _near_in_a_mount(words: str, mounts: Sequence[Mount]) -> str:
    """The hint for a missing file of a mounted directory that has one of this name further down, or
    a similar one beside it; else ""."""
    for mount in mounts:
        for path in missing_below(words, mount.target):
            folder, _, name = path.rpartition("/")
            source = Path(mount.source)
            down = untrusted.files(source, matches=name.__eq__, deepest=_DOWN, most=_MOST_SEEN)
            beside = untrusted.files(source, folder, deepest=0)
            near = min((one.name for one in down), default="") or (
                str(PurePosixPath(folder, similar))
                if (similar := nearest_file(name, sorted(Path(one.name).name for one in beside)))
                else ""
            )
            if near:
                return f"did you mean `{PurePosixPath(mount.target, near)}`?"
    return ""


def _what_is_mounted(words: str, mounts: Sequence[Mount]) -> str:
    """The hint for a missing file of a mounted directory: what is mounted, and its files and
    directories; else ""."""
    for mount in mounts:
        if mount.target != PROGRAM and any(missing_below(words, mount.target)):
            inside = untrusted.files(Path(mount.source), deepest=1, most=_MOST_SEEN)
            names = sorted({"".join(one.name.partition("/")[:2]) for one in inside})
            if names:
                more = ", …" if len(names) > _FEW_FILES else ""
                listed = f"which has {', '.join(names[:_FEW_FILES])}{more}"
            elif any(untrusted.files(Path(mount.source))):
                return ""
            else:
                listed = "in which there is no file"
            return f"{mount.target} is {mount.source}, {listed}"
    return ""


@process.completing()
def fail(run: Run, cluster: Cluster, seen: RunState, error: BaseException) -> None:
    """End a run that failed before a verdict: save its outcome and logs, remove its containers.

    The text of `error` is masked, since it is shown to the user. Failures of the engine or the disk
    are ignored here, since `error` is raised anyway.
    """
    if isinstance(error, KitError):
        error.run = str(run.directory.path)
    failures = Failures()
    containers: list[Container] = []
    with failures, answering(run.engine):
        containers = [*run.containers(), *run.sidecars()]
    if isinstance(error, KitError):  # for example, Compose quotes lines of an env_file
        mask = masker(values_of(cluster, containers))
        error.message, error.hint = mask(error.message), mask(error.hint)
        error.args = (error.message,)
    with _removed_if_it_fails(run):
        _saved(run, cluster, seen, containers, without_verdict(error), failures, kept=False)
    with failures:
        _remove(run)
    _report(run, values_of(cluster, containers))
    began = run.directory.record.exists() or run.directory.outcome.exists()
    if run.is_new and not began:
        withdraw(run.directory)
        if isinstance(error, KitError):
            error.run = ""
    run.directory.give_to_owner()


def _remove(run: Run) -> None:
    """Remove the run's containers, and only then let others look into its directory.

    Raises:
        EngineError: they could not be removed. Their tasks may still create programs that run as
            the caller.
    """
    with answering(run.engine):
        run.engine.remove(run.name, run.id)
    run.directory.open_to_others()


def _saved(
    run: Run,
    cluster: Cluster,
    seen: RunState,
    containers: list[Container],
    verdict: Verdict,
    failures: Failures,
    *,
    kept: bool,
) -> Outcome:
    """Save events, logs and the outcome, and return the outcome.

    The outcome is also saved before the logs: on a full disk, there may be space only for it.
    """
    directory, mounts = run.directory, cluster.all_mounts
    secrets = values_of(cluster, containers)
    parts, mask = _Parts(secrets), masker(secrets)
    lacking = parts.make(
        "look at the logs", lambda: without_log(run.engine, containers), list[str]()
    )
    bare = replace(verdict, message="", hint="", decided="")
    verdict = parts.make("message", lambda: mask_verdict(verdict, secrets), bare)
    task = verdict.blame or seen.leader
    tail, message = parts.make(
        "last words",
        lambda: _last_words(run.engine, containers, verdict, task, mask),
        ("", verdict.message),
    )
    verdict = replace(verdict, message=message)
    words, shown = "", ""
    if verdict.blame:
        said = f"{verdict.message}\n{verdict.decided}"
        words = parts.make("last words", lambda: without_message(tail, said), "")
        shown = f"{words}\n{verdict.message}"
    elif verdict.reason in (Reason.DISK_FULL, Reason.OUTPUT_LOST):
        shown = f"{tail}\n{verdict.message}"  # `explained` adds the host's path to the message
    known = f"{verdict.message}\n{words}"
    hint = parts.make(
        "known hint",
        lambda: (
            _in_a_mount(known, mounts)
            or _near_in_a_mount(known, mounts)
            or known_hint(known, mounts, run.caller, cluster.leader.program)
            or relative_hint(known, mounts, run.caller)
            or _what_is_mounted(known, mounts)
            or absolute_hint(known, mounts, run.caller)
        ),
        "",
    )
    message = parts.make("path", lambda: on_host(verdict.message, mounts), verdict.message)
    verdict = replace(verdict, message=message)
    verdict = parts.make("room of the disk", lambda: explained(verdict, tail, directory), verdict)
    logs = _logs(run.engine, containers, mask)
    parts.make("rest of the logs", lambda: run.followed.finish(logs, shown), None)
    run_directory.release(directory)
    with failures:
        save_events(directory, seen.events)
    notes = [_resumed(run)] if run.resumed else []
    notes += [_without_log(name) for name in lacking]
    notes += parts.make("sidecars", lambda: sidecar_notes(containers, verdict.blame), [])
    notes += companions.note_of(run, cluster) if kept else []
    least = replace(
        NOTHING,
        cluster=cluster.name,
        success=verdict.success,
        exit_code=verdict.exit_code,
        reason=verdict.reason,
        blame=verdict.blame or None,
        message=verdict.message,
        last_words=words,
        notes=notes,
        cure=verdict.hint or hint,
        run=str(directory.path),
        id=run.id,
        kept=kept,
        decided=verdict.decided,
        resumed=run.resumed,
    )

    def whole() -> Outcome:
        outcome = outcome_of(
            cluster,
            verdict,
            seen,
            containers,
            directory,
            last_words=words,
            kept=kept,
            hint=verdict.hint or hint,
            run_id=run.id,
            resumed=run.resumed,
        )
        outcome = replace(outcome, notes=[*outcome.notes, *notes])
        return mask_outcome(outcome, secrets)

    outcome = parts.make("tasks and metrics", whole, least)
    times = parts.make("timings", lambda: run.timings.read(seen, run.since), dict[str, float]())
    noted, outcome = outcome.notes, replace(outcome, timings_s=times)
    outcome = replace(outcome, notes=[*noted, *parts.notes])
    with failures:
        outcome.write(directory)

    def save_all_logs() -> list[str]:
        with failures:
            return save_logs(directory, run.engine, containers, mask)
        return []

    lost = [name for name in parts.make("logs", save_all_logs, list[str]()) if name not in lacking]
    return replace(outcome, notes=[*noted, *parts.notes, *map(_without_log, lost)])


def _without_log(task: str) -> str:
    return f"{task}: the engine did not give its log"


def _resumed(run: Run) -> str:
    at = f"{datetime.fromtimestamp(run.since):%Y-%m-%d %H:%M:%S}"
    return f"resumed at {at}: times, tasks and notes are those since then"


def _report(run: Run, secrets: set[str]) -> list[str]:
    """Write report and metrics; return a note for each that fails, which does not change the
    verdict.

    A run whose containers were never started has neither.
    """
    notes = []
    known = Known(frozenset(secrets), are_all=True)
    for name, write in (("report", write_report), ("metrics", write_metrics)):
        try:
            write(run.directory, known)
        except UsageError:
            pass
        except OSError as error:
            notes.append(f"no {name} of this run: {run_directory.why(error, run.directory.path)}")
        except Exception as error:  # noqa: BLE001 a bug here must not change the verdict
            notes.append(f"no {name} of this run: {masked(repr(error), secrets)}")
    return notes


def _last_words(
    engine: Engine,
    containers: list[Container],
    verdict: Verdict,
    task: str,
    mask: Mask,
) -> tuple[str, str]:
    """The end of a task's log, without the verdict's message, "" after a success; and the message
    with what the log adds to it."""
    container = next((one for one in containers if one.name == task), None)
    if verdict.success or container is None:
        return "", verdict.message
    stderr = last_lines(engine, container, stderr=True, mask=mask)
    words = last_words(
        last_lines(engine, container, mask=mask), error=verdict.message, stderr=stderr
    )
    return words, with_suggestion(verdict.message, stderr)


def _logs(engine: Engine, containers: Sequence[Container], mask: Mask) -> dict[str, Iterator[str]]:
    """The lines of each task's log, by its name; they are read lazily."""
    return {one.name: log_lines(engine, one, mask=mask) for one in containers}
