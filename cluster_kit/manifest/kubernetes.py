"""The table `[kubernetes]`: what a Kubernetes cluster has to be told besides the job. Pure."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cluster_kit.manifest.field_types import Bytes, Strict, Text


class KubernetesTable(Strict):
    """How the job runs on Kubernetes; another engine does not read it."""

    namespace: Text = Field(
        "", description="The namespace; if not given, that of kubectl's current context"
    )
    registry: Text = Field(
        "",
        description="What is put before the name of an image that the kit builds, e.g. "
        '`"ghcr.io/me"`: nodes take it from there',
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When nodes pull the image"
    )
    pull_secret: Text = Field("", description="The name of the Secret with which nodes pull it")
    output: Text = Field(
        "pvc",
        description='What is at `/output`: `"pvc"`, a PersistentVolumeClaim of the job\'s own; '
        '`"pvc:NAME"`, one that is there; or `"emptyDir"`, which goes with each pod',
    )
    storage: Bytes = Field(
        "10g", validate_default=True, description="Size of a claim of the job's own"
    )
    storage_class: Text = Field(
        "", description="Its StorageClass, which needs ReadWriteMany; if not given, the default"
    )
    claims: dict[str, Text] = Field(
        default_factory=dict,
        description="Claims in place of this host's files, e.g. "
        '`{ "/data" = "images" }`, by their path in containers; `"images/2026"`: a folder in it',
    )
    egress: Literal["cluster", "anywhere"] = Field(
        "cluster", description="Whom tasks may connect to: each other and DNS only, or anyone"
    )
    queue: Text = Field(
        "",
        description="A LocalQueue of Kueue, which starts each Job when there is room for it; with "
        "`jobset` all of them together",
    )
    jobset: bool = Field(
        False,
        description="Whether the Jobs are parts of one JobSet, for which JobSet has to be "
        "installed there",
    )
