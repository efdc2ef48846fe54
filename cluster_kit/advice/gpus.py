"""What to say if GPUs are there and a training does not get them. Pure."""

from __future__ import annotations

from cluster_kit.advice.hint import Hint
from cluster_kit.cluster import Cluster
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.gpus.devices import devices, in_use

GPU_CURE = (
    "install the NVIDIA Container Toolkit, run `nvidia-ctk runtime configure --runtime=docker`, "
    "and restart the engine"
)


def gpus_in_use(manifest: Manifest, cluster: Cluster, facts: HostFacts) -> list[Hint]:
    """The notes about GPUs that others use: left out, or taken since the manifest names them."""
    if manifest.gpus == "none" and not any(task.gpus for task in cluster.tasks):
        return []
    hints = []
    for device, what in in_use(facts).items():
        by = [t.name for t in cluster.tasks if any(device.known_as(id_) for id_ in t.gpus)]
        if by:
            did = f"GPU {device.short} goes to {', '.join(by)}, though it is in use"
            cure = 'end it, name another GPU, or write `gpus = "auto"`, which leaves it out'
        elif isinstance(manifest.gpus, str) and manifest.gpus != "none":
            did, cure = f"GPU {device.short} is left out", "end it, or name the GPUs to be used"
        else:
            continue
        hints.append(Hint("gpus", did, f"used by {what}", cure))
    return hints


def refused_gpus(manifest: Manifest, facts: HostFacts) -> list[Hint]:
    """The warning about `gpus = "auto"` where the engine refuses the host's GPUs."""
    if manifest.gpus != "auto" or not facts.gpu_refusal:
        return []
    there = ", ".join(device.short for device in devices(facts.gpus))
    return [
        Hint(
            "gpus",
            f'"auto" on a host with GPUs ({there}), but the workers train on the CPU',
            f"the engine refuses to hand them out: {facts.gpu_refusal}",
            f"`cluster-kit doctor` says what is missing; usually: {GPU_CURE}. "
            '`gpus = "require"` never trains on the CPU, `gpus = "none"` is quiet about it',
        )
    ]
