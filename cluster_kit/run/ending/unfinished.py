"""What is said of a run that an error ended before its verdict, or while it was saved."""

from __future__ import annotations

from cluster_kit.errors import EngineError, HostError, KitError
from cluster_kit.run import disk_space
from cluster_kit.run.context import Launch
from cluster_kit.run.judging.outcome import REASON_BY_CODE, Outcome
from cluster_kit.run.judging.verdict import Reason, Verdict


def without_verdict(error: BaseException) -> Verdict:
    """The verdict on a run that this error ended before it was judged."""
    if not isinstance(error, KitError):
        # With the type: the text alone may say nothing (`SystemExit: 1`).
        words = f"a bug in the kit: {type(error).__name__}: {error}".rstrip(": ")
        return Verdict(False, KitError.exit_code, Reason.INTERNAL, "", words)
    reason = REASON_BY_CODE.get(error.exit_code, Reason.INTERNAL)
    return Verdict(False, error.exit_code, reason, "", error.message, error.hint)


def incomplete(launch: Launch, outcome: Outcome, error: EngineError | OSError) -> KitError:
    """The error that the run ended, but was not saved or removed completely."""
    ended = f"the run ended ({outcome.reason}), but"
    if isinstance(error, EngineError):
        return EngineError(f"{ended} not everything was saved and removed: {error.message}",
                           error.hint)  # fmt: skip
    return HostError(
        f"{ended} its evidence in {launch.directory.path} is not complete: "
        f"{disk_space.why(error, launch.directory.path)}",
        disk_space.HINT,
    )
