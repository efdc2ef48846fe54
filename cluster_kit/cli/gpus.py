"""The verb gpus: which GPUs there are, which cluster has them, whether the engine grants them."""

from __future__ import annotations

import typer
from rich.table import Table

from cluster_kit.advice.of_manifest import GPU_HINT
from cluster_kit.cli import options
from cluster_kit.cli.app import app, current_host, out, print_json, say
from cluster_kit.errors import HostError
from cluster_kit.facts import HostFacts
from cluster_kit.machine.gather import gather
from cluster_kit.plan.gpus.request import Device, devices, find, in_use
from cluster_kit.run.doctor import HANDS_OUT


@app.command()
def gpus(json_: options.Json = False) -> None:
    """Show this host's GPUs: index, UUID, memory, MIG slices, and which cluster has them."""
    facts = gather(current_host(), current_host().connect())
    present = devices(facts.gpus)
    if json_:
        print_json(_facts(facts, present))
    elif not present:
        say(f"no GPU: {facts.no_gpu}")
    else:
        out.print(_table(facts, present))
        for device, what in in_use(facts).items():
            say(f"{device.short} is used by {what}", to=out)
        if not facts.gpu_refusal:
            say(f"the engine hands them out by {HANDS_OUT[facts.gpu_driver]}")
    if facts.gpu_refusal:
        say(f"the engine refuses them: {facts.gpu_refusal}\n  → {GPU_HINT}")
        raise typer.Exit(HostError.exit_code)


def _holders(facts: HostFacts, device: Device, present: tuple[Device, ...]) -> list[str]:
    return sorted({cluster for held, cluster in facts.gpus_taken if find(held, present) == device})


def _facts(facts: HostFacts, present: tuple[Device, ...]) -> dict[str, object]:
    used = in_use(facts)
    return {
        "driver": facts.gpu_driver if present else None,
        "refusal": facts.gpu_refusal or None,
        "gpus": [
            {
                "index": device.short,
                "uuid": device.uuid,
                "name": device.name,
                "memory": device.memory,
                "clusters": _holders(facts, device, present),
                "used_by": used.get(device),
            }
            for device in present
        ],
    }


def _table(facts: HostFacts, present: tuple[Device, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("gpu", "uuid", "name", "memory", "cluster"):
        table.add_column(heading, no_wrap=True)
    for device in present:
        size = f"{device.memory / 2**30:.0f} GiB"
        holders = ", ".join(_holders(facts, device, present)) or "-"
        table.add_row(device.short, device.uuid, device.name, size, holders)
    return table
