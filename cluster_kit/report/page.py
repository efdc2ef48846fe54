"""The page of a report: one HTML file that loads nothing, with evidence and profiles."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from cluster_kit.observe.progress import USAGE, Entry, ProgressReader, number, plain, weight
from cluster_kit.observe.usage import Sample, sample_of
from cluster_kit.observe.user_requests import Asked
from cluster_kit.platforms.engine import Event
from cluster_kit.report.lanes import Fault
from cluster_kit.resolved import Cluster
from cluster_kit.util.paths import TEMPLATES
from cluster_kit.util.templating import kit_template
from cluster_kit.util.untrusted import files, read

PAGE_FOLDER = TEMPLATES / "report"
DRAWS = ("dom.js", "zoom.js", "lanes.js", "charts.js", "network.js", "profiles.js", "main.js")
SCRIPTS = (*DRAWS, "report.js")
STYLES = ("uPlot.min.css", "report.css")


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The HTML of these runs' facts (see `facts_of`), side by side."""
    names = sorted({f"{run['cluster']} {run['run']}" for run in runs})
    return document(", ".join(names), {"runs": list(runs)}, SCRIPTS)


def document(
    title: str, facts: Mapping[str, Any], scripts: Sequence[str], *, live: bool = False
) -> str:
    """The HTML of a page that these scripts of templates/report/ draw from its facts.

    Args:
        live: it can request more from its own server, and from no other.
    """
    return kit_template("report/page.html.j2").render(
        title=_text(title),
        facts=embedded(facts),
        connect="connect-src 'self'; " if live else "",
        style="\n".join(_file(name) for name in STYLES),
        script="\n".join(_file(name) for name in scripts),
        library=_file("uPlot.iife.min.js"),
        licence=_file("uPlot.LICENSE"),
    )


def embedded(facts: Mapping[str, Any]) -> str:
    """JSON for a script element, escaped so that it cannot end the element."""
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _file(name: str) -> str:
    return (PAGE_FOLDER / name).read_text(encoding="utf-8")


def _text(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;")


Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Evidence:
    """The data of one run: its cluster, its outcome.json, and observations.

    `checkpoints` are (Unix seconds, name) of existing ones; `logs` are the tasks whose log was
    saved; `faults` are those of a drill, `goodput` its sentences about a replayed trace; `requests`
    are the users' requests; `name` is the directory's name, `kit` the kit's version.
    """

    name: str
    cluster: Cluster
    outcome: Mapping[str, Any]
    events: Sequence[Event]
    entries: Sequence[Entry]
    samples: Sequence[Sample]
    checkpoints: Sequence[tuple[float, str]] = ()
    logs: Sequence[str] = ()
    faults: Sequence[Fault] = ()
    goodput: Sequence[str] = ()
    manifest: str = ""
    kit: str = ""
    profiles: Sequence[Mapping[str, Any]] = ()
    requests: Sequence[Asked] = ()


def entries_of(output: Path, cluster: Cluster, since: float, sizes: Sizes) -> list[Entry]:
    """The entries of a run's progress files, oldest first; those of an earlier run are left out."""
    tasks = [task.name for task in cluster.tasks]
    return ProgressReader(output, since, sizes, tasks=tasks).poll()


def samples_of(output: Path, cluster: Cluster, since: float, sizes: Sizes) -> list[Sample]:
    """The samples of the tasks' usage, oldest first, without those of an earlier run."""
    tasks = [task.name for task in cluster.tasks]
    lines = ProgressReader(output, since, sizes, suffix=USAGE, tasks=tasks).poll()
    return [sample for line in lines if (sample := sample_of(line))]


MOST_CHECKPOINTS = 10_000
INDEX = ".index"
"""The file of a checkpoint that TensorFlow writes last."""
OF_MODEL = "variables.index"
"""The index of a SavedModel, from which training does not continue."""


def completed_checkpoints(output: Path, below: str = "") -> Iterator[tuple[float, str]]:
    """Yields (Unix seconds of its completion, name) of each checkpoint of a run's output.

    Args:
        below: a directory in the output to which the search is limited.
    """
    for file in files(output, below, matches=_is_index):
        yield file.changed, file.name.rpartition("/")[2].removesuffix(INDEX)


def _is_index(name: str) -> bool:
    return name.endswith(INDEX) and name != OF_MODEL


def checkpoints_of(output: Path, since: float) -> list[tuple[float, str]]:
    """The existing checkpoints that were completed since Unix time `since`, oldest first.

    At most the newest MOST_CHECKPOINTS.
    """
    checkpoint = (one for one in completed_checkpoints(output) if one[0] >= since)
    return heapq.nlargest(MOST_CHECKPOINTS, checkpoint)[::-1]


PROFILE_FOLDER, FACTS = "profile", "profile.json"
MOST, MOST_OPS = 5, 3
"""Maximum traces in one report, and maximum ops of each task, to keep the page small."""
MOST_READ, LARGEST, HEAVIEST = 20, 1 << 20, 50_000
"""Maximum traces to read; maximum bytes and weight of one profile.json."""
_FIGURE = (int, float)
_NEEDED: Mapping[str, Any] = {
    "began": _FIGURE, "seconds": _FIGURE, "trace_bytes": _FIGURE,
    "tasks": dict, "missing": dict, "steps_per_s": dict, "trace": str, "folder": str,
}  # fmt: skip
_OF_TASK: Mapping[str, Any] = {
    "runs": (*_FIGURE, type(None)), "seconds": _FIGURE, "shares": dict, "waits_for": str,
    "longest_ops": list,
}  # fmt: skip


def profiles_of(output: Path, since: float) -> list[dict[str, Any]]:
    """The content of profile.json of each trace begun since Unix time `since`, oldest first.

    The last MOST are returned. Incomplete ones are left out.
    """
    named = files(output, PROFILE_FOLDER, matches=FACTS.__eq__, deepest=1)
    names = heapq.nlargest(MOST_READ, (file.name for file in named if file.name.count("/") == 2))
    newest = (_read(output, name) for name in names)
    whole = (facts for facts in newest if facts and facts["began"] >= since)
    return list(islice(whole, MOST))[::-1]


def profile_facts(facts: Mapping[str, Any], began: float) -> dict[str, Any]:
    """A trace in the report; `at` in seconds since the start of the run."""
    return {
        "at": round(facts["began"] - began, 3),
        "seconds": facts["seconds"],
        "file": f"output/{facts['folder']}/{facts['trace']}",
        "bytes": facts["trace_bytes"],
        "missing": dict(facts["missing"]),
        "steps_per_s": dict(facts["steps_per_s"]),
        "tasks": [
            {
                "name": name,
                "runs": row["runs"],
                "seconds": row["seconds"],
                "shares": row["shares"],
                "waits_for": row["waits_for"],
                "longest_ops": row["longest_ops"][:MOST_OPS],
            }
            for name, row in facts["tasks"].items()
        ],
    }


def _read(output: Path, name: str) -> dict[str, Any] | None:
    try:
        return checked(json.loads(read(output, name, LARGEST)))
    except (OSError, ValueError, RecursionError):
        return None


def checked(facts: object) -> dict[str, Any] | None:
    """The facts of a trace, with checked types; None if one is missing or has the wrong type."""
    cleaned = plain(facts)
    if not isinstance(cleaned, dict) or weight(cleaned) > HEAVIEST:
        return None
    whole = all(isinstance(cleaned.get(key), kind) for key, kind in _NEEDED.items())
    whole = whole and all(
        isinstance(cleaned["steps_per_s"].get(key), (*_FIGURE, type(None)))
        for key in ("before", "during")
    )
    return cleaned if whole and all(map(_is_row, cleaned["tasks"].values())) else None


def _is_row(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    if not all(isinstance(row.get(key), kind) for key, kind in _OF_TASK.items()):
        return False
    shares, ops = row["shares"].values(), row["longest_ops"]
    return all(number(share) is not None for share in shares) and all(map(_is_op, ops))


def _is_op(op: object) -> bool:
    kinds: dict[str, Any] = {"name": str, "op": str, "count": _FIGURE, "ms": _FIGURE}
    return isinstance(op, dict) and all(isinstance(op.get(k), kind) for k, kind in kinds.items())
