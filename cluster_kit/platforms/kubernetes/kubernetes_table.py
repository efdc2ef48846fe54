"""The table `[kubernetes]` of a manifest, and what a cluster keeps of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import Field

from cluster_kit.manifest.field_types import Bytes, Strict, Text
from cluster_kit.manifest.schema import Manifest
from cluster_kit.platforms.kubernetes.kubernetes_names import kubernetes_name
from cluster_kit.resolved import Cluster

NAME = "kubernetes"
PVC = "pvc:"


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


@dataclass(frozen=True)
class KubernetesSettings:
    """What Kubernetes is told besides the job, as `[kubernetes]` of the manifest says.

    `claim` is the claim at OUTPUT, "" for an emptyDir; `storage` are the bytes of one of the job's
    own, None if it exists already. `claims` are (path in containers, claim, folder in it).
    `jobset`: the Jobs are parts of one JobSet.
    """

    namespace: str
    pull_policy: str
    pull_secret: str
    claim: str
    storage: int | None
    storage_class: str
    claims: tuple[tuple[str, str, str], ...]
    egress: bool
    queue: str
    jobset: bool = False


def table_of(manifest: Manifest) -> KubernetesTable:
    """Returns the table `[kubernetes]` of a manifest."""
    table = manifest.table(NAME)
    assert isinstance(table, KubernetesTable)
    return table


def settings_from(manifest: Manifest) -> Mapping[str, Any]:
    """Returns what the manifest's cluster keeps of the table, for `settings_of`."""
    table = table_of(manifest)
    own = table.output == "pvc"
    named = table.output.removeprefix(PVC) if table.output.startswith(PVC) else ""
    settings = KubernetesSettings(
        namespace=table.namespace,
        pull_policy=table.pull_policy,
        pull_secret=table.pull_secret,
        claim=f"{kubernetes_name(manifest.name)}-output" if own else named,
        storage=table.storage if own else None,
        storage_class=table.storage_class,
        claims=tuple(
            (target, claim, folder)
            for target, text in sorted(table.claims.items())
            for claim, _, folder in [text.partition("/")]
        ),
        egress=table.egress == "anywhere" and not manifest.network.internal,
        queue=table.queue,
        jobset=table.jobset,
    )
    return asdict(settings)


def settings_of(cluster: Cluster) -> KubernetesSettings:
    """Returns the settings of a cluster that was planned for Kubernetes."""
    claims = tuple((target, claim, folder) for target, claim, folder in cluster.settings["claims"])
    return KubernetesSettings(**{**cluster.settings, "claims": claims})
