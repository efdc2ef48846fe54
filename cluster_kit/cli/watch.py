"""`up --watch`: run, and run again when the program's files change."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cluster_kit.cli.app import err, print_error, print_json, say, short
from cluster_kit.cli.ending import end_with, print_outcome
from cluster_kit.errors import HostError, Interrupted, ManifestError
from cluster_kit.host import Host
from cluster_kit.run.launch import launch
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.request import Request
from cluster_kit.run.rerun import UntilChanged, files_of
from cluster_kit.run.verdict import Reason
from cluster_kit.show.view import make_view
from cluster_kit.util.changes import Changes
from cluster_kit.workspace import Workspace

MOST_TOLD = 3


def run_on_changes(
    host: Host, request: Request, workspace: Workspace, *, resume: bool, as_json: bool
) -> NoReturn:
    """Run a cluster each time that its files change, until Ctrl-C.

    What is wrong with a manifest or a program is told, and waited on.

    Raises:
        Interrupted: Ctrl-C, while nothing ran.
        KitError: as `launch`, but for a ManifestError.
    """
    while True:
        watched = files_of(request, workspace)
        with Changes(watched) as changes:
            while watched == files_of(request, workspace):
                _once(host, request, workspace, changes, resume=resume, as_json=as_json)


def _once(
    host: Host,
    request: Request,
    workspace: Workspace,
    changes: Changes,
    *,
    resume: bool,
    as_json: bool,
) -> None:
    """One run, and the wait for the next change."""
    until = UntilChanged(lambda: _taken(changes))
    host.interrupts.interrupt_once()  # after a run both signals are ignored
    try:
        outcome = _run(host, request, workspace, until, resume=resume)
    except ManifestError as error:
        print_error(error, as_json)
    else:
        host.interrupts.interrupt_once()
        _tell(outcome, as_json=as_json)
    changed: Sequence[Path] = until.seen
    if not changed:
        say("waiting for a change of its files; Ctrl-C ends it")
        try:
            changed = changes.wait()
        except KeyboardInterrupt:
            raise Interrupted("interrupted: nothing was running") from None
        except OSError as error:
            raise _blind(error) from None
    names = [short(path) for path in changed]
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    say(f"changed: {', '.join(names[:MOST_TOLD])}{more}; running again")


def _run(
    host: Host, request: Request, workspace: Workspace, until: UntilChanged, *, resume: bool
) -> Outcome:
    view = make_view(err)
    with contextlib.closing(view):
        return launch(host, request, workspace, view, keep=False, resume=resume, observer=until)


def _tell(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome; one that was interrupted ends the command."""
    if outcome.reason == Reason.INTERRUPTED:
        end_with(outcome, keep=False, as_json=as_json)
    if as_json:
        print_json(outcome.as_json())
    else:
        print_outcome(outcome)


def _taken(changes: Changes) -> list[Path]:
    try:
        return changes.taken()
    except OSError as error:
        raise _blind(error) from None


def _blind(error: OSError) -> HostError:
    return HostError(
        f"this host cannot tell when files change: {error}",
        "WATCHFILES_FORCE_POLLING=1 looks at them again and again; a program in a smaller folder "
        "needs less",
    )
