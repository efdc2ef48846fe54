"""The files match Kubernetes' published schemas in three versions, and its limits."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from cluster_kit.platforms.platform import platform_of
from tests.golden.test_golden import HERE, rendered_anew
from tests.make import cluster

VERSIONS = ("1.33", "1.35", "1.37")
"""The first version with stable retries by index, and newer ones."""
LARGEST_OBJECT, LARGEST_CONFIG_MAP = 1_500_000, 2**20
"""The maximum bytes of a request to etcd, and of a ConfigMap's data."""
REFERENCE = re.compile(r"(?<!\$)(?:\$\$)*\$\(([^)]*)\)")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.load_all(text, Loader=_LOADER) if one]


def rendered(**keys: Any) -> list[dict[str, Any]]:
    return read(platform_of("kubernetes").render(cluster(engine="kubernetes", **keys)))


GOLDEN = read(rendered_anew(HERE / "kubernetes.toml"))
PLAIN = rendered(worker=2, ps=1, evaluator=1)
ALONE = rendered(chief=0, worker=3, ps=0, kubernetes={"output": "emptyDir", "egress": "anywhere"})


@pytest.fixture(autouse=True, scope="module")
def schemas_read_once() -> Iterator[None]:
    """Reads the schemas once: they have megabytes, and would be read for each object."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("schema_contents", "all_versions"):
            patch.setattr(utils, name, functools.cache(getattr(utils, name)))
        yield


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("found", [GOLDEN, PLAIN, ALONE], ids=["golden", "plain", "alone"])
def test_every_object_matches_the_schemas_of_a_version(
    found: list[dict[str, Any]], version: str
) -> None:
    for one in found:
        kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_refuse_an_unknown_key() -> None:
    (job, *_) = (one for one in PLAIN if one["kind"] == "Job")
    wrong = {**job, "spec": {**job["spec"], "backofLimit": 1}}
    with pytest.raises(kubernetes_validate.ValidationError, match="backofLimit"):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


@pytest.mark.parametrize("found", [GOLDEN, PLAIN, ALONE], ids=["golden", "plain", "alone"])
def test_variables_come_after_those_that_they_use(found: list[dict[str, Any]]) -> None:
    for job in (one for one in found if one["kind"] == "Job"):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        before: set[str] = set()
        for variable in container["env"]:
            assert set(REFERENCE.findall(variable.get("value", ""))) <= before
            before.add(variable["name"])
        for argument in container["args"]:
            assert set(REFERENCE.findall(argument)) <= before


def test_no_name_is_longer_than_a_dns_label() -> None:
    name = "a" * 40
    found = rendered(name=name, worker=500, ps=500, evaluator=1)
    for one in found:
        assert len(one["metadata"]["name"]) <= 63, one["metadata"]["name"]
        if one["kind"] == "Job":
            host = f"{one['metadata']['name']}-{one['spec']['completions'] - 1}"
            assert len(f"{host}-12345") <= 63
            assert one["spec"]["template"]["spec"]["subdomain"] == f"ck-{name}"


def test_a_large_cluster_names_every_task_once() -> None:
    found = rendered(worker=500, ps=50, evaluator=1)
    sizes = {one["metadata"]["name"]: len(json.dumps(one)) for one in found}
    assert max(sizes.values()) < LARGEST_OBJECT
    (config,) = (one for one in found if one["kind"] == "ConfigMap")
    assert len(config["data"]["cluster.json"]) < LARGEST_CONFIG_MAP
    text = json.dumps(found)
    assert text.count("ck-demo-worker-499.ck-demo:2222") == 1
    jobs = [one for one in found if one["kind"] == "Job"]
    assert [job["spec"]["completions"] for job in jobs] == [1, 500, 50, 1]
    assert max(len(json.dumps(job)) for job in jobs) < 8192


def test_pods_meet_the_restricted_profile() -> None:
    for job in (one for one in GOLDEN + PLAIN if one["kind"] == "Job"):
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        allowed = {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
        assert {key for one in pod["volumes"] for key in one} - {"name"} <= allowed
        mounted = [one["name"] for one in container["volumeMounts"]]
        assert {one["name"] for one in pod["volumes"]} == set(mounted)


def test_the_leader_is_not_restarted_and_others_are() -> None:
    jobs = {o["metadata"]["name"]: o["spec"] for o in PLAIN if o["kind"] == "Job"}
    assert jobs["ck-demo-chief"]["backoffLimit"] == 0
    assert "backoffLimitPerIndex" not in jobs["ck-demo-chief"]
    for role in ("worker", "ps", "evaluator"):
        assert jobs[f"ck-demo-{role}"]["backoffLimitPerIndex"] == 3
    assert {spec["completionMode"] for spec in jobs.values()} == {"Indexed"}
    assert all(spec["activeDeadlineSeconds"] > 3600 for spec in jobs.values())


def test_only_the_clusters_own_pods_may_connect() -> None:
    (policy,) = (one["spec"] for one in PLAIN if one["kind"] == "NetworkPolicy")
    own = {"podSelector": {"matchLabels": {"cluster-kit.cluster": "demo"}}}
    assert policy["ingress"] == [{"from": [own]}]
    assert policy["egress"][0] == {"to": [own]}
    assert {port["port"] for port in policy["egress"][1]["ports"]} == {53}
    (policy,) = (one["spec"] for one in ALONE if one["kind"] == "NetworkPolicy")
    assert policy["egress"] == [{}]
    (policy,) = (one["spec"] for one in GOLDEN if one["kind"] == "NetworkPolicy")
    assert len(policy["egress"]) == 2


def test_a_worker_that_has_failed_for_good_leaves_the_others_running() -> None:
    """A Job whose limit is not by index ends all its pods."""
    made = cluster(engine="kubernetes", chief=0, ps=0, worker=4, retries=0, success={"worker": 0.5})
    documents = yaml.safe_load_all(platform_of("kubernetes").render(made))
    (spec,) = (one["spec"] for one in documents if one["kind"] == "Job")
    assert spec["backoffLimitPerIndex"] == 0 and "backoffLimit" not in spec
