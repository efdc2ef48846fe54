"""A trace of preemptions: how it is read, and which tasks its machines have."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cluster_kit.drill import trace
from cluster_kit.drill.fault_plan import plan, refuse
from cluster_kit.drill.trace import Absence, Replayed
from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.resolved import Cluster
from tests.make import ROOT, cluster

HEAD = "time,machine,event\n"
ABSENCES = "machine,left,back\n"


def refused(text: str) -> str:
    try:
        trace.parse(text, "mine.csv")
    except ManifestError as error:
        return error.message
    return ""


def replayed(text: str, made: Cluster, speedup: float = 1.0, *names: str) -> Replayed:
    written = trace.replayed(trace.parse(text, "mine.csv"), made, speedup, names)
    refuse(written, made)
    return written


MISTAKES = [
    ("", "trace: has no line"),
    ("# nothing\n\n", "trace: has no line"),
    ("5,a,left\n", 'line 1 = "5,a,left": is not a line of names'),
    ("600000,add,node1\n", "put `time_ms,event,machine` in front"),
    ("time,machine,evnt\n", 'line 1 = "evnt": no such column\n    → did you mean `event`'),
    ("time,machine,event,cpus\n5,a,left,3", 'line 1 = "cpus": no such column'),
    ("time,machine\n5,a", "these columns are not those of a trace"),
    ("time,time,event\n", "this column is there twice"),
    (f"time{',time' * 1_000_000}\n", "has more than 100 columns: 1000001"),
    (HEAD, "no machine leaves"),
    (f"{HEAD}5,a,back\n", "no machine leaves"),
    (f"{HEAD}5,a\n", 'line 2 = "5,a": has 2 values, and there are 3 columns'),
    (f"{HEAD}5,,left\n", "line 2: machine: is missing"),
    (f"{HEAD}x,a,left\n", 'line 2: time = "x": is not a time'),
    (f"{HEAD}-1,a,left\n", 'line 2: time = "-1": is not a time from 0 on'),
    (f"{HEAD}nan,a,left\n", 'line 2: time = "nan": is not a time from 0 on'),
    (f"{HEAD}1e400,a,left\n", "is not a time from 0 on"),
    (f"{HEAD}5,a,gone\n", 'line 2: event = "gone": is no event of a trace'),
    (f"{HEAD}5,a,left\n4,b,left\n", 'line 3: time = "4": is earlier than line 2'),
    (f"{HEAD}5,a,left\n6,a,left\n", 'line 3: machine = "a": leaves, and has left already (line 2)'),
    (f"{HEAD}5,a,add\n6,a,add\n", "comes, and has come already (line 2)"),
    (
        f"{HEAD}5,a,left\n2026-11-24T10:00:00,a,back\n",
        "is an ISO time, and the times before it are",
    ),
    (f"{ABSENCES}a,5,5\n", 'line 2: back = "5": comes back before it leaves (5)'),
    (f"{ABSENCES}a,5,9\na,8,12\n", 'line 3: machine = "a": is away already (line 2)'),
    (f"{ABSENCES}a,5,\na,8,12\n", "is away already (line 2)"),
    ('time,machine,event\n5,"a,left\n', "not CSV"),
]


def test_a_mistake_is_reported_with_line_value_and_rule(subtests: pytest.Subtests) -> None:
    for text, said in MISTAKES:
        with subtests.test(text=text, said=said):
            message = refused(text)
            assert said in message
            assert "→" in message


def test_all_mistakes_are_reported_together_but_not_thousands() -> None:
    assert refused(f"{HEAD}x,a,left\n5,b,gone\n").startswith("mine.csv: 2 problems")
    many = refused(HEAD + "x,a,left\n" * 5000)
    assert "4980 more problems" in many and len(many) < 5000
    assert "1 more problem\n" in refused(HEAD + "x,a,left\n" * 21)


def test_what_is_no_file_or_too_long_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.csv")
    with (large := tmp_path / "large.csv").open("wb") as file:
        file.truncate(trace.LARGEST + 1)
    for path, said in (
        (pipe, "not a file"), (Path("/dev/zero"), "not a file"), (tmp_path, "not a file"),
        (tmp_path / "no.csv", "No such file"), (large, "has more than 16 MiB"),
    ):  # fmt: skip
        with pytest.raises(ManifestError, match=said):
            trace.load(path)


def test_the_absences_of_one_machine_are_read_in_linear_time() -> None:
    text = ABSENCES + "".join(f"a,{2 * at},{2 * at + 1}\n" for at in range(2_000))
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        trace.parse(text, "mine.csv")
    finally:
        sys.settrace(before)
    assert lines < 200 * 2_000


def test_times_are_seconds_or_iso_or_in_another_unit() -> None:
    iso = "time,machine,event\n2026-11-24T10:00:00Z,a,left\n2026-11-24T10:00:30Z,a,back\n"
    texts = {
        "s": f"{HEAD}10.5,a,left\n40.5,a,back\n",
        "ms": "timestamp_ms,node,operation\n10500,a,remove\n40500,a,add\n",
        "us": "time_us,machine_id,event_type\n10500000,a,1\n40500000,a,0\n",
        "iso": iso,
        "absences": f"{ABSENCES}a,10.5,40.5\n",
    }
    for text in texts.values():
        left, back = trace.parse(text, "mine.csv").events
        assert (left.left, back.left) == (True, False)
        assert back.time - left.time == pytest.approx(30)


def test_workers_that_do_not_lead_are_preempted_after_undisturbed_training() -> None:
    text = f"{HEAD}0,a,left\n10,b,left\n20,b,back\n60,a,back\n"
    written = replayed(text, cluster(ps=1), 2.0)
    assert written.absences == (Absence("worker-0", "a", 0, 60), Absence("worker-1", "b", 10, 20))
    planned = plan(written.scenario, cluster(ps=1), 0)
    assert [(one.task, one.at.training, one.lasts) for one in planned] == [
        ("worker-0", trace.LEAD_S, 30), ("worker-1", trace.LEAD_S + 5, 5),
    ]  # fmt: skip
    all_tasks = cluster(chief=0, ps=1, style="all-tasks")
    assert {one.task for one in replayed(text, all_tasks).absences} == {"worker-1"}


def test_a_new_machine_takes_the_place_of_one_that_left() -> None:
    """As in published traces, where a machine that is taken away never has its name again."""
    text = "time_ms,event,machine\n" + "".join(
        f"{time},{event},{machine}\n"
        for time, event, machine in (
            (480_000, "add", "n1"), (600_000, "add", "n2"), (600_000, "add", "n3"),
            (900_000, "remove", "n3"), (960_000, "remove", "n1"), (1_000_000, "remove", "n2"),
            (1_200_000, "add", "n4"), (1_300_000, "add", "n5"), (1_400_000, "remove", "n4"),
        )
    )  # fmt: skip
    written = replayed(text, cluster(ps=1))
    assert written.absences == (
        Absence("worker-0", "n1", 360, 600), Absence("worker-1", "n2", 400, 700),
        Absence("worker-0", "n4", 800, None),
    )  # fmt: skip
    assert written.scenario.fault[0].at.training == 360
    assert written.notes == (
        "1 machine of the trace is not used: worker-0, worker-1 had one already "
        "(more `--workers` use more)",
    )


def test_a_machine_that_comes_back_gets_its_own_task() -> None:
    text = f"{ABSENCES}a,1,9\nb,2,3\n"
    assert replayed(text, cluster(ps=1)).absences == (
        Absence("worker-0", "a", 0, 8), Absence("worker-1", "b", 1, 2),
    )  # fmt: skip
    assert replayed(f"{ABSENCES}a,1,9\n", cluster(ps=1)).absences == (
        Absence("worker-0", "a", 0, 8),
    )  # fmt: skip


def test_which_tasks_are_preempted_can_be_chosen() -> None:
    text = f"{ABSENCES}a,1,9\nb,2,3\nc,4,5\n"
    found = replayed(text, cluster(ps=1), 1.0, "ps", "worker-1")
    assert [one.task for one in found.absences] == ["ps-0", "worker-1"]
    for name, said in (
        ("chief", "--preempt chief: it leads the job"),
        ("chief-0", "it leads the job"),
        ("wroker", "did you mean `worker`"),
    ):
        with pytest.raises(UsageError) as caught:
            replayed(text, cluster(ps=1), 1.0, name)
        assert said in f"{caught.value.message} {caught.value.hint}"


def test_a_cluster_without_a_task_to_preempt_is_told_how_to_get_one() -> None:
    for ps, further in ((1, ", or name tasks: `--preempt ps`"), (0, "")):
        alone = cluster(chief=0, worker=1, ps=ps, style="all-tasks")
        with pytest.raises(UsageError, match="demo has no worker that may be preempted") as told:
            replayed(f"{ABSENCES}a,1,9\n", alone)
        assert told.value.hint == f"give it another worker (`--workers 2`){further}"


def test_an_absence_that_the_others_do_not_wait_for_is_refused() -> None:
    made = cluster(chief=0, ps=0, deadline={"start": 20})
    with pytest.raises(ManifestError, match=r"absence 1 = 30 s: a is away longer than deadline"):
        replayed(f"{ABSENCES}a,1,31\n", cluster(ps=1, deadline={"start": 20}), 1.0, "ps")
    with pytest.raises(ManifestError, match="never comes back"):
        replayed(f"{ABSENCES}a,5,\n", made)
    with pytest.raises(ManifestError, match=r"or `--set deadline.start=901s` or more"):
        replayed(f"{ABSENCES}a,1,901\n", made)
    assert replayed(f"{ABSENCES}a,1,31\n", made, 10.0).absences
    assert replayed(f"{ABSENCES}a,1,\n", cluster(ps=1)).scenario.fault[0].lasts is None


def test_an_absence_after_the_jobs_deadline_is_refused_with_what_helps() -> None:
    text = f"{ABSENCES}a,100,110\nb,7000.5,7010\n"
    with pytest.raises(ManifestError, match="absence 2 = 6916 s: it begins after") as told:
        replayed(text, cluster(ps=1))
    assert "give a larger --speedup than 1, or `--set deadline.job=6917s` or more" in str(
        told.value
    )
    assert replayed(text, cluster(ps=1), 2.0).absences
    assert replayed(text, cluster(ps=1, deadline={"job": 6917})).absences


def test_a_run_replays_no_more_absences_than_it_can_survive() -> None:
    rows = "".join(f"a,{10 * n},{10 * n + 5}\n" for n in range(1, 200))
    written = replayed(ABSENCES + rows, cluster(ps=1, deadline={"job": 9000}))
    assert len(written.absences) == trace.MOST
    assert "only the first 97 of 199 absences are replayed" in written.notes[-1]


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.csv", "binary.csv"):
        with pytest.raises(ManifestError, match=name):
            trace.load(tmp_path / name)


def test_the_shipped_trace_fits_the_quickstart() -> None:
    loaded = trace.load(ROOT / "compose" / "drills" / "spot-example.csv")
    assert trace.replayed(loaded, cluster(ps=1), 60).absences
