"""Faults from a helper container: how it is started, and the error if the host forbids it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.drill.fault_plan import Planned
from cluster_kit.drill.injector import PROGRAMS, helper_of, refuse_if_unable, trial_of
from cluster_kit.drill.inside import fill_disk
from cluster_kit.drill.scenario_file import KINDS, At
from cluster_kit.errors import EngineError, HostError
from cluster_kit.platforms.engine import Helper
from tests.fakes.clock import Clock
from tests.fakes.engine import FakeEngine
from tests.make import cluster

DEMO = cluster(role={"worker": {"bandwidth": "100mbit"}})
IPS = {task.name: str(task.ip) for task in DEMO.tasks}


def planned(kind: str, task: str = "worker-1", **keys: Any) -> Planned:
    return Planned(1, kind, task, At(step=1), keys.pop("lasts", 4.0), **keys)


def asked(fault: Planned) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(helper_of(DEMO, "id", fault).command[-1])
    return found


def test_delay_and_loss_affect_all_packets_between_the_task_and_the_others() -> None:
    others = [ip for name, ip in IPS.items() if name != "worker-1"]
    assert asked(planned("delay", delay=0.2)) == {
        "peers": others, "seconds": 4.0, "loss": 0.0, "delay": 0.2,
    }  # fmt: skip
    assert asked(planned("loss", percent=2.5))["loss"] == 0.025
    assert asked(planned("cut", sources=("ps-0", "chief-0"), lasts=None)) == {
        "peers": [IPS["ps-0"], IPS["chief-0"]], "seconds": None, "loss": 1.0, "delay": 0.0,
    }  # fmt: skip


def test_a_bandwidth_fault_knows_the_limit_to_restore() -> None:
    of_worker = helper_of(DEMO, "id", planned("bandwidth", rate=10**6)).command
    assert of_worker[-4:] == (IPS["worker-1"], "1000000", "100000000", "4")
    of_ps = helper_of(DEMO, "id", planned("bandwidth", "ps-0", lasts=None)).command
    assert of_ps[-4:] == (IPS["ps-0"], "10000000", "-", "-")


def test_each_helper_has_only_the_namespaces_and_rights_that_it_needs() -> None:
    for kind in ("delay", "loss", "bandwidth"):
        helper = helper_of(DEMO, "id", planned(kind))
        assert (helper.network_of, helper.processes_of) == ("id", "")
        assert (helper.capabilities, helper.privileged) == (("NET_ADMIN",), False)
    disk = helper_of(DEMO, "id", planned("disk-full"))
    assert (disk.network_of, disk.processes_of, disk.privileged) == ("", "id", True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_trial_touches_no_task(program: str) -> None:
    helper = trial_of(program, "image")
    assert (helper.network_of, helper.processes_of) == ("", "")
    assert {kind.beside for kind in KINDS.values()} >= {program}


def test_everything_that_a_host_cannot_do_is_reported_together() -> None:
    engine = FakeEngine(Clock())
    engine.facts["MemoryLimit"] = False
    engine.helper_says = "Operation not permitted"
    faults = [planned(kind) for kind in ("delay", "loss", "disk-full", "crash", "memory")]
    with pytest.raises(HostError) as caught:
        refuse_if_unable(engine, DEMO, faults)
    assert caught.value.message.splitlines() == [
        "this host cannot do what the drill asks for",
        "  memory: the engine has no control group for it",
        "  delay, loss: Operation not permitted",
        "  disk-full: Operation not permitted",
    ]
    assert "sudo modprobe -a nfnetlink_queue" in caught.value.hint
    assert "privileged container" in caught.value.hint
    assert len(engine.helpers) == 2, "what several faults take is tried once"


def test_an_engine_that_refuses_the_trial_is_reported() -> None:
    class Refusing(FakeEngine):
        def start_helper(self, cluster: str, chosen: Helper) -> str:
            raise EngineError("the Docker engine refused: no privileged containers")

    with pytest.raises(HostError, match=r"disk-full: .*no privileged containers"):
        refuse_if_unable(Refusing(Clock()), DEMO, [planned("disk-full")])


def test_faults_that_work_on_every_host_need_no_trial() -> None:
    engine = FakeEngine(Clock())
    refuse_if_unable(engine, DEMO, [planned("crash"), planned("cut"), planned("memory")])
    assert engine.helpers == []


def test_a_disk_without_inodes_counts_as_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def touch(path: Path) -> None:
        if len(made) == 3:
            raise OSError(28, "No space left on device")
        made.append(path.name)

    monkeypatch.setattr(Path, "touch", touch)
    monkeypatch.setattr(Path, "open", _never_full)
    fill_disk.use_up(tmp_path)
    assert made == ["inode-0", "inode-1", "inode-2"]


def _never_full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")
