"""A run's verdict, tasks, metrics and pictures as Markdown, for a job summary of CI. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from cluster_kit.roles import ROLES
from cluster_kit.run.judging.outcome import Outcome
from cluster_kit.run.judging.task_outcome import TaskOutcome
from cluster_kit.run.judging.verdict import Reason
from cluster_kit.summary.chart import curve, gantt, losses, spans
from cluster_kit.summary.read import Evidence
from cluster_kit.util.elapsed import duration
from cluster_kit.util.terminal import harmless

MOST_ROWS = 200
MOST_WORDS = 20_000
"""Characters of an error: a job summary of GitHub's holds 1 MiB, which is shared by its steps."""
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
_STEPS = ("plan", "preflight", "build", "up", "first_step", "train", "down")


def markdown(evidence: Evidence) -> str:
    """The page of a run; it ends with a newline. Nothing in a run's words can leave its place."""
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
    """Who is to blame, the error, what to do about it, and the end of the blamed task's log."""
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
        (text(name.replace("_", " ")), text(f"{value:.4g}" if isinstance(value, float) else value))
        for name, value in sorted(outcome.metrics.items())
    ]
    return table(("metric", "value"), rows[:MOST_ROWS]) if rows else ""


def _pictures(evidence: Evidence) -> Iterator[str]:
    outcome = evidence.outcome
    order = [task.name for task in outcome.tasks]
    lanes = gantt(spans(evidence.events, order), outcome.blame or "")
    yield from _section("Tasks over time, in seconds", _mermaid(lanes))
    line = curve(losses(evidence.entries, leader_of(outcome)))
    yield from _section("Loss over steps", _mermaid(line))


def leader_of(outcome: Outcome) -> str:
    """The task that reports the training's steps, "" without one: the first whose role leads."""
    leaders = (task.name for task in outcome.tasks if task.role in ROLES and ROLES[task.role].leads)
    return next(leaders, "")


def _mermaid(drawing: str) -> str:
    return f"```mermaid\n{drawing}\n```" if drawing else ""


def _section(heading: str, content: str) -> list[str]:
    return [f"### {heading}", content] if content else []


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(words: object) -> str:
    """Words as they are, on one line: no mark-up, no cell's end, no HTML."""
    line = " ".join(harmless(str(words)).split())
    return html.escape(_SPECIAL.sub(r"\\\1", line), quote=False)


def block(words: str) -> str:
    """Lines as they are, in a fence that no line of theirs can close; a long text loses its
    middle."""
    lines = harmless(words).strip("\n")
    if len(lines) > MOST_WORDS:
        lines = f"{lines[: MOST_WORDS // 2]}\n…\n{lines[-MOST_WORDS // 2 :]}"
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{lines}\n{fence}"
