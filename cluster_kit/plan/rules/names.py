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
    elif manifest.build:
        yield from _beside_build(manifest)
    elif manifest.image != OWN_IMAGE and manifest.requirements:
        rule = f"packages are installed in the kit's own image only, not in {manifest.image}"
        cure = ("install them in your image, or write ", OWN)
        yield Problem("requirements", f'"{manifest.requirements}"', rule, cure)


def _beside_build(manifest: Manifest) -> Iterator[Problem]:
    """Yields what a Dockerfile decides, if the manifest names that, too."""
    if "image" in manifest.model_fields_set:
        rule = "the image is made from a Dockerfile (`build`), so none can be named"
        yield Problem("image", f'"{manifest.image}"', rule, "take out `image` or `build`")
    if manifest.requirements:
        rule = "packages are installed in the kit's own image only, not in one that `build` makes"
        cure = "take it out, and install them in your Dockerfile: `RUN pip install …`"
        yield Problem("requirements", f'"{manifest.requirements}"', rule, cure)
