"""A run's verdict, tasks, metrics and pictures as Markdown, for the job summary of CI."""

from __future__ import annotations

import contextlib
import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from cluster_kit.contract.endings import NOT_FAILED
from cluster_kit.errors import UsageError
from cluster_kit.observe.lives import lives_of, ran, starts
from cluster_kit.observe.progress import Entry, ProgressReader, figures_of
from cluster_kit.platforms.engine import Event
from cluster_kit.roles import ROLES
from cluster_kit.run.history import run_named
from cluster_kit.run.outcome import Outcome, TaskOutcome, outcome_from, without_run
from cluster_kit.run.run_directory import Record, read_events, read_record
from cluster_kit.run.verdict import Reason
from cluster_kit.util.terminal import duration, figure, harmless
from cluster_kit.workspace import RunDirectory, Workspace

Axis = Literal["step", "epoch"]


@dataclass(frozen=True)
class Evidence:
    """A run's outcome, the starts and ends of its containers, and its losses over `axis` (see
    `losses`).

    `ended` is the run's end in Unix seconds, if known: the events end before the kit ends the tasks
    of a run that was interrupted. A run that never started has only an outcome, without tasks and
    directory.
    """

    outcome: Outcome
    events: tuple[Event, ...] = ()
    losses: tuple[tuple[int, float], ...] = ()
    ended: float = -math.inf
    axis: Axis = "step"


def read(reference: str, workspace: Workspace) -> Evidence:
    """The evidence of a run.

    Args:
        reference: a run's directory, its outcome.json, a file with what `up --json` printed,
            CLUSTER/RUN as `runs` lists it, or a cluster's name or its directory `runs/CLUSTER`,
            which mean its newest run; "" for the newest run of all.
    Raises:
        UsageError: nothing was found, the file is not of a run, or the run has no verdict yet.
    """
    path = _file(reference, workspace)
    facts = _facts(path)
    if "error" in facts:
        saved = Path(str(facts.get("run") or ""), "outcome.json")
        if not (facts.get("run") and saved.is_file()):
            return Evidence(_checked(without_run, facts, path))
        path, facts = saved, _facts(saved)
    outcome = _checked(outcome_from, facts, path)
    if (path.parent / "events.jsonl").is_file() and not _is_same(path.parent, outcome.run):
        outcome = replace(outcome, run=str(path.parent.resolve()))  # it was moved here
    run = RunDirectory(Path(outcome.run))
    record = _record(run, outcome)
    since, sizes = (record.since, record.sizes) if record else (-math.inf, {})
    tasks = record.cluster.tasks if record else outcome.tasks
    names = [
        task.name for task in tasks
    ] or None  # the outcome of a job that was judged on a node lists none

    def points(axis: Axis) -> tuple[tuple[int, float], ...]:
        entries = ProgressReader(run.output, since, sizes, tasks=names).each()
        return tuple(losses(entries, leader_of(outcome), axis))

    # The kit learns the loss of Keras's `fit` only with the epoch.
    axis: Axis = "step"
    drawn = points(axis)
    if len(drawn) < 2 and len(by_epoch := points("epoch")) > 1:
        axis, drawn = "epoch", by_epoch
    events = tuple(read_events(run, since))
    return Evidence(outcome, events, drawn, _ended(outcome, since), axis)


def _is_same(folder: Path, run: str) -> bool:
    with contextlib.suppress(OSError):
        return folder.samefile(run)
    return False


def _ended(outcome: Outcome, since: float) -> float:
    seconds = outcome.timings_s
    return since + seconds.get("total", 0.0) - sum(seconds.get(step, 0.0) for step in _BEFORE)


def _record(run: RunDirectory, outcome: Outcome) -> Record | None:
    """The record of this run's start: a resumed run also has events of earlier runs."""
    try:
        record = read_record(run)
    except UsageError:
        return None
    return record if record and record.id == outcome.id else None


def _file(reference: str, workspace: Workspace) -> Path:
    """The file that has the verdict; raises UsageError."""
    candidate = Path(reference).expanduser()
    if candidate.is_file():
        return candidate
    run = run_named(reference, workspace) if reference else _newest(workspace)
    if not run.outcome.is_file():
        raise UsageError(
            f"{run.path} has no verdict: no outcome.json is in it",
            "name a run that has ended: `cluster-kit runs` lists them",
        )
    return run.outcome


def _newest(workspace: Workspace) -> RunDirectory:
    """The run that ended last; raises UsageError if there is none."""
    files = (workspace.root / "runs").glob("*/*/outcome.json")
    outcomes = [file for file in files if file.is_file() and not file.parent.is_symlink()]
    if not outcomes:
        raise UsageError(
            f"no run in {workspace.root / 'runs'} has ended yet",
            "name a run's directory, or run `cluster-kit up quickstart` first",
        )
    return RunDirectory(max(outcomes, key=lambda path: path.stat().st_mtime).parent)


def _facts(path: Path) -> Mapping[str, Any]:
    """Returns the JSON object in a file; raises UsageError if the file contains something else."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", _WANTED) from error
    if not isinstance(facts, dict) or "success" not in facts:
        raise UsageError(f"{path} is not the outcome of a run: it has no key `success`", _WANTED)
    return facts


_WANTED = "name an outcome.json, or a file with what `cluster-kit up --json` printed"


def _checked(make: Any, facts: Mapping[str, Any], path: Path) -> Outcome:
    try:
        outcome: Outcome = make(facts)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is not the outcome of a run: {error!r}", _WANTED) from error
    return outcome


def values(outcome: Outcome) -> dict[str, str]:
    """success, exit_code, reason, blame, run and outcome, each on one line; "" for unknown values.

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


MOST_TASKS = 40
MOST_LOSSES = 10_000
"""Maximum number of a run's losses to keep, to draw POINTS of them."""
POINTS = 40
"""Number of points of a curve; Mermaid spreads them evenly over the axis."""


@dataclass(frozen=True)
class Span:
    """A task's container, from its start to its end: seconds since the first start of any.

    `exit_code` is None if it had not ended.
    """

    task: str
    begin: float
    end: float
    exit_code: int | None


def spans(
    events: Sequence[Event], order: Sequence[str] = (), until: float = -math.inf
) -> list[Span]:
    """The time from start to end of every container, grouped by task, in the order of `order`; one
    whose end is not known lasts until the last event, or `until` if that is later."""
    lives = {**dict.fromkeys(order, ()), **lives_of(sorted(events, key=lambda event: event.time))}
    begun = [start for lives_of_task in lives.values() for start in starts(lives_of_task)]
    if not begun:
        return []
    zero, last = min(begun), max(until, *(event.time for event in events))
    return [
        Span(task, begin - zero, end - zero, life.exit_code)
        for task, lives_of_task in lives.items()
        for begin, end, life in ran(lives_of_task, last)
    ]


def gantt(lives: Sequence[Span], blame: str = "") -> str:
    """A Gantt chart in seconds, one lane per task, failures marked; "" if nothing has started."""
    if not lives:
        return ""
    tasks = list(dict.fromkeys(span.task for span in lives))
    shown = tasks[:MOST_TASKS]
    if blame in tasks and blame not in shown:
        shown[-1] = blame
    lines = ["gantt", "    dateFormat x", "    axisFormat %s s"]
    for task in shown:
        lines.append(f"    section {task}")
        lines += (f"    {_bar(span)}" for span in lives if span.task == task)
    return "\n".join(lines)


def _bar(span: Span) -> str:
    """A bar of at least 1 ms; Mermaid reads milliseconds."""
    begin = round(span.begin * 1000)
    end = max(begin + 1, round(span.end * 1000))
    if span.exit_code is None:
        return f"until the end of the run :active, {begin}, {end}"
    kind = "done" if span.exit_code in NOT_FAILED else "crit"
    return f"exit {span.exit_code} :{kind}, {begin}, {end}"


def losses(entries: Iterable[Entry], leader: str, axis: Axis = "step") -> list[tuple[int, float]]:
    """(step, loss) as the leader reported them, or (epoch, loss); repeated ones appear once.

    If there are more than MOST_LOSSES, some at equal distances are returned, including the first
    and the last.
    """
    points: list[tuple[int, float]] = []
    apart, last = 0, None
    for step, loss in _reported(entries, leader, axis):
        last = (step, loss)
        while points and points[-1][0] >= step:
            points.pop()
        if not points or step >= points[-1][0] + apart:
            points.append(last)
        if len(points) > MOST_LOSSES:
            del points[1::2]
            apart = 2 * (points[-1][0] - points[0][0]) // MOST_LOSSES
    return [*points, last] if last and last != points[-1] else points


def _reported(entries: Iterable[Entry], leader: str, axis: Axis) -> Iterator[tuple[int, float]]:
    for entry in entries:
        if entry.task != leader:
            continue
        figures = figures_of(entry.event)
        step, loss = getattr(figures, axis), figures.loss
        if isinstance(step, int) and loss is not None and math.isfinite(loss):
            yield step, float(loss)


def curve(points: Sequence[tuple[int, float]], axis: Axis = "step") -> str:
    """The loss over the steps or epochs; "" if there are fewer than two points."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    count = min(POINTS, last - first + 1)
    steps = [first + (last - first) * place / (count - 1) for place in range(count)]
    values = [_between(points, step) for step in steps]
    low, high = min(0.0, *values), max(values)
    top = high if high > low else low + 1.0
    return "\n".join(
        [
            "xychart-beta",
            f'    x-axis "{axis}" {first} --> {last}',
            f'    y-axis "loss" {_figure(low)} --> {_figure(top)}',
            f"    line [{', '.join(map(_figure, values))}]",
        ]
    )


def _between(points: Sequence[tuple[int, float]], step: float) -> float:
    """The loss at a step, on the straight line between the reports before and after it."""
    for (before, low), (after, high) in pairwise(points):
        if step <= after:
            return low + (high - low) * (step - before) / (after - before)
    return points[-1][1]


def _figure(value: float) -> str:
    """A number with six digits, and without an exponent, which Mermaid cannot read."""
    digits = 5 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:.{max(0, min(digits, 20))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


MOST_ROWS = 200
MOST_WORDS = 20_000
"""Maximum characters of an error: all steps of a GitHub job share a summary of 1 MiB."""
LONGEST = 300
"""Maximum characters of a note or a cell."""
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
_BEFORE = ("plan", "render", "preflight", "build", "data")
"""The steps of a run before its containers, in its timings."""
_STEPS = ("plan", "preflight", "build", "up", "first_step", "train", "down")


def markdown(evidence: Evidence) -> str:
    """The page of a run; it ends with a newline. All texts of the run are escaped."""
    outcome = evidence.outcome
    parts = [
        f"## {_title(outcome)}",
        *_error(outcome),
        *_section("Notes", "\n".join(f"- {text(note)}" for note in outcome.notes)),
        table(("", ""), _verdict(outcome)),
        *_section("Tasks", _tasks(outcome)),
        *_section("Metrics", _metrics(outcome)),
        *_pictures(evidence),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(outcome: Outcome) -> str:
    mark = "✅" if outcome.success else "❌"
    name = text(outcome.cluster) or "The cluster"
    if not outcome.tasks and not outcome.success:
        return f"{mark} {name} did not start"
    ended = {True: "succeeded", False: "failed"}[outcome.success]
    ended = "was stopped" if outcome.reason == Reason.STOPPED else ended
    ended = "was interrupted" if outcome.reason == Reason.INTERRUPTED else ended
    seconds = outcome.timings_s.get("total")
    return f"{mark} {name} {ended}" + ("" if seconds is None else f" after {duration(seconds)}")


def _error(outcome: Outcome) -> Iterator[str]:
    """The task to blame, the error, the hint, and the end of the blamed task's log."""
    if outcome.success:
        return
    if outcome.blame:
        yield f"Blame: **{text(outcome.blame)}**"
    if outcome.message:
        yield block(outcome.message)
    if outcome.cure:
        yield f"→ {text(outcome.cure)}"
    if outcome.last_words:
        words = block(outcome.last_words)
        yield f"<details><summary>Last words</summary>\n\n{words}\n\n</details>"


def _verdict(outcome: Outcome) -> Iterator[tuple[str, str]]:
    yield "reason", text(outcome.reason) or "-"
    yield "exit code", str(outcome.exit_code)
    if outcome.blame:
        yield "blame", text(outcome.blame)
    if outcome.decided:
        yield "decided", text(outcome.decided)
    steps = [(name, outcome.timings_s[name]) for name in _STEPS if name in outcome.timings_s]
    if steps:
        yield (
            "seconds",
            ", ".join(f"{name.replace('_', ' ')} {seconds:.1f}" for name, seconds in steps),
        )
    if outcome.run:
        yield "run", text(outcome.run)


def _tasks(outcome: Outcome) -> str:
    headings = ("task", "ip", "GPU", "exit code", "restarts", "received", "sent", "")
    shown = outcome.tasks[:MOST_ROWS]
    rows = [_task(task, outcome.blame) for task in shown]
    more = len(outcome.tasks) - len(shown)
    return table(headings, rows) + (f"\n\n… and {more} more" if more else "") if rows else ""


def _task(task: TaskOutcome, blame: str | None) -> Sequence[str]:
    remarks = ["blame"] * (task.name == blame) + ["out of memory"] * task.oom
    return (
        f"**{text(task.name)}**" if task.name == blame else text(task.name),
        text(task.ip) or "-",
        text(", ".join(task.gpu)) or "-",
        "-" if task.exit_code is None else str(task.exit_code),
        str(task.restarts),
        _size(task.rx_bytes),
        _size(task.tx_bytes),
        ", ".join(remarks),
    )


def _size(count: object) -> str:
    if not isinstance(count, int | float):
        return "-"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def _metrics(outcome: Outcome) -> str:
    rows = [
        (text(name.replace("_", " ")), text(figure(value)))
        for name, value in sorted(outcome.metrics.items())
    ]
    return table(("metric", "value"), rows[:MOST_ROWS]) if rows else ""


def _pictures(evidence: Evidence) -> Iterator[str]:
    outcome = evidence.outcome
    order = [task.name for task in outcome.tasks]
    lanes = gantt(spans(evidence.events, order, evidence.ended), outcome.blame or "")
    yield from _section("Tasks over time, in seconds", _mermaid(lanes))
    line = curve(evidence.losses, evidence.axis)
    yield from _section(f"Loss over {evidence.axis}s", _mermaid(line))


def leader_of(outcome: Outcome) -> str:
    """The task that reports the training's steps, "" without one: the first whose role leads."""
    leaders = (task.name for task in outcome.tasks if task.role in ROLES and ROLES[task.role].leads)
    return next(leaders, "")


def _mermaid(drawing: str) -> str:
    return f"```mermaid\n{drawing}\n```" if drawing else ""


def _section(heading: str, content: str) -> list[str]:
    return [f"### {heading}", content] if content else []


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(words: object) -> str:
    """Text escaped for one line: it contains no mark-up, no end of a cell, no HTML."""
    line = " ".join(harmless(str(words)).split())
    line = line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
    return html.escape(_SPECIAL.sub(r"\\\1", line), quote=False)


def block(words: str) -> str:
    """The lines in a fence that none of them can close; a long text loses its middle."""
    lines = harmless(words).strip("\n")
    if len(lines) > MOST_WORDS:
        lines = f"{lines[: MOST_WORDS // 2]}\n…\n{lines[-MOST_WORDS // 2 :]}"
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{lines}\n{fence}"
