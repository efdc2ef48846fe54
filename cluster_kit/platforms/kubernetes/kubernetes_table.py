"""The table `[kubernetes]` of a manifest, and rules for manifests on Kubernetes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Literal

from pydantic import Field

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.facts import Gpu, HostFacts
from cluster_kit.manifest.field_types import Bytes, Strict, Text
from cluster_kit.manifest.schema import DataTable, Limits, Manifest
from cluster_kit.plan.cluster_rules import too_many
from cluster_kit.plan.gpus import pool_sizes
from cluster_kit.plan.tasks import CONSTRAINT, PLENTY, of_other_nodes
from cluster_kit.platforms import refusals
from cluster_kit.platforms.kubernetes.kubernetes_settings import (
    KubernetesSettings,
    kubernetes_host,
    kubernetes_name,
)
from cluster_kit.platforms.refusals import HERE, REQUIRE, refused
from cluster_kit.resolved import Task
from cluster_kit.roles import CHIEF, PS, WORKER
from cluster_kit.util.toml_text import to_toml

NAME = "kubernetes"
PVC = "pvc:"


class KubernetesTable(Strict):
    """How the job runs on Kubernetes; another engine does not read it."""

    namespace: Text = Field(
        "", description="The namespace; if not given, that of kubectl's current context"
    )
    registry: Text = Field(
        "",
        description="The registry from which nodes pull images that the kit builds, e.g. "
        '`"ghcr.io/me"`; it is put before an image\'s name',
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When nodes pull the image"
    )
    pull_secret: Text = Field("", description="The name of the Secret with which nodes pull it")
    output: Text = Field(
        "pvc",
        description='The volume at `/output`: `"pvc"`, a new PersistentVolumeClaim; `"pvc:NAME"`, '
        'an existing one; or `"emptyDir"`, which is deleted with its pod',
    )
    storage: Bytes = Field("10g", validate_default=True, description="Size of the job's new claim")
    storage_class: Text = Field(
        "",
        description="StorageClass of the new claim, which must support ReadWriteMany; if not "
        "given, the default",
    )
    claims: dict[str, Text] = Field(
        default_factory=dict,
        description="Claims in place of this host's files, e.g. "
        '`{ "/data" = "images" }`, by their path in containers; `"images/2026"`: a folder in it',
    )
    egress: Literal["cluster", "anywhere"] = Field(
        "cluster", description="What tasks can connect to: only each other and DNS, or any address"
    )
    queue: Text = Field(
        "",
        description="A LocalQueue of Kueue, which starts each Job when the quota allows it; with "
        "`jobset`, all Jobs together",
    )
    jobset: bool = Field(
        False,
        description="Whether the Jobs are parts of one JobSet, which needs JobSet installed in "
        "the cluster",
    )


def settings_from(manifest: Manifest) -> Mapping[str, Any]:
    """Returns the table's values that the cluster keeps; `settings_of` reads them."""
    table = manifest.table(NAME, KubernetesTable)
    makes_claim = table.output == "pvc"
    named = table.output.removeprefix(PVC) if table.output.startswith(PVC) else ""
    settings = KubernetesSettings(
        namespace=table.namespace,
        pull_policy=table.pull_policy,
        pull_secret=table.pull_secret,
        claim=f"{kubernetes_name(manifest.name)}-output" if makes_claim else named,
        storage=table.storage if makes_claim else None,
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


OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""The name of a namespace, claim, Secret or StorageClass: a DNS subdomain."""
CLAIM = re.compile(rf"{OBJECT_NAME.pattern}(/[^/\0]+)*")
REGISTRY = re.compile(r"[A-Za-z0-9][\w.-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*/?", re.ASCII)
_IN_LIMITS: dict[str, tuple[str, HintText]] = {
    "gpus": (
        "the nodes decide which GPUs a task gets",
        ("remove it, or set a number for each worker: ", REQUIRE),
    ),
    "ports": (
        "a pod cannot publish ports on this host",
        "remove it, and use `kubectl port-forward POD PORT`",
    ),
    "bandwidth": ("limiting it needs rights that the restricted profile does not give", HERE),
    "ulimits": ("Kubernetes has no such limits: the nodes' container runtime sets them", HERE),
    "env_file": (
        "the file is not on the nodes",
        "write its names in `secrets`, or its values under `environment`",
    ),
}


def check_kubernetes(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of keys that Kubernetes does not support."""
    yield from _addresses(manifest)
    yield from _of_this_host(manifest)
    yield from _success(manifest)
    for table, limits in manifest.limits_by_table():
        if table.startswith("task."):
            yield from _of_one_task(table, limits)
        else:
            yield from _of_a_role(table, limits)
    yield from _table(manifest)


def _addresses(manifest: Manifest) -> Iterator[Problem]:
    rule = "on Kubernetes, a pod gets a new address at each start"
    hint = "write the task's name or {{ ps_hosts }}: on Kubernetes, tasks find each other by name"
    yield from refusals.addresses(manifest, rule, hint)
    rule_of_network = "tasks use the network of the Kubernetes cluster"
    yield from refusals.own_network(manifest, rule_of_network)
    if manifest.network.encrypted:
        yield refused(
            "network.encrypted",
            "true",
            f"{rule_of_network}: its network plugin decides whether traffic is encrypted",
        )


def _of_this_host(manifest: Manifest) -> Iterator[Problem]:
    rule = "the nodes limit this for all pods alike"
    yield from refusals.bounds(manifest, ("pids", "log_size"), rule)
    rule = "the nodes' GPUs are unknown here"
    yield from refusals.of_this_host(manifest, rule)
    if manifest.share_gpus:
        yield refused("share_gpus", "true", "on Kubernetes, containers cannot share a GPU")
    if not manifest.runs_in_kits_image:
        key = "build" if manifest.build else "image"
        rule = "the kit is mounted into such an image from this host, which the nodes cannot access"
        hint = "remove it: `requirements` adds packages to the kit's image"
        yield refused(key, to_toml(getattr(manifest, key)), rule, hint)
    if isinstance(manifest.data, DataTable):
        rule = "data is fetched on this host, which the nodes cannot access"
        hint = 'fetch it into a claim, and write `claims = { "/data" = "CLAIM" }`'
        yield refused("data.fetch", to_toml(manifest.data.fetch), rule, hint)
    if manifest.tensorboard:
        yield refused(
            "tensorboard",
            "true",
            "TensorBoard runs on this host, which does not have the job's output",
        )


def _success(manifest: Manifest) -> Iterator[Problem]:
    """Yields the problem of a JobSet that would fail although the job succeeded."""
    shares = manifest.success
    in_set = manifest.table(NAME, KubernetesTable).jobset and not manifest.count(CHIEF.name)
    if in_set and isinstance(shares, dict) and shares.get(WORKER.name, 1) < 1:
        rule = (
            "without a chief, a JobSet succeeds only if every worker does, so its status would "
            "contradict the run's"
        )
        hint: HintText = ("write ", Setting("success", "all"), ", or remove `jobset`")
        reads = ("engine", "kubernetes", CHIEF.name)
        yield Problem(f"success.{WORKER.name}", to_toml(shares[WORKER.name]), rule, hint, reads)


def _of_one_task(table: str, limits: Limits) -> Iterator[Problem]:
    rule = "all tasks of a role are one Indexed Job, in which all pods are alike"
    role = table.removeprefix("task.").rpartition("-")[0]
    hint = f"set it for all of them, under [role.{role}]"
    for key in sorted(limits.model_fields_set - {"ip"}):
        value = getattr(limits, key)
        text = "" if isinstance(value, dict) else to_toml(value)
        yield refused(f"{table}.{key}", text, rule, hint)


def _of_a_role(table: str, limits: Limits) -> Iterator[Problem]:
    yield from refusals.in_limits(table, limits, _IN_LIMITS)
    yield from refusals.in_clear(table, limits, "kubernetes.yaml")
    if limits.nodes is not None:
        parts = [CONSTRAINT.fullmatch(part.strip()) for part in limits.nodes.split(",")]
        if not all(part and (part[1] in OF_NODES or is_label(part[1])) for part in parts):
            rule = "must be `label==value` or `label!=value` with a label of Kubernetes nodes"
            hint = ("for example ", Setting(f"{table}.nodes", "disk==ssd"))
            yield refused(f"{table}.nodes", to_toml(limits.nodes), rule, hint)


def _table(manifest: Manifest) -> Iterator[Problem]:
    """Yields the problems in the table `[kubernetes]`."""
    table = manifest.table(NAME, KubernetesTable)
    for key in ("namespace", "pull_secret", "storage_class", "queue"):
        if (value := getattr(table, key)) and not OBJECT_NAME.fullmatch(value):
            rule = "not a valid Kubernetes name: a-z, 0-9, - and ."
            yield Problem(f"kubernetes.{key}", to_toml(value), rule, "use only these characters")
    if table.registry and not REGISTRY.fullmatch(table.registry):
        hint: HintText = ("for example ", Setting("kubernetes.registry", "ghcr.io/me"))
        rule = "not a valid beginning of an image's name"
        yield Problem("kubernetes.registry", to_toml(table.registry), rule, hint)
    if table.output not in ("pvc", "emptyDir"):
        if not (table.output.startswith("pvc:") and OBJECT_NAME.fullmatch(table.output[4:])):
            rule = 'must be "pvc", "pvc:NAME" or "emptyDir"'
            hint = ("for example ", Setting("kubernetes.output", "pvc"))
            yield Problem("kubernetes.output", to_toml(table.output), rule, hint)
    elif table.output == "emptyDir" and manifest.count(PS.name):
        rule = (
            "the chief and the parameter servers write a checkpoint together, so they need a "
            "shared directory"
        )
        hint = ("write ", Setting("kubernetes.output", "pvc"), ", or run without ps")
        yield Problem("kubernetes.output", '"emptyDir"', rule, hint, (PS.name, "engine"))
    for target, claim in table.claims.items():
        if not (target.startswith("/") and CLAIM.fullmatch(claim)) or "/../" in f"/{claim}/":
            rule = "must map a path in containers to a claim, or to a folder in a claim"
            hint = 'for example `claims = { "/data" = "images" }`'
            yield Problem(f"kubernetes.claims.{target}", to_toml(claim), rule, hint)


OF_NODES = {
    "node.hostname": "kubernetes.io/hostname",
    "node.platform.arch": "kubernetes.io/arch",
    "node.platform.os": "kubernetes.io/os",
}
"""Node properties of a swarm, and Kubernetes' labels for them."""


def is_label(name: str) -> bool:
    """Whether a name in the key `nodes` is a node label, not a swarm's name of a property."""
    return name.startswith(("node.labels.", "node.kubernetes.io/")) or not name.startswith(
        ("node.", "engine.")
    )


def requirement(constraint: str) -> tuple[str, str, str]:
    """Returns (label, sign, value) with the label of Kubernetes nodes, for one of `constraints`."""
    name, sign, value = constraint.split(" ")
    return OF_NODES.get(name, name.removeprefix("node.labels.")), sign, value


USER = "1000:1000"
"""The user of all tasks, since the restricted profile does not allow root."""


def of_pods(manifest: Manifest, facts: HostFacts) -> HostFacts:
    """Returns the facts to plan with: the user, and enough GPUs for the workers."""
    facts, wanted = of_other_nodes(facts), 0
    if manifest.gpus == "require" and not too_many(manifest):
        wanted = sum(pool_sizes(manifest).values()) * (manifest.gpus_per_worker or 1)
    gpus = tuple(Gpu(index, "", "GPU", PLENTY) for index in range(wanted))
    return replace(facts, user=USER, gpus=gpus, gpus_taken=(), gpu_refusal="", gpu_driver="nvidia")


def of_indexed_jobs(manifest: Manifest, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """Returns the tasks with their pods' names, and GPUs numbered from 0: nodes choose GPUs."""
    in_set = manifest.table(NAME, KubernetesTable).jobset
    return tuple(
        replace(
            task,
            host=kubernetes_host(manifest.name, task.role, task.index, in_set=in_set),
            gpus=tuple(map(str, range(len(task.gpus)))),
            gpus_promised=tuple(
                replace(gpu, name=f"GPU {number}", pci="", uuid="")
                for number, gpu in enumerate(task.gpus_promised)
            ),
        )
        for task in tasks
    )


def image_name(manifest: Manifest, image: str) -> str:
    """Returns the image's name for the nodes: with the registry, if the kit builds it."""
    prefix = manifest.table(NAME, KubernetesTable).registry.rstrip("/")
    return f"{prefix}/{image}" if prefix and manifest.runs_in_kits_image else image


def local_name(manifest: Manifest, image: str) -> str:
    """Returns the name of an image on this host, where the kit builds it: without the registry."""
    return image.removeprefix(f"{manifest.table(NAME, KubernetesTable).registry.rstrip('/')}/")
