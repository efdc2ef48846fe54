"""Plans a cluster from a manifest and the host's facts, or raises all its problems. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Protocol

from cluster_kit.errors import Problem
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import DeadlineTable, Manifest
from cluster_kit.plan import addresses
from cluster_kit.plan.cluster_rules import (
    check_counts,
    check_names,
    check_policies,
    check_port,
    check_ports,
    check_tasks_exist,
    find_pins,
    find_subnet,
    restart_of,
    success_of,
    too_many,
)
from cluster_kit.plan.container_rules import (
    check_limits,
    check_mounts,
    check_resources,
    check_secret_files,
    check_sidecars,
)
from cluster_kit.plan.gpus import GpuGrant, GpuRequest, devices, find, in_use, request_of
from cluster_kit.plan.tasks import (
    MASTER,
    check_templates,
    fill,
    mounts_of,
    names_in,
    sidecars_of,
    tasks_of,
    templates_of,
)
from cluster_kit.programs.resolve import EXTRA, Inputs, digest
from cluster_kit.programs.style import check_pins, check_version, style_of
from cluster_kit.resolved import OWNER, Bounds, Cluster, Deadlines, Origin, ProfileAt, Task
from cluster_kit.util.masking import MASK, looks_secret, without_values
from cluster_kit.version import __version__

PATHS = ("program", "data", "requirements")


def origin_of(
    loaded: Loaded,
    inputs: Inputs,
    facts: HostFacts,
    images: tuple[str, str, str],
    subnet: IPv4Network,
) -> Origin:
    """Returns the sources of the values of a plan with these arguments.

    Args:
        images: tags of the kit's own for CPUs and for GPUs, and of the one that `build` makes.
    """
    *manifest_sources, built = images
    command = loaded.command or f"cluster-kit render {loaded.path.stem}"
    written = loaded.manifest.model_dump(mode="json", exclude_defaults=True)
    for key in loaded.command_line.keys & set(PATHS):
        written.pop(key, None)  # it is part of the command, as it is named there
    written = _masked(written)
    portable = facts.user == OWNER
    return Origin(
        command=f"{command} --portable" if portable else command,
        manifest=_hash(command, written, inputs.requirements, built),
        kit=_hash(__version__, manifest_sources),
        host=() if portable else tuple(_host(loaded, inputs, facts, subnet).items()),
        portable=portable,
    )


def _host(loaded: Loaded, inputs: Inputs, facts: HostFacts, subnet: IPv4Network) -> dict[str, str]:
    """The values that always come from the host, by name."""
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
    """The tables with MASK for values of variables that look like secrets, in arguments and in
    addresses: a hash is in a file."""
    masked = {}
    for key, value in written.items():
        secret = isinstance(value, str) and looks_secret(key)
        shown = _masked(value) if isinstance(value, dict) else without_values(value)
        masked[key] = MASK if secret else shown
    return masked


def _is_of_the_host(inputs: Inputs) -> bool:
    """Whether containers get any file or directory by its path on the host."""
    if any(inputs.sidecar_mounts.values()):
        return True
    return bool(inputs.mounts or inputs.own_mounts or inputs.secret_files or inputs.env_files)


def _gpus(manifest: Manifest, facts: HostFacts) -> str:
    """A hash of the available GPUs and their driver; "any" if the manifest requests none."""
    tables = (*manifest.task.values(), *(limits for _role, limits in manifest.role))
    if manifest.gpus == "none" and not any(limits.gpus for limits in tables):
        return "any"
    if facts.gpu_refusal or not facts.gpus:
        return "none"
    all_devices = devices(facts.gpus)
    if isinstance(manifest.gpus, str):  # the free ones
        held = {find(id_, all_devices) for id_, name in facts.gpus_taken if name != manifest.name}
        all_devices = tuple(d for d in all_devices if d not in {*held, *in_use(facts)})
    return _hash(facts.gpu_driver, [(device.short, device.uuid) for device in all_devices])


def _hash(*values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class OwnImages:
    """Tags of the kit's own image, by variant, and of the image of a user's Dockerfile."""

    cpu: str
    gpu: str
    built: str = ""


class PlannedFor(Protocol):
    """The methods of a platform that a plan needs; `platforms.platform` has the platforms."""

    @property
    def name(self) -> str: ...
    @property
    def one_host(self) -> bool: ...
    @property
    def host_network(self) -> bool: ...
    def facts(self, manifest: Manifest, facts: HostFacts) -> HostFacts: ...
    def refusals(self, manifest: Manifest) -> Iterator[Problem]: ...
    def grants(
        self, manifest: Manifest, request: GpuRequest, facts: HostFacts
    ) -> tuple[dict[str, GpuGrant], list[Problem]]: ...
    def tasks(self, manifest: Manifest, tasks: tuple[Task, ...]) -> tuple[Task, ...]: ...
    def image_name(self, manifest: Manifest, image: str) -> str: ...
    def settings(self, manifest: Manifest) -> Mapping[str, Any]: ...


def plan(
    loaded: Loaded, inputs: Inputs, facts: HostFacts, images: OwnImages, platform: PlannedFor
) -> Cluster:
    """Returns the cluster of a manifest on this host. Same arguments, same cluster.

    Args:
        inputs: the manifest's program, data and requirements, resolved.
        images: tags of the kit's own image, for `image = "trainer"`.
        platform: the platform that the manifest's `engine` names.
    Raises:
        ManifestError: the manifest is invalid; the error has every problem, in its order.
    """
    manifest = loaded.manifest
    facts = platform.facts(manifest, facts)
    subnet, subnet_problems = find_subnet(manifest, facts)
    request, request_problems = request_of(manifest, without_pool=too_many(manifest))
    grants, grant_problems = platform.grants(manifest, request, facts)
    pins, pin_problems = find_pins(manifest, subnet)
    loaded.refuse(
        [
            *check_manifest(manifest, platform),
            *check_limits(manifest, facts),
            *check_resources(manifest, facts),
            *check_pins(manifest, inputs.requirements, inputs.requirement_places),
            *inputs.problems,
            *subnet_problems,
            *request_problems,
            *grant_problems,
            *pin_problems,
        ]
    )
    assert subnet is not None  # otherwise its problems have been raised
    tasks = platform.tasks(manifest, tasks_of(manifest, inputs, subnet, grants, pins))
    cluster, unfilled = fill(_cluster(loaded, inputs, facts, images, subnet, tasks, platform))
    loaded.refuse(unfilled)
    return cluster


def check_manifest(manifest: Manifest, platform: PlannedFor) -> Iterator[Problem]:
    """Yields the problems of all rules that only need the manifest."""
    yield from check_names(manifest)
    yield from platform.refusals(manifest)
    yield from check_version(manifest)
    yield from check_counts(manifest)
    yield from check_port(manifest)
    yield from check_tasks_exist(manifest)
    yield from check_templates(manifest)
    yield from check_mounts(manifest)
    yield from check_secret_files(manifest)
    yield from check_sidecars(manifest)
    yield from check_ports(manifest)
    yield from check_policies(manifest)


def _cluster(
    loaded: Loaded,
    inputs: Inputs,
    facts: HostFacts,
    images: OwnImages,
    subnet: IPv4Network,
    tasks: tuple[Task, ...],
    platform: PlannedFor,
) -> Cluster:
    manifest, gpu = loaded.manifest, any(task.gpus for task in tasks)
    image = platform.image_name(manifest, _image(manifest, inputs, images, gpu=gpu))
    return Cluster(
        name=manifest.name,
        source=f"{loaded.path.parent.name}/{loaded.path.name}",
        image=image,
        variant=("gpu" if gpu else "cpu") if manifest.runs_in_kits_image else None,
        tf1=manifest.tf1,
        own_servers=MASTER in names_in(text for _, text in templates_of(manifest)),
        requirements=inputs.requirements,
        requirement_places=inputs.requirement_places,
        tensorflow=manifest.tensorflow,
        user=facts.user,
        subnet=subnet,
        gateway=addresses.gateway(subnet),
        port=manifest.port,
        addressing=manifest.addressing if platform.one_host else "name",
        style=style_of(manifest),
        chief_job=manifest.chief_job,
        data=inputs.data,
        mounts=(*inputs.mounts, *mounts_of(manifest, inputs, "")),
        server=manifest.server,
        deadlines=_deadlines(manifest.deadline),
        retries=manifest.retries,
        gpu_driver=facts.gpu_driver,
        gpu_check=manifest.gpu_check,
        simulate_gpus=manifest.simulate_gpus,
        tasks=tasks,
        fetch=inputs.fetch,
        dockerfile=inputs.dockerfile,
        sidecars=sidecars_of(manifest, inputs, subnet, image, facts.user),
        bounds=Bounds(
            manifest.container.pids or None,
            manifest.container.tmp_size,
            manifest.container.log_size,
        ),
        tensorboard=manifest.tensorboard,
        profile=ProfileAt(**dict(manifest.profile)) if manifest.profile else None,
        internal=manifest.network.internal,
        isolated=platform.one_host and _isolated(manifest, facts),
        mtu=manifest.network.mtu,
        engine=platform.name,
        one_host=platform.one_host,
        host_network=platform.host_network,
        encrypted=manifest.network.encrypted,
        settings=platform.settings(manifest),
        success=success_of(manifest),
        restart=restart_of(manifest),
        origin=origin_of(loaded, inputs, facts, (images.cpu, images.gpu, images.built), subnet),
    )


CLOSED = 28
"""The first major version of Docker Engine that blocks connections to unpublished ports.

From this version on, the host can be without an address in an internal network.
"""


def is_closed(version: str) -> bool:
    """Whether a Docker Engine of this version is CLOSED or newer; False for an unknown version."""
    major = version.split(".")[0]
    return major.isdecimal() and int(major) >= CLOSED


def _isolated(manifest: Manifest, facts: HostFacts) -> bool:
    """Whether the engine can keep the host, and so its other users, out of the network."""
    closed = is_closed(facts.engine) and not facts.kind.podman
    return manifest.network.internal and closed


def _deadlines(table: DeadlineTable) -> Deadlines:
    return Deadlines(
        start=table.start,
        job=table.job,
        evaluator_grace=table.evaluator_grace,
        engine=table.engine,
        silent=table.silent,
        stall=table.stall,
    )


def _image(manifest: Manifest, inputs: Inputs, images: OwnImages, *, gpu: bool) -> str:
    """The tag of the image that all tasks run."""
    if inputs.dockerfile is not None:
        return images.built
    if not manifest.runs_in_kits_image:
        return manifest.image
    image = images.gpu if gpu else images.cpu
    return f"{image}{EXTRA}{digest(inputs.requirements)}" if inputs.requirements else image
