"""The tags of the images that a manifest may run on."""

from __future__ import annotations

import re

from cluster_kit.host import Host
from cluster_kit.image import tensorflow_lock
from cluster_kit.image.dockerfile_image import built_tag
from cluster_kit.image.kit_image import Variant
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.plan import OwnImages
from cluster_kit.problem import Problem
from cluster_kit.programs.resolve import Inputs
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
