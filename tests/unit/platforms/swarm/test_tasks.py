"""Records of a swarm's tasks become starts and ends of the kit's tasks."""

from __future__ import annotations

from cluster_kit import labels
from cluster_kit.platforms.swarm.swarm_tasks import HELD, Told, by_service, container_of, with_lost
from tests.unit.platforms.swarm.records import NOON, service, task


def told(known: Told, *tasks: object) -> list[tuple[str, float, int | None]]:
    events = known.events(tasks, NOON + 59)  # type: ignore[arg-type]
    return [(event.action, event.time - NOON, event.exit_code) for event in events]


def test_a_start_and_an_end_are_reported_once() -> None:
    known = Told()
    assert told(known) == []
    assert told(known, task(1, "preparing", 1)) == []
    assert told(known, task(1, "running", 2)) == [("start", 2.5, None)]
    assert told(known, task(1, "running", 2)) == []
    assert told(known, task(1, "complete", 9, code=0)) == [("die", 9.5, 0)]
    assert told(known, task(1, "complete", 9, code=0)) == []


def test_a_crash_and_the_next_start_are_two_tasks_of_the_swarm() -> None:
    known = Told()
    told(known, task(1, "running", 2))
    both = (task(1, "failed", 5, code=137), task(6, "running", 7))
    assert told(known, *both) == [("die", 5.5, 137), ("start", 7.5, None)]


def test_a_task_that_ended_too_quickly_to_be_seen_running_is_reported() -> None:
    known = Told(began=True)
    assert told(known, task(1, "failed", 2, code=3)) == [("start", 1.5, None), ("die", 2.5, 3)]


def test_a_task_that_is_told_to_stop_is_no_crash() -> None:
    known = Told()
    told(known, task(1, "running", 2))
    held = task(3, "pending", 3, constraints=[HELD])
    assert told(known, task(1, "shutdown", 4, code=143), held) == [
        ("kill", 4.5, None),
        ("die", 4.5, 143),
    ]


def test_a_task_on_a_lost_node_has_ended_when_another_replaces_it() -> None:
    known = Told()
    told(known, task(1, "running", 2))
    assert told(known, task(1, "running", 2), task(5, "running", 6)) == [
        ("die", 59, None),
        ("start", 6.5, None),
    ]


def test_a_task_that_is_replaced_before_it_ran_is_no_restart() -> None:
    known, node_is_lost = Told(), task(1, "running", 2)
    told(known, node_is_lost)
    both = (node_is_lost, task(5, "preparing", 5), task(6, "running", 7))
    assert told(known, *both) == [("die", 59, None), ("start", 7.5, None)]
    assert told(known, node_is_lost, task(5, "shutdown", 8), task(6, "running", 7)) == []
    assert container_of(service(), both).restarts == 1


def node(name: str, state: str) -> dict[str, object]:
    return {"ID": "n1", "Description": {"Hostname": name}, "Status": {"State": state}}


def test_a_task_whose_node_is_down_has_ended_and_the_node_is_named() -> None:
    known = Told()
    told(known, task(1, "running", 2))
    assert with_lost([task(1, "running", 2)], [node("big", "ready")]) == [task(1, "running", 2)]
    lost = with_lost([task(1, "running", 2)], [node("big", "down")])
    events = list(known.events(lost, NOON + 20))
    assert [(e.action, e.said, e.exit_code) for e in events] == [
        ("lost", "big", None),
        ("die", "", 137),
    ]
    assert list(known.events(lost, NOON + 21)) == []
    seen = container_of(service(), lost)
    assert (seen.state, seen.exit_code) == ("exited", 137)
    ended = task(1, "complete", 9, code=0)
    assert with_lost([ended], [node("big", "down")]) == [ended]


def test_a_task_that_a_drained_node_stopped_names_the_node() -> None:
    known, stopped = Told(), task(1, "shutdown", 4, code=143)
    told(known, task(1, "running", 2))
    drained = {**node("big", "ready"), "Spec": {"Availability": "drain"}}
    assert with_lost([task(1, "running", 2)], [drained]) == [task(1, "running", 2)]
    assert with_lost([stopped], [node("big", "ready")]) == [stopped]
    events = known.events(with_lost([stopped], [drained]), NOON + 5)
    assert [(e.action, e.said) for e in events] == [("kill", "big"), ("die", "")]


def test_a_task_that_no_node_accepts_is_reported_once_after_a_while() -> None:
    known = Told()
    told(known, task(1, "running", 2))
    waiting = task(9, "pending", 9, err="no suitable node")
    both = [*with_lost([task(1, "running", 2)], [node("big", "down")]), {**waiting, "NodeID": ""}]
    actions = [e.action for e in known.events(both, NOON + 12)]
    assert actions == ["lost", "die"]
    (homeless,) = known.events(both, NOON + 30)
    assert (homeless.action, homeless.said) == ("homeless", "no suitable node")
    assert list(known.events(both, NOON + 31)) == []


def test_earlier_ends_are_left_to_the_state_of_the_services() -> None:
    assert told(Told(), task(1, "failed", 2, code=1), task(3, "running", 4)) == [
        ("start", 4.5, None)
    ]


def test_a_removed_service_is_reported() -> None:
    known = Told()
    told(known, task(1, "running", 2))
    assert told(known) == [("destroy", 59, None)]


def test_a_service_is_shown_as_one_container() -> None:
    seen = container_of(service(), [task(1, "failed", 5, code=137), task(6, "running", 7)])
    assert (seen.name, seen.state, seen.restarts, seen.ip) == ("worker-0", "running", 1, "10.0.1.6")
    assert seen.started - NOON == 7.5
    assert seen.exit_code is None
    assert seen.output == "/runs/1/output"
    assert seen.secrets == ("hidden",)


def test_gpus_are_those_that_were_requested() -> None:
    asking = service()
    asking["Spec"]["TaskTemplate"]["ContainerSpec"]["Labels"][labels.GPUS] = "any,any"
    assert container_of(asking, []).gpus == ("any", "any")
    assert container_of(service(), []).gpus == ()


def test_the_states_of_a_swarm_map_to_those_of_an_engine() -> None:
    def state(*tasks: object) -> tuple[str, int | None]:
        seen = container_of(service(), tasks)  # type: ignore[arg-type]
        return seen.state, seen.exit_code

    assert state() == ("created", None)
    assert state(task(1, "preparing", 1)) == ("created", None)
    assert state(task(1, "complete", 3, code=0)) == ("exited", 0)
    assert state(task(1, "rejected", 3)) == ("exited", 125)
    assert state(task(1, "failed", 3, code=1), task(4, "ready", 4)) == ("restarting", 1)


def test_a_stopped_service_has_the_state_of_its_last_task() -> None:
    tasks = [task(1, "shutdown", 4, code=143), task(3, "pending", 3, constraints=[HELD])]
    assert [one["ID"] for one in by_service(tasks)["s-worker-0"]] == ["t1"]


def test_a_container_that_could_not_be_started_has_never_run() -> None:
    unable = task(1, "failed", 2, code=127, err="starting container failed: no", message="starting")
    (died,) = Told(began=True).events([unable], NOON + 3)
    assert (died.action, died.exit_code) == ("die", 125)
    assert died.said == "starting container failed: no"
    assert container_of(service(), [unable]).exit_code == 125


def test_a_task_that_was_lost_before_it_ran_was_not_started() -> None:
    lost = with_lost([task(1, "preparing", 1)], [node("big", "down")])
    events = list(Told(began=True).events(lost, NOON + 20))
    assert [(e.action, e.said, e.exit_code) for e in events] == [
        ("lost", "big", None),
        ("die", "", 137),
    ]
