"""A JobSet matches its API, and its Jobs the published schemas of Kubernetes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from tests.golden.jobset_schema import JOBSET
from tests.golden.test_golden import HERE, rendered_anew
from tests.golden.test_kubernetes import LARGEST_OBJECT, VERSIONS, read, rendered
from tests.kubelet import sets

Object = dict[str, Any]
ENDLESS = 2**31 - 1


def one_of(found: list[Object], kind: str) -> Object:
    (only,) = (one for one in found if one["kind"] == kind)
    return only


GOLDEN = read(rendered_anew(HERE / "jobset.toml"))
PLAIN = rendered(worker=2, ps=1, evaluator=1, kubernetes={"jobset": True})
ALONE = rendered(chief=0, worker=3, ps=0, kubernetes={"output": "emptyDir", "jobset": True})
ALL = pytest.mark.parametrize("found", [GOLDEN, PLAIN, ALONE], ids=["golden", "plain", "alone"])


@ALL
def test_a_jobset_and_its_jobs_match_the_schemas(found: list[Object]) -> None:
    made = one_of(found, "JobSet")
    jsonschema.validate(made, JOBSET)
    assert sets.refused(made) == ""
    others = [one for one in found if one["kind"] != "JobSet"]
    assert "Job" not in {one["kind"] for one in others}
    for version in VERSIONS:
        for one in [*others, *sets.jobs_of(made)]:
            kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicatedJob"), []),
        (("spec", "successPolicy", "operator"), "Leader"),
        (("spec", "network", "subDomain"), "a"),
        (("spec", "failurePolicy", "maxRestarts"), "0"),
    ],
)
def test_the_schema_refuses_unknown_fields(path: tuple[str, ...], value: object) -> None:
    wrong = json.loads(json.dumps(one_of(PLAIN, "JobSet")))
    at = wrong
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, JOBSET)


def test_no_pod_has_a_name_that_the_jobset_refuses() -> None:
    """The longest possible: `ck-` and 40, the role, both indexes, and the suffix of a pod."""
    name, many = "a" * 40, 200
    found = rendered(name=name, worker=many, ps=1, evaluator=1, kubernetes={"jobset": True})
    assert sets.refused(one_of(found, "JobSet")) == ""
    with_label = [job["metadata"]["name"] for job in sets.jobs_of(one_of(found, "JobSet"))]
    assert f"ck-{name}-worker-0" in with_label
    text = one_of(found, "ConfigMap")["data"]["cluster.json"]
    assert f"ck-{name}-worker-0-{many - 1}.ck-{name}:2222" in text


def test_a_jobset_ends_with_its_leader_and_the_evaluators_last_score() -> None:
    made = one_of(PLAIN, "JobSet")
    leader, evaluator, worker = (f"ck-demo-{r}-0" for r in ("chief", "evaluator", "worker"))
    assert sets.end_of(made, {worker: "Complete"}) == ""
    assert sets.end_of(made, {leader: "Complete"}) == "", "the evaluator scores the last model"
    assert sets.end_of(made, {leader: "Complete", evaluator: "Complete"}) == "Completed"
    assert sets.end_of(made, {leader: "Failed"}) == "Failed"
    assert sets.end_of(one_of(ALONE, "JobSet"), {"ck-demo-worker-0": "Complete"}) == "Completed"


def test_only_the_leaders_job_can_fail_since_that_ends_the_jobset() -> None:
    def limits(found: list[Object]) -> dict[str, tuple[int | None, int | None]]:
        jobs = sets.jobs_of(one_of(found, "JobSet"))
        return {
            job["metadata"]["labels"]["cluster-kit.role"]: (
                job["spec"].get("backoffLimit"),
                job["spec"].get("backoffLimitPerIndex"),
            )
            for job in jobs
        }

    others = dict.fromkeys(("worker", "ps", "evaluator"), (None, ENDLESS))
    assert limits(PLAIN) == {"chief": (0, None), **others}
    assert limits(ALONE) == {"worker": (None, 3)}


def test_a_queue_admits_the_jobset_and_none_of_its_jobs() -> None:
    made = one_of(GOLDEN, "JobSet")
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert made["spec"]["suspend"] is True
    assert {job["spec"]["suspend"] for job in sets.jobs_of(made)} == {True}, "by its controller"
    templates = [one["template"] for one in made["spec"]["replicatedJobs"]]
    assert all("suspend" not in one["spec"] for one in templates)
    assert "kueue" not in json.dumps(templates)
    assert "suspend" not in one_of(PLAIN, "JobSet")["spec"]


def test_pods_are_selected_by_the_service_and_the_network_policy() -> None:
    for found in (GOLDEN, PLAIN, ALONE):
        own = one_of(found, "Service")["spec"]["selector"]
        policy = one_of(found, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
        made = one_of(found, "JobSet")
        assert made["spec"]["network"]["subdomain"] == one_of(found, "Service")["metadata"]["name"]
        for job in sets.jobs_of(made):
            marks = job["spec"]["template"]["metadata"]["labels"]
            assert own.items() | policy.items() <= marks.items()


def test_a_large_jobset_is_within_etcds_limit() -> None:
    found = rendered(worker=500, ps=50, evaluator=1, kubernetes={"jobset": True})
    assert max(len(json.dumps(one)) for one in found) < LARGEST_OBJECT
    assert len(json.dumps(one_of(found, "JobSet"))) < 32768
