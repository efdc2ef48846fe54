"""How a portable file's image is built, if its source is in the folder that is copied."""

from __future__ import annotations

import os
from pathlib import Path

from cluster_kit.image.base_image import REGISTRY_BASE
from cluster_kit.image.kit_image import SOURCE
from cluster_kit.platforms.rendered_file import Build
from cluster_kit.resolved import Cluster
from cluster_kit.util.paths import CLONE


def build_of(cluster: Cluster, root: Path, folder: Path) -> Build | None:
    """The build of the kit's own image, or a Dockerfile's; None if only the kit can build it.

    Nor is there one for an image that the manifest names.

    Args:
        root: the folder that is copied as a whole.
        folder: the directory of the file.
    """
    if cluster.dockerfile is not None:
        return Build(cluster.dockerfile.context, cluster.dockerfile.file, {})
    variant = cluster.variant
    copied = CLONE is not None and SOURCE.is_relative_to(root.resolve())
    if variant is None or cluster.requirements or cluster.tensorflow or not copied:
        return None
    inputs = cluster.image.rpartition("-")[2]
    return Build(
        context=Path(os.path.relpath(SOURCE, folder.resolve())).as_posix(),
        dockerfile="recipe/Dockerfile",
        arguments={"BASE": REGISTRY_BASE, "VARIANT": variant, "INPUTS": inputs},
    )
