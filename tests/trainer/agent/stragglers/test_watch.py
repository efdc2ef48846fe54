"""The watch of an attempt: what it reads, which tasks it compares, and what it writes."""

from __future__ import annotations

import json
import time

import pytest

from trainer.agent import straggler_watch
from trainer.agent.progress_file import Progress
from trainer.agent.straggler_rule import Straggled, Straggling
from trainer.agent.straggler_watch import StragglerWatch, groups, in_turns
from trainer.agent.task import Task, read_task
from trainer.agent.usage import Usage
from trainer.contract.times import STRAGGLER_S

pytestmark = pytest.mark.first


def task(name: str, cluster: dict[str, int], tmp_path="/nowhere") -> Task:
    hosts = {role: [f"127.0.0.1:{port}" for port in range(1, count + 1)]
             for role, count in cluster.items()}  # fmt: skip
    role, _, index = name.partition("-")
    config = {"cluster": hosts, "task": {"type": role, "index": int(index)}}
    return read_task({"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_OUTPUT": str(tmp_path)})


@pytest.mark.parametrize(
    ("leader", "cluster", "expected"),
    [
        ("chief-0", {"chief": 1, "worker": 2, "ps": 1}, {"workers": ("worker-0", "worker-1")}),
        ("worker-0", {"worker": 2, "ps": 2},
         {"workers": ("worker-0", "worker-1"), "parameter servers": ("ps-0", "ps-1")}),
        ("worker-0", {"worker": 2}, {"workers": ("worker-0", "worker-1")}),
        ("chief-0", {"chief": 1, "worker": 1}, {"tasks": ("chief-0", "worker-0")}),
        ("chief-0", {"chief": 1, "worker": 1, "ps": 1}, {}),
        ("worker-0", {"worker": 1}, {}),
    ],
    ids=["coordinator", "graph mode", "all-reduce", "all-reduce with a chief", "one worker",
         "alone"],
)  # fmt: skip
def test_tasks_with_the_same_work(leader, cluster, expected):
    assert groups(task(leader, cluster)) == expected


def test_under_ps_all_others_send_and_receive_in_turns():
    under_ps = task("chief-0", {"chief": 1, "worker": 2, "ps": 2})
    assert in_turns(under_ps) == {"chief-0", "worker-0", "worker-1"}
    assert in_turns(task("worker-0", {"worker": 2})) == set()


def test_the_sentences():
    found = Straggling("worker-1", 20.0, "cpu-limit", 0.2, 3.14, 12.4, 0.2)
    assert straggler_watch.begin_sentence(found, "workers") == (
        "worker-1 is a straggler: 3.1 steps/s, the median of the other workers is 12.4;"
        " 20% of the steps; its CPU limit of 0.2 is reached"
    )
    of_two = straggler_watch.begin_sentence(found, "workers", of_two=True)
    assert "3.1 steps/s, the other worker makes 12.4; 20% of" in of_two
    by_limit = Straggling("ps-1", 20.0, "bandwidth-limit", 8e6)
    assert straggler_watch.begin_sentence(by_limit, "parameter servers") == (
        "ps-1 is a straggler: its bandwidth limit of 8 Mbit/s is reached"
    ), "whether others wait for it is not known: workers do"
    by_cpu = Straggling("worker-1", 20.0, "cpu-limit", 0.5, slowed=4.87)
    slowed = straggler_watch.begin_sentence(by_cpu, "workers")
    assert slowed.endswith(", which makes it 4.9 times slower")
    unknown = Straggling("worker-1", 20.0, "unknown", None, 1.0, 9.0, 0.1)
    assert straggler_watch.begin_sentence(unknown, "workers").endswith(
        "; none of its limits is reached"
    )
    assert straggler_watch.end_sentence(Straggled("worker-1", 43.2, 0.21)) == (
        "worker-1 was a straggler for 43 s, with 21% of the steps"
    )
    assert (
        straggler_watch.end_sentence(Straggled("worker-1", 43.2, None))
        == "worker-1 was a straggler for 43 s"
    )


@pytest.mark.parametrize("reported", [True, False], ids=["own steps", "closures"])
def test_the_watch_reads_steps_and_writes_its_findings(reported, tmp_path, monkeypatch, capsys):
    """Twenty seconds pass in two: the clock runs ten times as fast."""
    began = time.monotonic()
    monkeypatch.setattr(straggler_watch, "LOOK_S", 0.1)
    monkeypatch.setattr(straggler_watch.time, "monotonic", lambda: began + 10 * (CLOCK() - began))
    leader = task("worker-0", {"worker": 2}, tmp_path)
    progress = {name: Progress(tmp_path / "progress" / f"{name}.jsonl")
                for name in ("worker-0", "worker-1")}  # fmt: skip
    made = {"worker-0": 0, "worker-1": 0}
    looking = StragglerWatch(
        leader, progress["worker-0"], lambda: {"worker-1": Usage()},
        lambda: {} if reported else dict(made),
    )  # fmt: skip
    file = tmp_path / "progress" / "worker-0.jsonl"
    until = CLOCK() + 20
    while CLOCK() < until and "straggling" not in file.read_text():
        time.sleep(0.05)
        made["worker-0"] += 50
        made["worker-1"] += 10
        for name, count in made.items() if reported else ():
            progress[name].write("step", step=sum(made.values()), own_steps=count)
    looking.end()
    looking.end()
    told = [json.loads(line) for line in file.read_text().splitlines()]
    begun, over = [event for event in told if event["event"].startswith("straggl")]
    assert (begun["of"], begun["cause"], begun["seconds"]) == ("worker-1", "unknown", STRAGGLER_S)
    assert begun["share"] == pytest.approx(1 / 6, abs=0.02)
    assert (over["event"], over["of"]) == ("straggled", "worker-1") and over["seconds"] >= 20
    output = capsys.readouterr().err
    assert (
        f"worker-0: {begun['message']}\n" in output and f"worker-0: {over['message']}\n" in output
    )


CLOCK = time.monotonic
