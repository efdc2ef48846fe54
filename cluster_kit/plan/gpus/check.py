"""Rules for the GPUs of all tasks together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster_kit.plan.gpus.choose import Choice
from cluster_kit.plan.gpus.devices import MIB, Device
from cluster_kit.plan.gpus.request import READS, SHARED, GpuRequest, shown
from cluster_kit.problem import Problem

_LISTED = 8
"""The most workers that a message lists."""


def check_even(request: GpuRequest, choices: Mapping[str, Sequence[Choice]]) -> list[Problem]:
    """The problem if workers have different numbers of GPUs: strategies expect equal ones."""
    counts = {worker: len(choices.get(worker, [])) for worker in request.workers}
    if len(set(counts.values())) <= 1:
        return []
    name = next((worker for worker in counts if worker in request.named), request.workers[0])
    listed = ", ".join(f"{task}: {count}" for task, count in list(counts.items())[:_LISTED])
    rule = f"all workers need the same number of GPUs, but have {listed}"
    place, value = request.places.get(name, "gpus"), shown(request.named.get(name, ()))
    return [Problem(place, value, rule, "give every worker as many", READS)]


def check_room(request: GpuRequest, choices: Mapping[str, Sequence[Choice]]) -> list[Problem]:
    """The problems of GPUs that several tasks have unshared, or with too little memory for all."""
    users: dict[Device, list[str]] = {}
    for task, chosen in choices.items():
        for choice in chosen:
            users.setdefault(choice.device, []).append(task)
    problems = []
    for device, tasks in users.items():
        if len(tasks) > 1 and not request.share:
            rule = f"one GPU for two tasks: {device.described} for {' and '.join(tasks)}"
            apart = ("give each its own, or write ", SHARED)
            place = next((request.places[task] for task in tasks if task in request.named), "gpus")
            problems.append(Problem(place, f'"{device.short}"', rule, apart, READS))
        elif request.memory and request.memory * len(tasks) > device.memory:
            mib = device.memory // MIB
            rule = f"{len(tasks)} task(s) on GPU {device.short}, which has {mib} MiB"
            cure = f"at most {mib // len(tasks)} MiB each"
            value = f"{request.memory // MIB} MiB"
            problems.append(Problem("gpu_memory", value, rule, cure, READS))
    return problems
