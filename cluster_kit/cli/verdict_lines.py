"""Prints the lines about a run that has ended, or that was started and detached."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NoReturn

import typer
from rich.text import Text

from cluster_kit.cli.app import out, print_json, say, short
from cluster_kit.observe.progress import words
from cluster_kit.run.launch import Milestone
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.run import Run
from cluster_kit.run.verdict import Reason
from cluster_kit.util.terminal import duration, figure, harmless
from cluster_kit.workspace import RunDirectory

MOST_LINES = 15
"""Maximum lines of a verdict's message to print; TensorFlow's can have a hundred-line stack."""
LONGEST = 200
"""Maximum characters of a metric's name and value to print; outcome.json has all."""


def end_with(
    outcome: Outcome, *, as_json: bool, exit_code: Literal["kit", "program"] = "kit"
) -> NoReturn:
    """Print the outcome, and exit with its exit code, or with the program's."""
    if as_json:
        print_json(outcome.as_json())
    else:
        print_outcome(outcome, kept=outcome.kept)
    programs_code = outcome.program_exit_code if exit_code == "program" else None
    raise typer.Exit(outcome.exit_code if programs_code is None else programs_code)


def print_outcome(outcome: Outcome, *, kept: bool = False) -> None:
    """Print the verdict, its reason, notes and metrics, and the run's directory, if there is one.

    A run that never started has neither a directory nor a time.
    """
    seconds = outcome.timings_s.get("total")
    if outcome.success:
        decided = f": {outcome.decided}" if outcome.decided else ""
        success = Text.assemble(("success", "bold green"), _after("in", seconds), harmless(decided))
        out.print(success, soft_wrap=True)
    else:
        blame = f", blame {outcome.blame}{_code(outcome)}" if outcome.blame else ""
        stopped = outcome.reason in (Reason.STOPPED, Reason.INTERRUPTED)
        word, style = ("stopped", "bold yellow") if stopped else ("failed", "bold red")
        out.print(Text.assemble((word, style), _after("after", seconds), blame))
        if outcome.decided:
            say(f"  {outcome.decided}", to=out)
        lines = outcome.message.splitlines()
        shown = lines if len(lines) <= MOST_LINES else lines[: MOST_LINES - 1]
        for line in shown:
            say(f"  {line}", to=out)
        if more := len(lines) - len(shown):
            say(f"  … {more} more lines of this error, all in outcome.json", to=out)
        for line in outcome.last_words.splitlines():
            say(f"  | {line}", to=out)
        if outcome.cure:
            say(f"  → {outcome.cure}", to=out)
    for note in outcome.notes:
        say(f"  note: {note}", to=out)
    print_metrics(outcome)
    if outcome.run:
        say(f"  everything is in {short(Path(outcome.run))}", to=out)
        report = RunDirectory(Path(outcome.run)).report
        if report.is_file():
            say(f"  look at it: {short(report)}", to=out)
    if kept:
        name = outcome.cluster
        say(f"  still there: `cluster-kit status {name}`, `cluster-kit down {name}`", to=out)


def _after(word: str, seconds: float | None) -> str:
    return "" if seconds is None else f" {word} {duration(seconds)}"


def _code(outcome: Outcome) -> str:
    """The text ` (exit code 1)` for the task to blame; "" if it has none, or if the message names
    it."""
    codes = [task.exit_code for task in outcome.tasks if task.name == outcome.blame]
    named = any(re.search(rf"exit code {code}\b", outcome.message) for code in codes)
    return "" if named or not any(codes) else f" (exit code {codes[0]})"


def print_metrics(outcome: Outcome) -> None:
    """Print the final figures that the programs reported, one per line.

    A staleness of 0 is left out, since it is always 0 in synchronous training or with one worker.
    """
    fresh = outcome.metrics.get("staleness_max") == 0
    for key, value in sorted(outcome.metrics.items()):
        if fresh and key.startswith("staleness_"):
            continue
        shown = words(figure(value))[:LONGEST]
        say(f"  {words(key.replace('_', ' '))[:LONGEST]}: {shown}", to=out)


def print_started(run: Run, *, ready: Milestone | None, as_json: bool) -> None:
    """Print that a cluster was started and detached, and the commands to continue with it.

    Args:
        ready: the state that was reached; None if the command did not wait.
    """
    name = run.name
    if as_json:
        reached = {"ready": ready} if ready else {}
        facts = {"cluster": name, "run": str(run.directory.path), "detached": True}
        print_json({**facts, **reached})
        return
    reached_text = {Milestone.SERVERS: ", all servers answer", Milestone.STEP: " and trains"}
    so_far = reached_text[ready] if ready else ""
    where = short(run.directory.path)
    say(f"{name} has started in the background{so_far}; its run is {where}", to=out)
    for verb, description in (
        ("attach", "watch it to its end: judge, save, remove; Ctrl-C ends the run"),
        ("wait", "the same without the live view; Ctrl-C leaves it up"),
        ("logs", "what its tasks say"),
        ("down", "remove it"),
    ):
        say(f"  {f'cluster-kit {verb} {name}':<{len(name) + 20}} {description}", to=out)
