"""Rules: valid names of the cluster and of its image. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.manifest.names import IMAGE, NAME, OWN_IMAGE, near_name
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Cure, Problem, Setting

OWN = Setting("image", OWN_IMAGE)


def check_names(manifest: Manifest) -> Iterator[Problem]:
    """Yields an invalid `name` or `image`, and `requirements` with an image of the user's own."""
    cure: Cure
    if not NAME.fullmatch(manifest.name):
        rule = "must be a DNS label of at most 40 characters: a-z, 0-9 and inner hyphens"
        cure = ("for example ", Setting("name", near_name(manifest.name)))
        yield Problem("name", f'"{manifest.name}"', rule, cure)
    if not IMAGE.fullmatch(manifest.image):
        rule = "not a valid name of an image"
        cure = ("write ", OWN, ', or one like "registry:5000/team/name:tag"')
        yield Problem("image", f'"{manifest.image}"', rule, cure)
    elif manifest.image != OWN_IMAGE and manifest.requirements:
        rule = f"packages are installed in the kit's own image only, not in {manifest.image}"
        cure = ("install them in your image, or write ", OWN)
        yield Problem("requirements", f'"{manifest.requirements}"', rule, cure)
