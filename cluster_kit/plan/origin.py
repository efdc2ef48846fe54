"""From what a cluster is made: hashes and values, by which a stale file is told apart. Pure."""

from __future__ import annotations

import hashlib
import json
from ipaddress import IPv4Network
from typing import Any

from cluster_kit.facts import HostFacts
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.parts import Origin
from cluster_kit.plan import addresses
from cluster_kit.plan.gpus.request import devices, find, in_use
from cluster_kit.programs.resolve import Inputs
from cluster_kit.resolved import OWNER
from cluster_kit.util.masking import MASK, looks_secret
from cluster_kit.version import __version__

PATHS = ("program", "data", "requirements")


def origin_of(
    loaded: Loaded,
    inputs: Inputs,
    facts: HostFacts,
    images: tuple[str, str, str],
    subnet: IPv4Network,
) -> Origin:
    """Returns what a plan with these arguments takes from where.

    Args:
        images: tags of the kit's own for CPUs and for GPUs, and of the one that `build` makes.
    """
    *own, built = images
    command = loaded.command or f"cluster-kit render {loaded.path.stem}"
    written = loaded.manifest.model_dump(mode="json")
    for key in loaded.command_line.keys & set(PATHS):
        del written[key]  # it is part of the command, as it is named there
    written = _masked(written)
    portable = facts.user == OWNER
    return Origin(
        command=f"{command} --portable" if portable else command,
        manifest=_hash(command, written, inputs.requirements, built),
        kit=_hash(__version__, own),
        host=() if portable else tuple(_host(loaded, inputs, facts, subnet).items()),
        portable=portable,
    )


def _host(loaded: Loaded, inputs: Inputs, facts: HostFacts, subnet: IPv4Network) -> dict[str, str]:
    """What was taken from the host, by name, whatever the manifest says."""
    manifest = loaded.manifest
    preferred = addresses.pick_subnet(manifest.name, subnet.prefixlen, ())
    moved = manifest.subnet == "auto" and subnet != preferred
    return {
        "user": facts.user,
        "subnet": str(subnet) if moved else "free",
        "folder": _hash(str(loaded.path.parent)) if _is_of_the_host(inputs) else "any",
        "gpus": _gpus(manifest, facts),
    }


def _masked(written: dict[str, Any]) -> dict[str, Any]:
    """The tables with MASK for values of variables that look like secrets: a hash is in a file."""
    masked = {}
    for key, value in written.items():
        if isinstance(value, dict):
            value = _masked(value)
        masked[key] = MASK if isinstance(value, str) and looks_secret(key) else value
    return masked


def _is_of_the_host(inputs: Inputs) -> bool:
    """Whether containers are given anything by its path."""
    if any(inputs.sidecar_mounts.values()):
        return True
    return bool(inputs.mounts or inputs.own_mounts or inputs.secret_files or inputs.env_files)


def _gpus(manifest: Manifest, facts: HostFacts) -> str:
    """A hash of the GPUs that can be had and how, "any" if the manifest asks for none."""
    tables = (*manifest.task.values(), *(limits for _role, limits in manifest.role))
    if manifest.gpus == "none" and not any(limits.gpus for limits in tables):
        return "any"
    if facts.gpu_refusal or not facts.gpus:
        return "none"
    all_devices = devices(facts.gpus)
    if isinstance(manifest.gpus, str):  # those that are free
        held = {find(id_, all_devices) for id_, name in facts.gpus_taken if name != manifest.name}
        all_devices = tuple(d for d in all_devices if d not in {*held, *in_use(facts)})
    return _hash(facts.gpu_driver, [(device.short, device.uuid) for device in all_devices])


def _hash(*values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
