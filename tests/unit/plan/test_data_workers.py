"""tf.data service: `data_worker = 2` brings a dispatcher and two workers beside the training."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.drill.fault_plan import candidates
from cluster_kit.platforms.compose.compose_file import render
from cluster_kit.platforms.container import task_containers
from cluster_kit.platforms.kubernetes.kubernetes_file import objects
from cluster_kit.platforms.rendered_file import spec_text
from cluster_kit.platforms.swarm.stack_file import render as render_stack
from cluster_kit.run.verdict import judge, notes_of
from tests.make import cluster, parse_compose, problems
from tests.unit.stories import Story, chief_succeeds

FIXED = {"subnet": "172.28.0.0/24"}
DISPATCHER, FIRST, SECOND = "data_dispatcher-0", "data_worker-0", "data_worker-1"
MADE = cluster(data_worker=2, evaluator=1, args=["--input={{ data_service }}"], **FIXED)


def test_they_have_addresses_of_their_own() -> None:
    assert {task.name: str(task.ip) for task in MADE.data_tasks} == {
        DISPATCHER: "172.28.0.2",
        FIRST: "172.28.0.3",
        SECOND: "172.28.0.4",
    }
    without = cluster(evaluator=1, **FIXED)
    assert {(task.name, task.ip) for task in without.tasks} <= {(t.name, t.ip) for t in MADE.tasks}
    assert (without.data_tasks, without.data_service) == ((), "")


@given(st.integers(1, 600), st.integers(0, 400), st.integers(1, 300))
def test_no_number_of_them_takes_an_address_of_another_task(
    workers: int, ps: int, data_workers: int
) -> None:
    made = cluster(worker=workers, ps=ps, chief=int(ps > 0), evaluator=1, data_worker=data_workers)
    addresses = [task.ip for task in made.tasks]
    assert len(set(addresses)) == len(addresses)
    assert all(ip in made.subnet for ip in addresses)


def test_they_are_in_a_spec_of_their_own_and_programs_get_the_address() -> None:
    containers = {one.hostname: one for one in task_containers(MADE)}
    configs = {name: json.loads(one.variables["TF_CONFIG"]) for name, one in containers.items()}
    feeding = {
        "data_dispatcher": ["172.28.0.2:2222"],
        "data_worker": ["172.28.0.3:2222", "172.28.0.4:2222"],
    }
    for name, config in configs.items():
        is_fed = not name.startswith("data_")
        assert (config["cluster"] == feeding) is not is_fed
        assert (feeding.keys() & config["cluster"].keys() == set()) is is_fed
        assert containers[name].variables["CLUSTER_KIT_DATA_SERVICE"] == "grpc://172.28.0.2:2222"
    assert configs[SECOND]["task"] == {"type": "data_worker", "index": 1}
    assert MADE.leader.arguments == ("--input=grpc://172.28.0.2:2222",)
    assert containers[FIRST].command == containers[DISPATCHER].command == ("data-service",)
    for name in (DISPATCHER, FIRST, SECOND):
        assert containers[name].variables["CLUSTER_KIT_SERVERS"] == ""
        assert "CLUSTER_KIT_TRAINING" not in containers[name].variables
    servers = containers["worker-0"].variables["CLUSTER_KIT_SERVERS"]
    assert servers == "worker-0,worker-1,ps-0,ps-1"


def test_they_are_as_closed_as_every_other_task() -> None:
    services = parse_compose(render(MADE))["services"]
    for key in ("user", "read_only", "cap_drop", "security_opt", "pids_limit", "tmpfs", "init"):
        assert services[FIRST].get(key) == services["ps-0"].get(key), key
    assert services[FIRST]["read_only"] is True
    assert services[FIRST]["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"
    assert services[DISPATCHER]["restart"] == services["ps-0"]["restart"]


def test_the_keys_of_a_role_and_of_a_task_hold_for_them() -> None:
    made = cluster(
        data_worker=2,
        role={"data_worker": {"cpus": 0.5, "environment": {"FROM": "{{ data_service }}"}},
              "data_dispatcher": {"memory": "2g"}},
        task={SECOND: {"memory": "1g"}},
        mount=[{"source": "/home/you/cache", "target": "/cache", "roles": ["data_worker"]}],
        addressing="name",
    )  # fmt: skip
    dispatcher, first, second = made.data_tasks
    assert (dispatcher.memory, first.memory, second.memory) == (2 << 30, None, 1 << 30)
    assert (first.cpus, second.cpus, dispatcher.cpus) == (0.5, 0.5, None)
    assert first.environment == (("FROM", "grpc://data_dispatcher-0:2222"),)
    assert [[m.target for m in t.mounts] for t in made.data_tasks] == [[], ["/cache"], ["/cache"]]


def test_a_mount_of_all_other_roles_stays_one_of_all_tasks_without_them() -> None:
    roles = ["chief", "worker", "ps", "evaluator"]
    keys: dict[str, Any] = {"mount": [{"source": "/home/you/a", "target": "/a", "roles": roles}]}
    assert [mount.target for mount in cluster(**keys).mounts] == ["/a"]
    made = cluster(data_worker=1, **keys)
    assert [mount.target for mount in made.mounts] == []
    assert [mount.target for mount in made.leader.mounts] == ["/a"]
    assert not made.data_tasks[1].mounts


@pytest.mark.parametrize(
    ("keys", "key_path", "words"),
    [
        ({"data_worker": -1}, "data_worker", "cannot be negative"),
        ({"data_worker": 10**6}, "data_worker", "too many tasks"),
        ({"data_worker": 1, "subnet": "172.28.0.0/26"}, "subnet", "too small"),
        ({"data_worker": 1, "program": "detection", "chief": 0, "ps": 1, "worker": 1,
          "style": "all-tasks", "data": "digit-scenes"}, "data_worker", "prepares its input"),
        ({"data_worker": 1, "program": "train.py", "tf1": True}, "data_worker", "TensorFlow 1"),
        ({"task": {DISPATCHER: {"cpus": 1}}}, f"task.{DISPATCHER}", "data_worker = 0"),
        ({"data_worker": 1, "task": {SECOND: {"cpus": 1}}}, f"task.{SECOND}", "data_worker = 1"),
        ({"data_worker": 1, "role": {"data_worker": {"gpus": ["0"]}}}, "role.data_worker.gpus",
         "never gets a GPU"),
        ({"data_worker": 2, "engine": "slurm", "slurm": {"image": "trainer.sif"}}, "data_worker",
         "does not start tf.data service in a Slurm job"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(keys: dict[str, Any], key_path: str, words: str) -> None:
    (problem,) = problems(**keys)
    assert problem.key_path == key_path
    assert words in problem.rule
    assert "data_dispatcher =" not in problem.hint_text()


def test_a_swarm_keeps_their_own_spec_out_of_the_file_that_all_tasks_share() -> None:
    made = cluster(engine="swarm", data_worker=1, evaluator=1)
    services = yaml.safe_load(render_stack(made))["services"]
    own = json.loads(services[FIRST]["environment"]["TF_CONFIG"])
    assert own["cluster"]["data_dispatcher"] == ["data_dispatcher-0:2222"]
    assert "TF_CONFIG" not in services["ps-0"]["environment"]
    assert "data_worker" not in json.loads(spec_text(made))["cluster"]


@pytest.mark.parametrize("jobset", [False, True])
def test_kubernetes_names_them_without_underscores(jobset: bool) -> None:
    name = "n" * 40
    made = cluster(name=name, engine="kubernetes", data_worker=2, kubernetes={"jobset": jobset})
    found = objects(made, [])
    if jobset:
        (the_set,) = (one for one in found if one["kind"] == "JobSet")
        jobs = {one["name"]: one["template"] for one in the_set["spec"]["replicatedJobs"]}
        assert the_set["spec"]["successPolicy"]["targetReplicatedJobs"] == ["chief"]
        job = jobs["data-worker"]
    else:
        (job,) = (o for o in found if o["metadata"]["name"] == f"ck-{name}-data-worker")
    assert job["spec"]["completions"] == 2
    (container,) = job["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value", "") for one in container["env"]}
    hosts = json.loads(variables["TF_CONFIG"].replace("$(CK_INDEX)", "1"))
    assert hosts["task"] == {"type": "data_worker", "index": 1}
    labels = [host.partition(".")[0] for host in hosts["cluster"]["data_worker"]]
    labels += [host.partition(".")[0] for host in hosts["cluster"]["data_dispatcher"]]
    assert all(len(label) <= 63 and "_" not in label for label in labels)
    assert variables["CLUSTER_KIT_TASK"] == "data_worker-$(CK_INDEX)"


def test_a_drill_may_break_them() -> None:
    assert {DISPATCHER, FIRST, SECOND} <= {*candidates("crash", MADE)}


def test_their_death_is_never_the_cause() -> None:
    told = Story.of(MADE).dies(8.0, FIRST, 137).ends(9, "chief-0", 1, "failed", "ValueError: x")
    verdict = judge(MADE, told.seen, "ended")
    assert (verdict.blame, verdict.message) == ("chief-0", "ValueError: x")


def test_one_that_came_back_or_was_stopped_has_no_such_note() -> None:
    story = Story.of(MADE).oom(5.0, FIRST).dies(5.1, FIRST, 137).start(5.5, FIRST)
    story = chief_succeeds(story.dies(6.0, SECOND, 143)).dies(60.5, FIRST, 137)
    story = story.ends(61, "evaluator-0", 0, "finished")
    ran_out = "ran out of memory (raise its `memory` limit, if any), and was started again"
    assert notes_of(MADE, story.seen) == [f"{FIRST} {ran_out}"]


def test_a_job_goes_on_without_them_and_ends_well() -> None:
    story = Story.of(MADE).oom(5.0, FIRST).dies(5.1, FIRST, 137).dies(6.0, DISPATCHER, 1)
    story = chief_succeeds(story).ends(61, "evaluator-0", 0, "finished")
    assert judge(MADE, story.seen, "ended").success
    assert notes_of(MADE, story.seen) == [
        f"{DISPATCHER} ended with exit code 1, and the job went on without it",
        f"{FIRST} ended with exit code 137 (out of memory: raise its `memory` limit, if any), "
        "and the job went on without it",
    ]
    assert story.seen.is_done(FIRST)
