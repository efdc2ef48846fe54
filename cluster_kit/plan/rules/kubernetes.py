"""Rules: what Kubernetes can say of a manifest, and of its table `[kubernetes]`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster_kit.manifest.data import DataTable
from cluster_kit.manifest.limits import Limits
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.arguments import names_in
from cluster_kit.plan.nodes import CONSTRAINT, OF_NODES, is_label
from cluster_kit.problem import Cure, Problem, Setting
from cluster_kit.roles import PS
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.toml_text import to_toml

HERE = ("take it out, or run it on this host: ", Setting("engine", "compose"))
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Of a namespace, a claim, a Secret or a StorageClass: a DNS subdomain."""
CLAIM = re.compile(rf"{NAME.pattern}(/[^/\0]+)*")
REGISTRY = re.compile(r"[A-Za-z0-9][\w.-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*/?", re.ASCII)
_IN_LIMITS = {
    "gpus": "a node decides which GPUs a task gets",
    "ports": "a pod publishes nothing on this host",
    "bandwidth": "shaping it takes rights that the restricted profile does not give",
    "ulimits": "Kubernetes has no such limits: those of the nodes' container runtime hold",
    "env_file": "the nodes do not have the file",
}
_INSTEAD: dict[str, Cure] = {
    "gpus": ("take it out, or give each worker some: ", Setting("gpus", "require")),
    "ports": "take it out: `kubectl port-forward POD PORT` does that while it runs",
    "env_file": "write its names in `secrets`, or its values under `environment`",
}


def check_kubernetes(manifest: Manifest) -> Iterator[Problem]:
    """Yields what Kubernetes cannot say."""
    yield from _addresses(manifest)
    yield from _of_this_host(manifest)
    for table, limits in manifest.limits_by_table():
        if table.startswith("task."):
            yield from _of_one_task(table, limits)
        else:
            yield from _of_a_role(table, limits)
    yield from _table(manifest)


def _addresses(manifest: Manifest) -> Iterator[Problem]:
    rule = "Kubernetes gives a pod another address at each start"
    if manifest.addressing == "ip" and "addressing" in manifest.model_fields_set:
        yield _refused("addressing", '"ip"', rule, ("write ", Setting("addressing", "name")))
    for number, argument in enumerate(manifest.args):
        if "ip" in names_in([argument]):
            cure = "write the task's name or a {{ ps_hosts }}: tasks are found by names there"
            yield _refused(f"args.{number}", to_toml(argument), rule, cure)
    own = "the network is that of the Kubernetes cluster"
    if manifest.subnet != "auto":
        yield _refused("subnet", to_toml(manifest.subnet), own)
    if manifest.network.mtu is not None:
        yield _refused("network.mtu", str(manifest.network.mtu), own)
    if manifest.network.encrypted:
        yield _refused("network.encrypted", "true", f"{own}: its network plugin encrypts, or not")


def _of_this_host(manifest: Manifest) -> Iterator[Problem]:
    if manifest.gpus not in ("none", "require"):
        rule = "whether its nodes have GPUs, and which, is not known here"
        cure: Cure = ("write ", Setting("gpus", "require"), " or ", Setting("gpus", "none"))
        yield _refused("gpus", to_toml(manifest.gpus), rule, cure)
    if manifest.share_gpus:
        yield _refused("share_gpus", "true", "a container there has its GPUs alone")
    if not manifest.runs_in_kits_image:
        key = "build" if manifest.build else "image"
        rule = "the kit is mounted into such an image from this host, which nodes do not see"
        cure = "take it out: `requirements` adds packages to the kit's own image"
        yield _refused(key, to_toml(getattr(manifest, key)), rule, cure)
    if isinstance(manifest.data, DataTable):
        rule = "data are fetched on this host, which the nodes do not see"
        cure = 'fetch them into a claim, and write `claims = { "/data" = "CLAIM" }`'
        yield _refused("data.fetch", to_toml(manifest.data.fetch), rule, cure)
    if manifest.tensorboard:
        yield _refused("tensorboard", "true", "TensorBoard runs on this host, beside its output")
    for name in manifest.sidecar:
        rule = "the kit runs sidecars beside tasks of one host only"
        yield _refused(f"sidecar.{name}", "", rule)


def _of_one_task(table: str, limits: Limits) -> Iterator[Problem]:
    rule = "all tasks of a role are one Indexed Job, which gives each of them the same"
    role = table.removeprefix("task.").rpartition("-")[0]
    for key in sorted(limits.model_fields_set):
        value = getattr(limits, key)
        text = "" if isinstance(value, dict) else to_toml(value)
        cure = "take it out" if key == "ip" else f"write it under [role.{role}], for all of them"
        yield _refused(f"{table}.{key}", text, rule, cure)


def _of_a_role(table: str, limits: Limits) -> Iterator[Problem]:
    for key, rule in _IN_LIMITS.items():
        if value := getattr(limits, key):
            text = "" if isinstance(value, dict) else to_toml(value)
            yield _refused(f"{table}.{key}", text, rule, _INSTEAD.get(key, HERE))
    for key in filter(looks_secret, limits.environment):
        rule = "it looks like a secret, and kubernetes.yaml would have it in clear"
        instead = f'write `secrets = ["{key}"]` there instead'
        yield _refused(f"{table}.environment.{key}", "", rule, instead)
    if limits.nodes is not None:
        parts = [CONSTRAINT.fullmatch(part.strip()) for part in limits.nodes.split(",")]
        if not all(part and (part[1] in OF_NODES or is_label(part[1])) for part in parts):
            rule = "not `label==value` or `label!=value` with a label of Kubernetes nodes"
            cure = ("for example ", Setting(f"{table}.nodes", "disk==ssd"))
            yield _refused(f"{table}.nodes", to_toml(limits.nodes), rule, cure)


def _table(manifest: Manifest) -> Iterator[Problem]:
    """Yields what is wrong in `[kubernetes]`."""
    table = manifest.kubernetes
    for key in ("namespace", "pull_secret", "storage_class", "queue"):
        if (value := getattr(table, key)) and not NAME.fullmatch(value):
            rule = "not a name of Kubernetes: a-z, 0-9, - and ."
            yield Problem(f"kubernetes.{key}", to_toml(value), rule, "mend it")
    if table.registry and not REGISTRY.fullmatch(table.registry):
        cure: Cure = ("for example ", Setting("kubernetes.registry", "ghcr.io/me"))
        rule = "not the beginning of an image's name"
        yield Problem("kubernetes.registry", to_toml(table.registry), rule, cure)
    if table.output not in ("pvc", "emptyDir"):
        if not (table.output.startswith("pvc:") and NAME.fullmatch(table.output[4:])):
            rule = 'must be "pvc", "pvc:NAME" or "emptyDir"'
            cure = ("for example ", Setting("kubernetes.output", "pvc"))
            yield Problem("kubernetes.output", to_toml(table.output), rule, cure)
    elif table.output == "emptyDir" and manifest.count(PS.name):
        rule = "chief and parameter servers write one checkpoint together: they share a directory"
        cure = ("write ", Setting("kubernetes.output", "pvc"), ", or run without ps")
        yield Problem("kubernetes.output", '"emptyDir"', rule, cure, (PS.name, "engine"))
    for target, claim in table.claims.items():
        if not (target.startswith("/") and CLAIM.fullmatch(claim)) or "/../" in f"/{claim}/":
            rule = "must be a path in containers, and a claim or a folder in one"
            cure = 'for example `claims = { "/data" = "images" }`'
            yield Problem(f"kubernetes.claims.{target}", to_toml(claim), rule, cure)


def _refused(place: str, value: str, rule: str, cure: Cure = HERE) -> Problem:
    return Problem(place, value, rule, cure, ("engine",))
