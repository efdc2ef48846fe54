"""What is planned for the nodes of a Kubernetes cluster, which this host does not know. Pure."""

from __future__ import annotations

from dataclasses import replace

from cluster_kit.facts import Gpu, HostFacts
from cluster_kit.labels import kubernetes_name
from cluster_kit.manifest.schema import Manifest
from cluster_kit.parts import OnKubernetes
from cluster_kit.plan.nodes import PLENTY
from cluster_kit.plan.rules.counts import too_many
from cluster_kit.resolved import Task
from cluster_kit.roles import WORKER

USER = "1000:1000"
"""Whom all tasks run as: the restricted profile allows no root, whoever renders the file."""
PVC = "pvc:"


def of_pods(manifest: Manifest, facts: HostFacts) -> HostFacts:
    """Returns the facts to plan with: a user, and GPUs for every worker that is to have some."""
    wanted = 0
    if manifest.gpus == "require" and not too_many(manifest):
        wanted = manifest.count(WORKER.name) * (manifest.gpus_per_worker or 1)
    gpus = tuple(Gpu(index, "", "GPU", PLENTY) for index in range(wanted))
    return replace(facts, user=USER, gpus=gpus, gpus_taken=(), gpu_refusal="", gpu_driver="nvidia")


def alike(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """Returns the tasks with each one's GPUs numbered from 0: which ones, a node decides."""
    return tuple(
        replace(
            task,
            gpus=tuple(map(str, range(len(task.gpus)))),
            gpus_promised=tuple(
                replace(gpu, name=f"GPU {number}", pci="", uuid="")
                for number, gpu in enumerate(task.gpus_promised)
            ),
        )
        if task.gpus
        else task
        for task in tasks
    )


def image_name(manifest: Manifest, image: str) -> str:
    """Returns the image's name for the nodes: with the registry, if the kit builds it."""
    prefix = manifest.kubernetes.registry.rstrip("/")
    if manifest.engine != "kubernetes" or not prefix or not manifest.runs_in_kits_image:
        return image
    return f"{prefix}/{image}"


def local_name(manifest: Manifest, image: str) -> str:
    """Returns the name of an image on this host, where the kit builds it: without the registry."""
    return image.removeprefix(f"{manifest.kubernetes.registry.rstrip('/')}/")


def on_kubernetes(manifest: Manifest) -> OnKubernetes | None:
    """Returns what the table `[kubernetes]` says; None for another engine."""
    if manifest.engine != "kubernetes":
        return None
    table = manifest.kubernetes
    own = table.output == "pvc"
    named = table.output.removeprefix(PVC) if table.output.startswith(PVC) else ""
    return OnKubernetes(
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
