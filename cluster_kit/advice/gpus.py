"""What to say if GPUs are there and a training does not get them. Pure."""

from __future__ import annotations

from cluster_kit.advice.hint import Hint
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.gpus.devices import devices

GPU_CURE = (
    "install the NVIDIA Container Toolkit, run `nvidia-ctk runtime configure --runtime=docker`, "
    "and restart the engine"
)


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
