"""The API server's rules for a JobSet, written from the types of its API.

github.com/kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: names of fields, their
types, enums, limits, and required fields. The Jobs' own specs are left out: they belong to
batch/v1, which has published schemas. Like `kubectl apply`, the schema refuses unknown fields
(`additionalProperties`).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
FLAG: Schema = {"type": "boolean"}
MARKS: Schema = {"type": "object", "additionalProperties": TEXT}
INT32: Schema = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}


def _of(required: tuple[str, ...], **fields: Schema) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def _enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _list(items: Schema, longest: int | None = None) -> Schema:
    most = {} if longest is None else {"maxItems": longest}
    return {"type": "array", "items": items, **most}


_RULE = _of(
    ("name", "action"),
    name={"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    action=_enum("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"),
    onJobFailureReasons=TEXTS,
    targetReplicatedJobs=TEXTS,
)
_REPLICATED = _of(
    ("name", "template"),
    name=TEXT,
    groupName=TEXT,
    replicas=INT32,
    template=_of(
        (),
        metadata=_of((), labels=MARKS, annotations=MARKS, name=TEXT, namespace=TEXT),
        spec={"type": "object", "required": ["template"]},
    ),
    dependsOn=_list(
        _of(("name", "status"), name=TEXT, status=_enum("Ready", "Complete")), longest=1
    ),
)
_SPEC = _of(
    (),
    replicatedJobs=_list(_REPLICATED),
    network=_of((), enableDNSHostnames=FLAG, subdomain=TEXT, publishNotReadyAddresses=FLAG),
    successPolicy=_of(("operator",), operator=_enum("All", "Any"), targetReplicatedJobs=TEXTS),
    failurePolicy=_of(
        (),
        maxRestarts=INT32,
        restartStrategy=_enum("Recreate", "BlockingRecreate"),
        rules=_list(_RULE),
    ),
    startupPolicy=_of(("startupPolicyOrder",), startupPolicyOrder=_enum("AnyOrder", "InOrder")),
    suspend=FLAG,
    coordinator=_of(("replicatedJob",), replicatedJob=TEXT, jobIndex=INT32, podIndex=INT32),
    managedBy=TEXT,
    ttlSecondsAfterFinished={**INT32, "minimum": 0},
)
JOBSET: Schema = _of(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion=_enum("jobset.x-k8s.io/v1alpha2"),
    kind=_enum("JobSet"),
    metadata=_of(("name",), name=TEXT, namespace=TEXT, labels=MARKS, annotations=MARKS),
    spec=_SPEC,
)
