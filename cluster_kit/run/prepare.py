"""The tags of the images that a manifest may run on."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from cluster_kit.advice import Fitted, Hint, fit
from cluster_kit.advice.of_manifest import gpus_in_use, portable_hints, refused_gpus
from cluster_kit.errors import UsageError
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.image import debugger, tensorflow_lock
from cluster_kit.image.dockerfile_image import built_tag
from cluster_kit.image.kit_image import Say, Variant
from cluster_kit.machine.host_facts import gather, gather_networks
from cluster_kit.manifest.load import Loaded, find
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.debug import debugged
from cluster_kit.plan.plan import OwnImages
from cluster_kit.plan.portable import check_portable, everywhere, moved, neutral
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.planning import load, plan
from cluster_kit.platforms.registry import platform_of
from cluster_kit.problem import Problem
from cluster_kit.programs import resolve
from cluster_kit.programs.resolve import Inputs, without_trainer
from cluster_kit.resolved import Cluster
from cluster_kit.run.request import Request
from cluster_kit.workspace import Workspace

KINDS: tuple[Variant, Variant] = ("cpu", "gpu")
PLAIN = re.compile(r"[A-Za-z0-9.]+")
"""A version that can be a part of a file's name; any other is refused by the plan."""


def images_of(
    host: Host, manifest: Manifest, inputs: Inputs, workspace: Workspace
) -> tuple[OwnImages, list[Problem]]:
    """The tags, and what cannot be read of the directory of a Dockerfile."""
    tag, problems = "", list[Problem]()
    if inputs.dockerfile is not None:
        tag, problems = built_tag(inputs.dockerfile, workspace.written())
    version = manifest.tensorflow
    if version and PLAIN.fullmatch(version):
        cpu, gpu = (tensorflow_lock.tag(workspace.manifests, version, kind) for kind in KINDS)
    else:
        cpu, gpu = (host.image_tag(kind) for kind in KINDS)
    return OwnImages(cpu, gpu, tag), problems


@dataclass(frozen=True)
class Prepared:
    """Everything that a verb needs to know about a manifest, made by `prepare`.

    `hints` are warnings about the program, and about GPUs that it does not get.
    """

    request: Request
    manifest: Loaded
    inputs: Inputs
    images: OwnImages
    facts: HostFacts
    cluster: Cluster
    hints: tuple[Hint, ...]


def prepare(
    host: Host,
    request: Request,
    workspace: Workspace,
    engine: Engine | None,
    *,
    portable: bool = False,
    loaded: Loaded | None = None,
) -> Prepared:
    """The cluster of a manifest on this host, and everything that it was planned from.

    Args:
        engine: None to plan without one (see `gather`).
        loaded: the manifest, if it has been read already.
        portable: plan for no host in particular (see `plan.portable`).
    Raises:
        UsageError: the manifest was not found.
        ManifestError: it is invalid; the error has every problem.
        EngineError: the engine stopped answering.
    """
    loaded = loaded or read(request, workspace)
    folder = loaded.path.parent
    fitted = fit(resolve.program_file(loaded.manifest, folder), loaded)
    loaded = fitted.loaded
    inputs = resolve.resolve(loaded.manifest, folder, workspace.fetched.resolve())
    images, unread = images_of(host, loaded.manifest, inputs, workspace)
    inputs = replace(inputs, problems=(*inputs.problems, *fitted.problems, *unread))
    if portable:
        return _portable(request, workspace, fitted, inputs, images)
    facts = gather(host, engine)
    cluster = _asked(plan(loaded, inputs, facts, images), request)
    hints = (
        *fitted.hints,
        *refused_gpus(loaded.manifest, facts),
        *gpus_in_use(loaded.manifest, cluster, facts),
        *_left_out(cluster),
    )
    return Prepared(request, loaded, inputs, images, facts, cluster, hints)


def _left_out(cluster: Cluster) -> list[Hint]:
    """What of a cluster's directories its tasks do not get, in one line."""
    paths = platform_of(cluster.engine).left_out(cluster)
    what = "looks like a secret, leads elsewhere or was rendered, and is left out"
    return [Hint(cluster.engine, f"what {what}: {', '.join(paths)}")] if paths else []


def _asked(cluster: Cluster, request: Request) -> Cluster:
    """The cluster with what was asked for besides its manifest."""
    if not request.debug:
        return cluster
    return debugged(cluster, request.debug, str(debugger.place()))


def prepare_locked(
    host: Host,
    request: Request,
    workspace: Workspace,
    engine: Engine | None,
    say: Say,
    loaded: Loaded | None = None,
) -> Prepared:
    """The same, and the packages of another TensorFlow are resolved if nobody has done so.

    Raises what `prepare` and `image.tensorflow_lock.ensure` raise.
    """
    loaded = loaded or read(request, workspace)
    prepared = prepare(host, request, workspace, engine, loaded=loaded)
    if tensorflow_lock.ensure(host, prepared.cluster, workspace.manifests, say):
        return prepare(host, request, workspace, engine, loaded=loaded)
    return prepared


def refuse_unlocked(prepared: Prepared) -> None:
    """Raises UsageError if a file that is rendered would name no image."""
    if tensorflow_lock.is_unlocked(prepared.cluster):
        raise UsageError(
            f"the packages of TensorFlow {prepared.cluster.tensorflow} are not resolved yet",
            f"run `cluster-kit image build {prepared.request.manifest}`: it writes a lock file "
            "beside the manifests, and builds the image",
        )


def _portable(
    request: Request, workspace: Workspace, fitted: Fitted, inputs: Inputs, images: OwnImages
) -> Prepared:
    """The same for no host in particular; see `prepare`."""
    loaded, root = fitted.loaded, workspace.root.resolve()
    manifest = loaded.manifest
    if not loaded.path.is_relative_to(root):
        raise UsageError(
            f"{loaded.path} is outside of {root}: a copy of that folder would not have it",
            "run this in the folder that has the manifest, below which there is a compose/",
        )
    loaded.refuse([*check_portable(manifest), *inputs.problems])
    facts = neutral(manifest)
    inputs = without_trainer(inputs)
    cluster = plan(loaded, inputs, facts, images)
    file = workspace.portable(cluster.name)
    cluster = moved(cluster, file.parent.resolve(), root, everywhere(loaded))
    hints = (*fitted.hints, *portable_hints(manifest, cluster))
    return Prepared(request, loaded, inputs, images, facts, cluster, hints)


def read(request: Request, workspace: Workspace) -> Loaded:
    """The manifest that is asked for, with its overrides.

    Raises:
        UsageError: it was not found.
        ManifestError: it cannot be read; other problems are in what is returned.
    """
    path = find(request.manifest, workspace.manifests)
    root = workspace.root.resolve()
    return load(path, request.overrides, root, request.by_set, request.caller)


def prepare_again(host: Host, prepared: Prepared, engine: Engine) -> Prepared:
    """The same plan with what is free now: subnets and GPUs; other facts are not gathered again.

    Raises:
        ManifestError: no subnet is free, or too few GPUs are.
        EngineError: the engine stopped answering.
    """
    facts = replace(prepared.facts, networks=gather_networks(host, engine))
    if facts.gpus:
        facts = replace(facts, gpus_taken=engine.gpus_taken())
    cluster = plan(prepared.manifest, prepared.inputs, facts, prepared.images)
    cluster = _asked(cluster, prepared.request)
    return replace(prepared, facts=facts, cluster=cluster)
