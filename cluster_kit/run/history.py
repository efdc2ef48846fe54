"""Finds and compares past runs, selects those to remove, and reads their logs."""

from __future__ import annotations

import difflib
import glob
import heapq
import json
import math
import shlex
import statistics
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster_kit.errors import UsageError
from cluster_kit.util.nearest import did_you_mean_path, proposal
from cluster_kit.util.paths import is_directory as is_folder
from cluster_kit.util.paths import is_file
from cluster_kit.util.terminal import figure
from cluster_kit.util.toml_text import dotted, to_toml
from cluster_kit.util.untrusted import files, is_directory
from cluster_kit.workspace import RunDirectory, Workspace, newest_run_directory


@dataclass(frozen=True)
class PastRun:
    """A saved run; without an outcome `verdict` is "" and `ended` None."""

    run: RunDirectory
    verdict: str = ""
    ended: datetime | None = None

    @property
    def summary(self) -> str:
        """When and how the run ended, as the end of a sentence."""
        if self.ended is None:
            return "has no verdict: it was interrupted, or is about to start"
        return f"ended {self.ended:%Y-%m-%d %H:%M:%S}: {self.verdict}"


def newest_run(runs: Path) -> PastRun | None:
    """The run that the link `latest` of a cluster points to, None if there is none."""
    run = newest_run_directory(runs)
    if run is None:
        return None
    try:
        outcome = json.loads(run.outcome.read_text(encoding="utf-8"))
        # This file is written last, after the containers were removed.
        ended = datetime.fromtimestamp(run.outcome.stat().st_mtime)
    except (OSError, ValueError):
        return PastRun(run)
    return PastRun(run, verdict_of(outcome), ended) if isinstance(outcome, dict) else PastRun(run)


_SHOWN = (
    "test_accuracy",
    "validation_accuracy",
    "map_50",
    "accuracy",
    "validation_loss",
    "loss",
    "updates",
)
"""Metrics; a list of runs shows the first of these that a run has, else the first of its own."""
STOPPED = ("stopped", "interrupted")
"""The reasons of runs that a user ended: they have not failed."""


def verdict_of(outcome: Mapping[str, Any]) -> str:
    """The verdict in words: `success`, `stopped`, or `failed` with the first line of the message.

    The task to blame is before the message, unless the message begins with it. A line that ends
    with `:` is followed by the next one. If the manifest's `success` or `restart` decided, a
    sentence says so.
    """
    decided = str(outcome.get("decided") or "")
    if outcome.get("success"):
        return f"success: {decided}" if decided else "success"
    message, _, rest = str(outcome.get("message", "")).partition("\n")
    following = rest.partition("\n")[0].strip()
    if message.endswith(":"):
        message = f"{message} {following}".rstrip()
    to_blame = outcome.get("blame")
    blame = f", blame {to_blame}" if to_blame and not message.startswith(f"{to_blame} ") else ""
    word = "stopped" if outcome.get("reason") in STOPPED else "failed"
    words = f"{message} ({decided})" if message and decided else message or decided
    return f"{word}{blame}: {words}" if words else f"{word}{blame}"


def saved_logs(run: RunDirectory) -> dict[str, Iterator[str]]:
    """The lines of each task's saved log, by task name; they are read lazily and begin with their
    time.
    """
    return {file.stem: _saved_lines(file) for file in sorted(run.logs.glob("*.log"))}


def _saved_lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            yield line.rstrip("\n")


@dataclass(frozen=True, order=True)
class Line:
    """A line of a task's log, with its time in RFC 3339."""

    time: str
    task: str
    text: str


def merged(logs: Mapping[str, Iterable[str]]) -> Iterator[Line]:
    """Yields the lines of several tasks' logs in the order of their times, in bounded memory.

    The order of equal times and the order within a task stay.
    """
    return heapq.merge(
        *(_stamped(task, log) for task, log in logs.items()), key=lambda line: line.time
    )


def _stamped(task: str, log: Iterable[str]) -> Iterator[Line]:
    for line in filter(None, log):
        time, _, text = line.partition(" ")
        yield Line(time, task, text.rstrip("\r"))


def run_named(reference: str, workspace: Workspace) -> RunDirectory:
    """The run that a command line names, as `_named` finds it.

    Raises:
        UsageError: there is none.
        HostError: its tasks still run, and another user has started it.
    """
    run = _named(reference, workspace)
    run.refuse_closed()
    return run


def _named(reference: str, workspace: Workspace) -> RunDirectory:
    """The run that a command line names.

    Args:
        reference: a run's directory, CLUSTER/RUN as `runs` lists it, or a cluster's name or its
            directory `runs/CLUSTER`, which mean its newest run; "" for the newest run of all.
    Raises:
        UsageError: there is none.
    """
    candidate, known = Path(reference).expanduser(), workspace.latest_runs()
    # A directory of the program can have the cluster's name.
    names_cluster = reference in known and not is_file(candidate / "run.json")
    if reference and candidate.is_dir() and not names_cluster:
        run = RunDirectory(newest_in(candidate).resolve())
        if not _is_left(run):
            raise UsageError(
                f"no run is in {reference}: it has neither run.json, outcome.json nor output/",
                "name the directory of a run, or a cluster: `cluster-kit runs` lists them",
            )
        return run
    below = RunDirectory(workspace.root / "runs" / reference)
    if "/" in reference and below.path.is_dir() and _is_left(below):
        return RunDirectory(below.path.resolve())
    if not reference and known:
        newest = max(known.values(), key=lambda path: path.stat().st_mtime)
        return RunDirectory(newest.resolve())
    if reference in known:
        return RunDirectory(known[reference].resolve())
    if not reference:
        raise UsageError(
            f"no run in {workspace.root / 'runs'} yet", "run `cluster-kit up quickstart` first"
        )
    raise UsageError(
        f"no run `{reference}`: neither a directory, nor a cluster in runs/",
        proposal(reference, sorted(known), _meant(reference, workspace.root / "runs")),
    )


def _is_left(run: RunDirectory) -> bool:
    """Whether this directory has what a run leaves behind."""
    has_files = is_file(run.record) or is_file(run.outcome) or is_directory(run.path, "output")
    return has_files or run.is_closed


def newest_in(folder: Path) -> Path:
    """The newest run in a cluster's directory of runs; any other directory as it is."""
    if RunDirectory(folder).is_closed or not (folder / "latest").is_symlink():
        return folder
    newest = newest_run_directory(folder)
    return folder if newest is None else newest.path


def _meant(reference: str, runs: Path) -> str:
    """The only run with this time, else the one with a similar path; "" if there is none."""
    cluster, _, time = reference.rpartition("/")
    found = [run for run in runs.glob(f"*/{glob.escape(time)}") if is_directory(run, "output")]
    if len(found) == 1:
        return f"did you mean `{found[0].relative_to(runs)}`? "
    return did_you_mean_path(reference, runs, is_folder) if cluster else ""


@dataclass(frozen=True)
class Run:
    """A run: its directory, cluster, start (local time), and outcome.json ({} if there is none)."""

    directory: RunDirectory
    cluster: str
    began: datetime | None
    outcome: Mapping[str, Any]
    newest: bool = False

    @property
    def name(self) -> str:
        """`quickstart/20261122-101500`."""
        return f"{self.directory.path.parent.name}/{self.directory.path.name}"

    @property
    def verdict(self) -> str:
        """The verdict in one line; "" if the run has none."""
        return verdict_of(self.outcome) if self.outcome else ""

    @property
    def metrics(self) -> Mapping[str, Any]:
        metrics = self.outcome.get("metrics")
        return metrics if isinstance(metrics, dict) else {}

    @property
    def figure(self) -> str:
        """One of the metrics with its name, for a list of runs; "" if there is none."""
        diverged = [name for name, value in self.metrics.items() if value is None]
        for name in (*diverged, *_SHOWN, *self.metrics):
            if isinstance(value := self.metrics.get(name, ""), int | float | None):
                shown = figure(value if value is None else float(value))
                return f"{name.replace('_', ' ')} {shown}"
        return ""

    @property
    def program(self) -> str:
        """The program, as the manifest of the run has it; "" if it is missing."""
        program = (_table(self.directory.manifest) or {}).get("program")
        return program if isinstance(program, str) else ""

    @property
    def args(self) -> list[str]:
        """The program's arguments, as the manifest of the run has them; [] if it is missing."""
        args = (_table(self.directory.manifest) or {}).get("args")
        return [str(one) for one in args] if isinstance(args, list) else []

    @property
    def timings(self) -> Mapping[str, Any]:
        timings = self.outcome.get("timings_s")
        return timings if isinstance(timings, dict) else {}


def runs_of(workspace: Workspace, cluster: str = "") -> list[Run]:
    """All runs, or those of one cluster, the newest first."""
    runs = [
        read_run(RunDirectory(path))
        for path in (workspace.root / "runs").glob(f"{cluster or '*'}/*")
        if path.is_dir() and not path.is_symlink() and is_directory(path, "output")
    ]
    return sorted(runs, key=lambda run: (run.began or datetime.min, run.name), reverse=True)


def verdicts_of(past_runs: Collection[Run]) -> dict[str, str]:
    """The verdicts by the names of runs, "" for one that has none; with the program and its
    arguments where ended runs of a cluster differ in them."""
    ended = [run for run in past_runs if run.outcome]
    told = {
        "program": {run.name: _short(Path(run.program)) if run.program else "" for run in ended},
        "args": {run.name: shlex.join(run.args) for run in ended},
    }
    kinds = {(run.cluster, key, texts[run.name]) for run in ended for key, texts in told.items()}
    different = Counter((cluster, key) for cluster, key, _ in kinds)
    verdicts = {run.name: run.verdict for run in past_runs}
    for run in ended:
        resumed = "resumed, " if run.outcome.get("resumed") else ""
        kept = [
            f", {key}: {texts[run.name]}"
            for key, texts in told.items()
            if different[run.cluster, key] > 1 and texts[run.name]
        ]
        verdicts[run.name] = f"{resumed}{run.verdict}{''.join(kept)}"
    return verdicts


def read_run(directory: RunDirectory) -> Run:
    """The past run in a directory; each of its files may be missing."""
    path = directory.path
    try:
        outcome = json.loads(directory.outcome.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        outcome = {}
    if isinstance(outcome, dict) and _was_resumed(directory, outcome):
        outcome = {}
    newest = newest_run_directory(path.parent)
    return Run(
        directory,
        path.parent.name,
        _began(path),
        outcome if isinstance(outcome, dict) else {},
        newest=newest is not None and newest.path.resolve() == path.resolve(),
    )


def _was_resumed(directory: RunDirectory, outcome: Mapping[str, Any]) -> bool:
    """Whether the outcome is the one before `--resume`, which has not ended yet."""
    try:
        if directory.record.stat().st_mtime <= directory.outcome.stat().st_mtime:
            return False
        record = json.loads(directory.record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("id") != outcome.get("id")


def _began(path: Path) -> datetime | None:
    """The time in a run's name: `20261122-101500`, which `-2` may follow."""
    try:
        return datetime.strptime("-".join(path.name.split("-")[:2]), "%Y%m%d-%H%M%S")
    except ValueError:
        return None


@dataclass(frozen=True)
class Change:
    """A value that differs between two runs; None if a run does not have it."""

    what: str
    name: str
    before: Any
    after: Any

    @property
    def ratio(self) -> float | None:
        """The second value divided by the first; None if unknown."""
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool)
                      for value in (self.before, self.after))  # fmt: skip
        return self.after / self.before if numbers and self.before else None


@dataclass(frozen=True)
class Difference:
    """How a second run differs from a first: in values, and in lines of manifest and program (with
    the user's file that was merged)."""

    changes: tuple[Change, ...]
    manifest: tuple[str, ...]
    program: tuple[str, ...] = ()


def difference(first: Run, second: Run) -> Difference:
    """The differences of two runs in program, cluster, verdict, metrics, timings and manifest."""
    before, after = _hashes(first), _hashes(second)
    changes = [
        *_changed("program", before, after),
        *_changed("cluster", *_clusters(first, second)),
        *_changed("verdict", _verdict(first), _verdict(second)),
        *_changed("metric", _metrics(first), _metrics(second)),
        *_changed("seconds", first.timings, second.timings),
    ]
    manifest = difflib.unified_diff(
        _settings(first.directory.manifest), _settings(second.directory.manifest),
        first.name, second.name, lineterm="", n=1,
    )  # fmt: skip
    pairs = [
        (first.directory.override, second.directory.override),
        *((first.directory.program / old, second.directory.program / new)
          for old, new in _pairs(before, after)),
    ]  # fmt: skip
    program = [
        line
        for old, new in pairs
        for line in difflib.unified_diff(
            _lines(old), _lines(new), _shown(old), _shown(new), lineterm=""
        )
    ]
    return Difference(tuple(changes), tuple(manifest), tuple(program))


def _verdict(run: Run) -> dict[str, str]:
    resumed = "yes: what it counts is since then" if run.outcome.get("resumed") else "no"
    return {"verdict": run.verdict, "resumed": resumed}


def _pairs(before: Collection[str], after: Collection[str]) -> list[tuple[str, str]]:
    """The names of the programs' files to compare. The only one that the second run lacks is
    compared with the only one that the first lacks: they are two versions of one program."""
    lost = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    if len(lost) == len(new) == 1:
        return [*((name, name) for name in before if name in after), (lost[0], new[0])]
    return [(name, name) for name in dict.fromkeys([*before, *after])]


def _shown(file: Path) -> str:
    """A file as the head of a difference names it: relative to the current directory if it is below
    it; `/dev/null` if there is no such file."""
    return _short(file) if file.is_file() else "/dev/null"


def _short(file: Path) -> str:
    current = Path.cwd()
    return str(file.relative_to(current) if file.is_relative_to(current) else file)


def _metrics(run: Run) -> dict[str, Any]:
    """The run's metrics; of loss, step and speed those of the leader's steps, if it lacks them.

    One that is not finite is a text, since None stands for one that the run does not have.
    """
    own = {name: figure(None) if value is None else value for name, value in run.metrics.items()}
    if {"loss", "steps_per_second"} <= own.keys():
        return own
    return {**_of_steps(run), **own}


def _of_steps(run: Run) -> dict[str, float]:
    """The last loss and step that the leader reported, or that the kit read or counted, and the
    usual steps per second."""
    from cluster_kit.observe.progress import ProgressReader, figures_of
    from cluster_kit.run.run_directory import read_record

    try:
        record = read_record(run.directory)
    except UsageError:
        return {}
    if record is None:
        return {}
    leader = record.cluster.leader.name
    last, speeds = dict[str, float](), list[float]()
    for entry in ProgressReader(
        run.directory.output, record.since, record.sizes, tasks=[leader]
    ).each():
        figures = figures_of(entry.event)
        if figures.loss is not None and math.isfinite(figures.loss):
            last["loss"] = float(figures.loss)
        if figures.step is not None:
            last["step"] = figures.step
        if figures.steps_per_s is not None:
            speeds.append(figures.steps_per_s)
    return {**last, **({"steps_per_second": statistics.median(speeds)} if speeds else {})}


def _changed(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[Change]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Change(what, name, before.get(name), after.get(name))


def _clusters(first: Run, second: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of both clusters, without the kit if they have two versions of TensorFlow: the
    kit's hash is one of its image, too."""
    before, after = _cluster(first), _cluster(second)
    if before.get("tensorflow") != after.get("tensorflow"):
        before.pop("kit", None)
        after.pop("kit", None)
    return before, after


def _cluster(run: Run) -> dict[str, Any]:
    """The values of run.json to compare two clusters by; addresses are left out."""
    try:
        cluster = json.loads(run.directory.record.read_text(encoding="utf-8"))["cluster"]
        tasks = cluster["tasks"]
        roles = [task["role"] for task in tasks]
        counts = {f"{role} tasks": roles.count(role) for role in dict.fromkeys(roles)}
        programs = {
            " ".join(task["command"]): None for task in tasks if task["command"][0] == "run"
        }
        origin = cluster.get("origin", {})
        data = cluster.get("data", "")
        mounted = {mount["target"]: mount["source"] for mount in cluster.get("mounts", [])}
        return {
            **counts,
            "image": cluster["image"],
            "tensorflow": cluster.get("tensorflow") or None,
            "kit": origin.get("kit", ""),
            "program": "; ".join(programs),
            "data": mounted.get(data, data.rpartition("/")[2]),
            "gpus": [task["gpus"] for task in tasks if task["gpus"]],
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _hashes(run: Run) -> dict[str, str]:
    """The first digits of the hash of each file of the user's program, by its name."""
    try:
        program = json.loads(run.directory.record.read_text(encoding="utf-8"))["program"]
        return {name: f"sha256:{digits[:12]}" for name, digits in program.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _settings(manifest: Path) -> list[str]:
    """The manifest's values by dotted key; its lines if it is not TOML."""
    table = _table(manifest)
    return _lines(manifest) if table is None else sorted(_flat(table))


def _table(manifest: Path) -> dict[str, Any] | None:
    """The manifest's keys; None if it is not TOML."""
    try:
        return tomllib.loads("\n".join(_lines(manifest)))
    except (ValueError, RecursionError):
        return None


def _flat(table: Mapping[str, Any], name: tuple[str, ...] = ()) -> Iterable[str]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*name, key))
        else:
            yield f"{dotted([*name, key])} = {to_toml(value)}"


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def to_prune(runs: Sequence[Run], keep: int, used: Collection[Path] | None) -> list[Run]:
    """The runs that can be removed: all but the newest `keep` of each cluster.

    The newest run of all stays, and so do runs whose containers exist.

    Args:
        runs: the newest first.
        used: the run directories that containers have mounted. None if no engine answers: then runs
            without a verdict stay, and so do runs whose containers were kept.
    """
    seen: dict[str, int] = {}
    removable = []
    for run in runs:
        seen[run.cluster] = seen.get(run.cluster, 0) + 1
        unknown = not run.outcome or run.outcome.get("kept")
        is_used = unknown if used is None else run.directory.path.resolve() in used
        busy = run.newest or is_used
        if seen[run.cluster] > keep and not busy:
            removable.append(run)
    return removable


def size_of(run: Run) -> int:
    """The size on disk in bytes; a file with several hard links counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for file in files(run.directory.path):
        sizes[file.identity] = file.blocks * 512
    return sum(sizes.values())
