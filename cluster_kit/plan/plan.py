"""Plans a cluster from a manifest and the host's facts, or raises all its problems. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Protocol

from cluster_kit.facts import HostFacts, is_closed
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import DeadlineTable, Manifest
from cluster_kit.parts import Bounds, Deadlines, ProfileAt
from cluster_kit.plan import addresses
from cluster_kit.plan.arguments import MASTER, check_arguments, fill, names_in
from cluster_kit.plan.cluster_rules import (
    check_counts,
    check_names,
    check_port,
    check_ports,
    check_tasks_exist,
    find_pins,
    find_subnet,
    too_many,
)
from cluster_kit.plan.container_rules import (
    check_limits,
    check_mounts,
    check_resources,
    check_secret_files,
    check_sidecars,
)
from cluster_kit.plan.gpus.assign import GpuGrant
from cluster_kit.plan.gpus.request import GpuRequest, request_of
from cluster_kit.plan.origin import origin_of
from cluster_kit.plan.tasks import mounts_of, sidecars_of, tasks_of
from cluster_kit.problem import Problem
from cluster_kit.programs.resolve import EXTRA, Inputs, digest
from cluster_kit.programs.style import check_pins, check_version, style_of
from cluster_kit.resolved import Cluster, Task


@dataclass(frozen=True)
class OwnImages:
    """Tags of the kit's own image, by variant, and of what a Dockerfile of the user's makes."""

    cpu: str
    gpu: str
    built: str = ""


class PlannedFor(Protocol):
    """What a plan asks of the platform that its cluster is for; `platforms.platform` has them."""

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
        platform: that of the manifest's `engine`.
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
            *_broken_rules(manifest, facts, platform),
            *check_pins(manifest, inputs.requirements),
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


def _broken_rules(manifest: Manifest, facts: HostFacts, platform: PlannedFor) -> Iterator[Problem]:
    """Yields the problems of all rules that need no more than the manifest and the host."""
    yield from check_names(manifest)
    yield from platform.refusals(manifest)
    yield from check_version(manifest)
    yield from check_counts(manifest)
    yield from check_port(manifest)
    yield from check_tasks_exist(manifest)
    yield from check_limits(manifest, facts)
    yield from check_arguments(manifest.args)
    yield from check_mounts(manifest)
    yield from check_secret_files(manifest)
    yield from check_resources(manifest, facts)
    yield from check_sidecars(manifest)
    yield from check_ports(manifest)


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
        own_servers=MASTER in names_in(manifest.args),
        requirements=inputs.requirements,
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
        origin=origin_of(loaded, inputs, facts, (images.cpu, images.gpu, images.built), subnet),
    )


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
