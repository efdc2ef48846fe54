"""A run's verdict as lines NAME=VALUE, for shells and for the outputs of CI's steps. Pure."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.run.judging.outcome import Outcome


def values(outcome: Outcome) -> dict[str, str]:
    """success, exit_code, reason, blame, run and outcome, each one line; "" for what is not there.

    `run` is the run's directory, `outcome` the path of its outcome.json.
    """
    facts = {
        "success": "true" if outcome.success else "false",
        "exit_code": str(outcome.exit_code),
        "reason": outcome.reason,
        "blame": outcome.blame or "",
        "run": outcome.run,
        "outcome": str(Path(outcome.run) / "outcome.json") if outcome.run else "",
    }
    return {name: " ".join(value.splitlines()) for name, value in facts.items()}
