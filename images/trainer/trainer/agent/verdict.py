"""Makes the verdict on a run that no host has watched: python3 -m trainer verdict RUN OPTION…

A Slurm job calls it when its tasks have ended. It reads the tasks' files in the run's directory:
the exit codes in `ended/`, and the last lines of the progress files.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.atomic import read_untrusted, replace
from trainer.agent.progress_file import last_event
from trainer.contract import endings
from trainer.contract.events import End

SUCCESS = 0
MOST_BYTES = 16
"""Maximum bytes of a file with an exit code."""


@dataclass(frozen=True)
class Verdict:
    """How a run ended; `blame` is the task to blame, or None."""

    exit_code: int
    reason: str
    blame: str | None = None
    message: str = ""
    decided: str = ""


def main(arguments: Sequence[str]) -> int:
    """Write the run's `outcome.json`, print the verdict, and return the kit's exit code."""
    options = _parser().parse_args(arguments)
    counted = [name for name in options.evaluator if name not in options.without]
    verdict = judge(options.run, options.leader, counted, stopped=options.stopped)
    success = verdict.exit_code == SUCCESS
    run_path = options.shown or str(options.run)
    facts = {
        "format": 1,
        "id": options.id,
        "cluster": options.cluster,
        "success": success,
        "exit_code": verdict.exit_code,
        "reason": verdict.reason,
        "blame": verdict.blame,
        "message": verdict.message,
        "decided": verdict.decided,
        "run": run_path,
        "timings_s": {"total": options.seconds},
        "last_words": "",
        "notes": [],
        "tasks": [],
        "metrics": {},
        "cure": "",
    }
    replace(options.run / "outcome.json", json.dumps(facts) + "\n")
    decided = f": {json.dumps(verdict.decided)}" if verdict.decided else ""
    if success:
        print(f"success in {options.seconds} s{decided}; everything is in {run_path}")
    else:
        reason, blame, message = map(json.dumps, (verdict.reason, verdict.blame, verdict.message))
        print(f"failed{decided}: reason {reason}, blame {blame}: {message}")
        print(f"exit code {verdict.exit_code}; everything is in {run_path}")
    return verdict.exit_code


def judge(run: Path, leader: str, evaluators: Sequence[str] = (), *, stopped: bool) -> Verdict:
    """The verdict on the run in this directory.

    The leader's end decides it. If the training succeeded, an evaluator that failed or has not
    ended decides it.

    Args:
        stopped: whether the job was stopped.
    """
    decisive, code = leader, exit_code(run, leader)
    if code == 0:
        codes = {name: exit_code(run, name) for name in evaluators}
        failed = [name for name in evaluators if codes[name] not in endings.NOT_FAILED]
        if not failed:
            return Verdict(SUCCESS, endings.FINISHED, decided=_end(run, leader).decided or "")
        decisive, code = failed[0], codes[failed[0]]
    end = _end(run, decisive)
    if code is None and decisive != leader:
        assumed = endings.EVALUATOR_GRACE
    else:
        assumed = endings.STOPPED if stopped or code == endings.EXIT_TERMINATED else endings.FAILED
    reason = end.reason or assumed
    message = end.message or (
        f"{decisive} left no word, and ended with exit code {'unknown' if code is None else code}"
    )
    named = end.tasks[0] if end.tasks else ""
    blameless = reason in endings.REASONS and endings.REASONS[reason].blameless
    blame = None if blameless else named or decisive
    return Verdict(endings.kit_exit_code(reason), reason, blame, message, end.decided or "")


def _end(run: Path, task: str) -> End:
    """A task's last words; empty if it left none."""
    last = last_event(run / "output" / "progress" / f"{task}.jsonl")
    return last if isinstance(last, End) else End()


def exit_code(run: Path, task: str) -> int | None:
    """The exit code of a task, or of its program if the task stayed after that had failed for good.

    None if it has not ended, or left no exit code.
    """
    try:
        text = read_untrusted(run / "ended" / task, MOST_BYTES)
        code = int(text)
    except (OSError, ValueError):
        return None
    end = _end(run, task)
    return int(end.exit_code or 0) if code == 0 and end.stays else code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m trainer verdict")
    parser.add_argument("run", type=Path, help="the run's directory")
    parser.add_argument("--shown", default="", help="its path as people see it, if it is another")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--id", required=True)
    parser.add_argument("--leader", required=True)
    parser.add_argument("--evaluator", action="append", default=[])
    parser.add_argument(
        "--without", action="append", default=[], help="an evaluator that decides nothing"
    )
    parser.add_argument("--seconds", type=int, default=0, help="how long the run took")
    parser.add_argument("--stopped", action="store_true", help="the job was told to stop")
    return parser
