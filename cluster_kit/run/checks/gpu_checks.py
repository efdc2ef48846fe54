"""The lines of `doctor` about GPUs: from the hardware to the engine. Pure."""

from __future__ import annotations

from cluster_kit.facts import GpuSetup, HostFacts
from cluster_kit.plan.gpus.request import devices, in_use
from cluster_kit.platforms.platform import Check

HANDS_OUT = {"nvidia": "NVIDIA's runtime", "cdi": "CDI"}


def gpu_checks(facts: HostFacts) -> list[Check]:
    """One line if all is well, or if there is nothing to be done; else one for each missing part.

    A host without a GPU passes, since it can use the CPU.
    """
    setup = facts.gpu_setup
    if facts.no_gpu:
        if not setup.hardware:
            return [Check("gpus", "ok", f"CPU only ({facts.no_gpu})")]
        there = f"{setup.hardware} of NVIDIA's on the PCI bus"
        if not setup.driver:
            hint = "`nvidia-smi` says more; in MIG mode, make slices: `nvidia-smi mig -cgi … -C`"
            return [Check("gpus", "warn", f"{there}, but {facts.no_gpu}", hint)]
        hint = "install NVIDIA's driver; if it is installed, load it: `modprobe nvidia`"
        return [Check("gpu driver", "warn", f"{there}, but no driver: {setup.driver}", hint)]
    names = ", ".join(f"{device.short}: {device.name}" for device in devices(facts.gpus))
    if not facts.gpu_refusal:
        well = Check("gpus", "ok", f"{names}, handed out by {HANDS_OUT[facts.gpu_driver]}")
        return [well, *_in_use(facts)]
    missing = _missing(setup)
    hint = "restart the engine; its log (`journalctl -u docker`) says more"
    if missing:
        hint = "repair what is missing above, then restart the engine"
    refused = f"{names}, but the engine refuses them: {facts.gpu_refusal}"
    return [*missing, Check("gpus", "warn", refused, hint)]


def _in_use(facts: HostFacts) -> list[Check]:
    """The GPUs that others use, if any."""
    used = [f"{device.short} is used by {what}" for device, what in in_use(facts).items()]
    if not used:
        return []
    hint = 'end it, or let it be: `gpus = "auto"` takes others, a list takes those that it names'
    return [Check("gpus in use", "warn", "\n".join(used), hint)]


def _missing(setup: GpuSetup) -> list[Check]:
    """What an engine that refuses GPUs lacks, in the order in which it has to be repaired."""
    lines = []
    if not setup.toolkit:
        lines.append(
            Check(
                "gpu toolkit",
                "warn",
                "the NVIDIA Container Toolkit was not found: no nvidia-ctk in PATH",
                "install nvidia-container-toolkit from NVIDIA's package repository",
            )
        )
    if not setup.runtime:
        lines.append(
            Check(
                "gpu runtime",
                "warn",
                "the engine has no runtime `nvidia`",
                "`sudo nvidia-ctk runtime configure --runtime=docker`, then restart the engine",
            )
        )
    if setup.cdi and not setup.cdi_spec:
        lines.append(
            Check(
                "gpu cdi",
                "warn",
                "the engine reads CDI specifications, but there is none for nvidia.com/gpu",
                "`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
            )
        )
    return lines
