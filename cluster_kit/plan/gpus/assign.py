"""Assigns every task its GPUs, or returns all problems of the request. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster_kit.facts import HostFacts
from cluster_kit.parts import PromisedGpu
from cluster_kit.plan.gpus.check import check_even, check_room
from cluster_kit.plan.gpus.choose import (
    Choice,
    Inventory,
    choose_named,
    choose_pool,
    share_out,
)
from cluster_kit.plan.gpus.devices import MIB, Device, devices, find, in_use
from cluster_kit.plan.gpus.request import AUTO, NONE, GpuRequest, shown
from cluster_kit.problem import Problem

HEADROOM = 0.9
"""The part of a shared GPU's memory that TensorFlow's allocators may take; CUDA needs the rest."""


@dataclass(frozen=True)
class GpuGrant:
    """One task's GPUs: ids for the engine, what the task must see, TensorFlow's limit in MiB."""

    ids: tuple[str, ...] = ()
    promised: tuple[PromisedGpu, ...] = ()
    memory_mib: int | None = None


def assign(
    name: str, request: GpuRequest, facts: HostFacts
) -> tuple[dict[str, GpuGrant], list[Problem]]:
    """Returns the grant of each task that gets GPUs, and the problems; no grants if there are any.

    Every worker gets the same number. No task gets a GPU that another task or another cluster-kit
    cluster has, unless the manifest asks for sharing.

    Args:
        name: the cluster's name; GPUs that it holds itself count as free.
    """
    refused = bool(facts.gpu_refusal)
    if refused and request.needs_gpus:
        cure = ("`cluster-kit doctor` says what is missing; or write ", AUTO, " or ", NONE)
        rule = f"the engine refuses: {facts.gpu_refusal}"
        return {}, [Problem("gpus", shown(request.pool), rule, cure)]
    inventory = _inventory(name, facts)
    choices, problems = choose_named(request, inventory)
    named = {choice.device for chosen in choices.values() for choice in chosen}
    pool, pool_problems = choose_pool(request, inventory, named, refused=refused)
    problems += pool_problems
    if not problems:
        choices |= share_out(request, pool)
        problems = check_even(request, choices) + check_room(request, choices)
    return ({} if problems else _grants(request, choices, facts)), problems


def _inventory(name: str, facts: HostFacts) -> Inventory:
    """The host's devices, and which other cluster holds each; in the devices' order."""
    all_devices = devices(facts.gpus)
    taken = [(id_, cluster) for id_, cluster in facts.gpus_taken if cluster != name]
    holders = {find(id_, all_devices): cluster for id_, cluster in taken}
    held = {device: holders[device] for device in all_devices if device in holders}
    return Inventory(all_devices, held, in_use(facts))


def _grants(
    request: GpuRequest, choices: Mapping[str, Sequence[Choice]], facts: HostFacts
) -> dict[str, GpuGrant]:
    limits = _memory_limits(request, choices)
    return {
        task: GpuGrant(
            ids=tuple(choice.device.engine_id(facts.gpu_driver, choice.name) for choice in chosen),
            promised=tuple(_promised(choice.device) for choice in chosen),
            memory_mib=limits[task],
        )
        for task, chosen in choices.items()
        if chosen
    }


def _promised(device: Device) -> PromisedGpu:
    return PromisedGpu(f"GPU {device.described}", device.pci, device.uuid)


def _memory_limits(
    request: GpuRequest, choices: Mapping[str, Sequence[Choice]]
) -> dict[str, int | None]:
    """Each task's limit in MiB per GPU: as asked, else an even part of a shared GPU, else None."""
    if request.memory is not None:
        return dict.fromkeys(choices, request.memory // MIB)
    if not request.share:
        return dict.fromkeys(choices, None)
    devices_of = {task: [choice.device for choice in chosen] for task, chosen in choices.items()}
    users = Counter(device for chosen in devices_of.values() for device in chosen)
    return {
        task: min((int(d.memory * HEADROOM) // users[d] // MIB for d in chosen), default=None)
        for task, chosen in devices_of.items()
    }
