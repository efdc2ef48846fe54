"""Whatever tasks leave in a run's output, the run has an outcome and can be inspected later."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cluster_kit.contract.events import EVENTS, KINDS
from cluster_kit.errors import KitError
from cluster_kit.run.bug_report import archive
from cluster_kit.run.history import read_run, size_of
from cluster_kit.run.known_secrets import known_of
from cluster_kit.run.run_report import write_metrics, write_report
from cluster_kit.summary.markdown import markdown, read
from tests.fakes.acting import Life, dies, prints, says
from tests.fakes.stage import Stage, set_up

EXAMPLES = 50
"""The same each time; `make fuzz` draws a thousand others."""
PRIVATE = "a private file of the host"
TASKS = ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")
FIELDS = [*sorted({name for kinds in KINDS.values() for name in kinds}), "time", "event"]
OWN = tuple(f"progress/{task}{end}" for task in TASKS for end in (".jsonl", ".usage", ".beat"))
NAMES = st.one_of(
    st.sampled_from(OWN),
    st.sampled_from(
        (
            *("profile/a/profile.json", "profile/b/profile.json", "profile/a", "profile"),
            *(
                "model/checkpoint",
                "model/model.ckpt-5.index",
                "model/model.ckpt-5.data-00000-of-00001",
            ),
            *("result.json", "stacks/chief-0.txt", "tensorboard/events.out.tfevents.1.a", ".room"),
            *("progress/notes.txt", "progress/host.jsonl", "progress/worker-7.jsonl", "model"),
            *("checkpoints/ckpt-1.index", "a/b/c/d/e/f", "host-chief.new", "progress/x.usage"),
        )
    ),
    st.text(
        st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40
    )
    .filter(lambda name: name not in (".", ".."))
    .map(lambda name: f"progress/{name}.jsonl"),
)
NUMBERS = st.one_of(
    st.integers(), st.floats(), st.sampled_from([1e300, -1.0, 0, 1.7e9, 10**400, 2**63])
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=20), st.sampled_from(TASKS)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=8,
)
EVENT = st.fixed_dictionaries(
    {"time": st.one_of(st.sampled_from([0.5, 1.0, 2.0, 3.0]), VALUES)},
    optional={"event": st.one_of(st.sampled_from(sorted(EVENTS)), VALUES)},
)
LINE = st.builds(
    lambda event, more: json.dumps({**more, **event}).encode(),
    EVENT,
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
)
CONTENT = st.one_of(
    st.lists(LINE, max_size=8).map(b"\n".join),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
    st.sampled_from([b"[" * 100_000, b'{"a":' * 20_000, b"x" * (2 << 20), b"9" * 5000]),
)
KINDS = st.sampled_from(
    (*["file"] * 4, "link", "gone", "loop", "fifo", "folder", "sparse", "socket")
)
LEFT = st.lists(st.tuples(NAMES, KINDS, CONTENT), min_size=1, max_size=8)


def leave(output: Path, victim: Path, left: Sequence[tuple[str, str, bytes]], *, own: bool) -> None:
    """Do what tasks can do to their output. `own`: their own files are removed first."""
    for name, kind, content in left:
        path = output / name
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if own and name in OWN:
                path.unlink(missing_ok=True)
            if kind in ("link", "gone", "loop") and not os.path.lexists(path):
                target = {"link": victim / "private", "gone": victim / "made", "loop": path}[kind]
                path.symlink_to(target)
            elif kind == "fifo" and not os.path.lexists(path):
                os.mkfifo(path)
            elif kind == "folder":
                path.mkdir()
            elif kind == "socket" and not os.path.lexists(path):
                with socket.socket(socket.AF_UNIX) as made:
                    made.bind(str(path))
            elif kind in ("file", "sparse") and (
                not os.path.lexists(path) or (path.is_file() and not path.is_symlink())
            ):
                with path.open("ab") as file:
                    file.write(b"\n" + content + b"\n")
                    if kind == "sparse":
                        file.truncate(file.tell() + (3 << 30))


def look(stage: Stage) -> None:
    """Run the commands that users run on a finished run; each may fail only with an error
    message."""
    run = stage.directory
    for act in (
        lambda: write_report(run, known_of(run)),
        lambda: write_metrics(run),
        lambda: archive(stage.host, run, run.path / "bug.tar.gz"),
        lambda: size_of(read_run(run)),
        lambda: markdown(read(str(run.path), stage.workspace)),
    ):
        with contextlib.suppress(KitError):
            act()
    json.loads(run.report.with_suffix(".json").read_text(), parse_constant=pytest.fail)


@pytest.mark.hypothesis
@settings(
    max_examples=max(EXAMPLES, settings().max_examples),
    phases=(Phase.explicit, Phase.generate),  # a run takes too long to make an example smaller
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(during=LEFT, after=LEFT)
def test_a_run_has_an_outcome_and_can_be_inspected(during: Any, after: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="ck-") as folder, pytest.MonkeyPatch.context() as patch:
        root, victim = Path(folder), Path(folder, "victim")
        victim.mkdir()
        (victim / "private").write_text(PRIVATE)
        for stage in set_up(root):
            play(stage, victim, during, after, patch)
        assert [path.name for path in victim.iterdir()] == ["private"]
        assert (victim / "private").read_text() == PRIVATE


def play(stage: Stage, victim: Path, during: Any, after: Any, patch: pytest.MonkeyPatch) -> None:
    run = stage.docker.run

    def and_leave(command: Sequence[str], **more: Any) -> Any:
        done = run(command, **more)
        if "up" in command and during:
            leave(stage.directory.output, victim, during, own=False)
        return done

    patch.setattr(stage.docker, "run", and_leave)
    with contextlib.suppress(KitError):
        stage.up()
    assert stage.is_clean(), "no container is left"
    assert stage.saved()["reason"]
    leave(stage.directory.output, victim, after, own=True)
    look(stage)


@pytest.mark.parametrize(
    "word",
    [
        "\r2026-99-99T99:99:99Z an hour that no day has",
        "\u20280000-00-00T00:00:00Z a year that none is",
        "/output/_temp" * 50_000,
        "/output/x.tmp;No such" * 40_000,
        "GPU " * 100_000,
    ],
    ids=["time", "year", "temporary", "missing", "gpu"],
)
def test_no_end_message_prevents_a_verdict(tmp_path: Path, word: str) -> None:
    ends_so = (says(0.1, "start", attempt=1), prints(0.5, word, stderr=True), dies(1.0, 3))
    for stage in set_up(tmp_path):
        began = time.process_time()
        outcome = stage.up({"chief-0": [Life(ends_so)]}, retries=0)
        assert (outcome.exit_code, outcome.blame) == (5, "chief-0")
        assert stage.is_clean() and time.process_time() - began < 10
