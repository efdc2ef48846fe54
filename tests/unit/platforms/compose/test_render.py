"""The compose file: the same cluster gives the same bytes, and every text is unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.platforms.compose.compose_file import render, render_hidden
from cluster_kit.platforms.container import plan_hash
from cluster_kit.platforms.rendered_file import quote
from cluster_kit.resolved import Mount
from tests.make import cluster, gpus, host, parse_compose
from tests.unit.manifests import texts
from tests.unit.platforms.compose.parsed import service, services


@given(texts)
def test_an_argument_is_read_back_unchanged(text: str) -> None:
    made = cluster(args=[text, "last"])
    assert service(made, "chief-0")["command"] == ["run", "classifier", text, "last"]


@given(texts)
def test_an_environment_value_is_read_back_unchanged(text: str) -> None:
    made = cluster(role={"ps": {"environment": {"VALUE": text}}})
    assert service(made, "ps-1")["environment"]["VALUE"] == text
    assert "VALUE" not in service(made, "chief-0")["environment"]


@given(texts)
def test_a_mount_is_read_back_unchanged(text: str) -> None:
    made = replace(cluster(), mounts=(Mount(f"/home/{text}", "/program"),))
    volume = service(made, "chief-0")["volumes"][-1]
    assert (volume["source"], volume["read_only"]) == (f"/home/{text}", True)


@given(texts)
def test_a_quoted_text_is_one_line(text: str) -> None:
    assert len(quote(text).splitlines()) == 1


@pytest.mark.parametrize("name", ["on", "123", "null", "0x10", "1e3", "no", "y"])
def test_a_name_that_yaml_reads_as_another_type_stays_a_name(name: str) -> None:
    parsed = parse_compose(render(cluster(name=name)))
    assert parsed["name"] == f"cluster-kit-{name}"
    assert parsed["services"]["chief-0"]["labels"]["cluster-kit.cluster"] == name
    assert parsed["services"]["chief-0"]["container_name"] == f"{name}-chief-0"


@pytest.mark.parametrize("name", ["null", "true", "on", "y", "1e3", "0x1f", "0o7", "2001-01-01"])
def test_a_sidecar_with_such_a_name_is_a_service(name: str) -> None:
    keys = {"command": ["ls"], "environment": {"API_TOKEN": "hidden"}}
    made = cluster(sidecar={name: keys})
    parsed = parse_compose(render(made))["services"]
    assert parsed[name]["hostname"] == name
    assert parsed[name]["extends"]["service"] == name
    assert parsed["chief-0"]["depends_on"] == [name]
    assert list(parse_compose(render_hidden(made))["services"]) == [name]


def test_a_source_with_a_line_break_stays_inside_its_comment() -> None:
    text = render(replace(cluster(), source="a\nname: evil/b.toml"))
    assert all(line.startswith("#") for line in text.splitlines()[:3])
    assert parse_compose(text)["name"] == "cluster-kit-demo"


def test_the_header_names_generator_source_command_and_hash() -> None:
    made = cluster()
    head = render(made).splitlines()[:3]
    assert head[0].startswith("# cluster-kit ")
    assert "compose/demo.toml" in head[0]
    assert "`cluster-kit render demo`" in head[1]
    assert head[2] == f"# plan {plan_hash(made)}"


@given(st.integers(1, 5), st.integers(1, 3))
def test_the_same_cluster_gives_the_same_bytes(workers: int, ps: int) -> None:
    keys: dict[str, Any] = {"worker": workers, "ps": ps}
    assert render(cluster(**keys)) == render(cluster(**keys))


def test_the_order_of_environment_variables_in_the_manifest_changes_nothing() -> None:
    one = {"worker": {"environment": {"A": "1", "B": "2"}}}
    other = {"worker": {"environment": {"B": "2", "A": "1"}}}
    assert render(cluster(role=one)) == render(cluster(role=other))


def test_another_plan_has_another_hash() -> None:
    assert plan_hash(cluster(worker=2)) != plan_hash(cluster(worker=3))


def test_a_thousand_tasks_render() -> None:
    made = cluster(worker=799, ps=200)
    text = render(made)
    assert text.count("    container_name: ") == len(made.tasks) == 1000


def test_a_tasks_limits_override_its_roles() -> None:
    made = cluster(
        role={"worker": {"cpus": 1, "memory": "1g", "environment": {"A": "role", "B": "role"}}},
        task={"worker-1": {"cpus": 0.5, "environment": {"A": "task"}}},
    )
    first, second = service(made, "worker-0"), service(made, "worker-1")
    assert first["deploy"]["resources"]["limits"] == {
        "cpus": "1",
        "memory": f"{2**30}b",
        "pids": 4096,
    }
    assert second["deploy"]["resources"]["limits"] == {
        "cpus": "0.5",
        "memory": f"{2**30}b",
        "pids": 4096,
    }
    assert (first["environment"]["A"], second["environment"]["A"]) == ("role", "task")
    assert second["environment"]["B"] == "role"
    assert "deploy" not in service(made, "ps-0")


def test_a_gpu_is_reserved_by_its_id_and_other_tasks_see_none() -> None:
    made = cluster(host(gpus=gpus(2)), gpus="auto", evaluator=1)
    worker = service(made, "worker-1")
    (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "device_ids": ["1"], "capabilities": ["gpu"]}
    assert "CUDA_VISIBLE_DEVICES" not in worker["environment"]
    for name in ("chief-0", "ps-0", "ps-1", "evaluator-0"):
        assert service(made, name)["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"
        assert "deploy" not in service(made, name)
    assert not any("gpus" in one for one in services(made).values())


def test_the_cluster_bypasses_proxies_whatever_the_manifest_adds() -> None:
    made = cluster(role={"worker": {"environment": {"no_proxy": "intranet.example"}}})
    exempt = service(made, "worker-0")["environment"]["no_proxy"].split(",")
    assert {"intranet.example", "localhost", str(made.subnet)} <= set(exempt)
    assert (
        service(made, "chief-0")["environment"]["NO_PROXY"] == f"localhost,127.0.0.1,{made.subnet}"
    )


def test_names_bypass_proxies_if_tasks_are_addressed_by_name() -> None:
    exempt = service(cluster(addressing="name"), "chief-0")["environment"]["no_proxy"]
    assert {"chief-0", "worker-1", "ps-0"} <= set(exempt.split(","))


def test_a_task_with_a_bandwidth_may_configure_its_interface_and_knows_its_user() -> None:
    role = {"worker": {"bandwidth": "100mbit"}, "ps": {"bandwidth": "0.5 Gbit"}}
    made = cluster(role=role, task={"worker-1": {"bandwidth": "1.5mbit"}})
    bits = {"worker-0": "100000000", "worker-1": "1500000", "ps-0": "500000000"}
    for name, bps in bits.items():
        one = service(made, name)
        assert one["user"] == "0:0"
        assert one["cap_add"] == ["NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL"]
        assert one["cap_drop"] == ["ALL"]
        assert one["environment"]["CLUSTER_KIT_BANDWIDTH_BPS"] == bps
        assert one["environment"]["CLUSTER_KIT_USER"] == "1000:1000"
    chief = service(made, "chief-0")
    assert chief["user"] == "1000:1000"
    assert "cap_add" not in chief
    assert "CLUSTER_KIT_BANDWIDTH_BPS" not in chief["environment"]


def test_every_container_is_confined_and_publishes_nothing() -> None:
    for one in services(cluster(evaluator=1)).values():
        assert one["init"] is True
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert one["user"] == "1000:1000"
        assert "ports" not in one
        assert "cap_add" not in one


def test_the_use_of_host_resources_is_bounded() -> None:
    for one in services(cluster()).values():
        assert (one["pids_limit"], one["tmpfs"]) == (4096, [f"/tmp:mode=1777,size={4 << 30}"])
        options = {"max-size": str(128 << 20), "max-file": "2"}
        assert one["logging"] == {"driver": "json-file", "options": options}
    unbounded = {"pids": 0, "tmp_size": 0, "log_size": 0}
    for one in services(cluster(container=unbounded)).values():
        assert one["tmpfs"] == ["/tmp:mode=1777"]
        assert not {"pids_limit", "logging"} & one.keys()


def test_limits_of_processes_are_the_same_in_both_places() -> None:
    """Compose 2.26 refuses different ones as "distinct values"."""
    limited = {"role": {"ps": {"memory": "2g"}, "worker": {"cpus": 1}}}
    for one in services(cluster(**limited)).values():
        if "deploy" in one:
            assert one["deploy"]["resources"]["limits"]["pids"] == one["pids_limit"] == 4096
    unbounded = services(cluster(container={"pids": 0}, **limited))["ps-0"]
    assert unbounded["deploy"]["resources"]["limits"] == {"memory": f"{2 << 30}b"}


def test_deadlines_reach_the_tasks_exactly() -> None:
    made = cluster(deadline={"start": "90s", "job": 1234567.5, "evaluator_grace": "2m"})
    environment = service(made, "ps-0")["environment"]
    assert environment["CLUSTER_KIT_START_DEADLINE_S"] == "90"
    assert environment["CLUSTER_KIT_JOB_DEADLINE_S"] == "1234567.5"
    assert environment["CLUSTER_KIT_EVALUATOR_GRACE_S"] == "120"
