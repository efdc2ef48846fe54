"""Which TensorFlow a manifest asks for, and what its requirements say about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster_kit.manifest.names import OWN_IMAGE
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Cure, Problem, Setting

OWN_VERSION = "2.21.0"
"""Of the kit's own lock files."""
OLDEST = (2, 15)
LAST_WITH_ESTIMATORS = (2, 15)
"""tf.estimator went in the next one."""
NIGHTLY = "nightly"
_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)?(rc\d+|\.post\d+)?")
_PIN = re.compile(
    r"tensorflow(?:[-_]cpu|[-_]gpu)?(?:\[[^]]*\])?\s*===?\s*([^\s;,*]+)$", re.IGNORECASE
)


def has_estimators(version: str) -> bool:
    """Returns whether this `tensorflow` of a manifest ("" for the kit's own) has tf.estimator."""
    found = _VERSION.fullmatch(version or OWN_VERSION)
    return found is not None and (int(found[1]), int(found[2])) <= LAST_WITH_ESTIMATORS


def check_version(manifest: Manifest) -> Iterator[Problem]:
    """Yields a `tensorflow` that is no version, is too old, or stands beside another image."""
    cure: Cure
    asked = manifest.tensorflow
    if not asked:
        return
    value, found = f'"{asked}"', _VERSION.fullmatch(asked)
    if found is None and asked != NIGHTLY:
        cure = ("write ", Setting("tensorflow", "2.16"), ', or "2.16.1", or "nightly"')
        yield Problem("tensorflow", value, "not a version of TensorFlow", cure)
    elif found and (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        cure = ("write ", Setting("tensorflow", oldest), " or newer, or take an image of your own")
        yield Problem("tensorflow", value, f"the oldest that the kit installs is {oldest}", cure)
    if manifest.build:
        rule = "the version is installed in the kit's own image only, not in one that `build` makes"
        yield Problem("tensorflow", value, rule, "take it out, and install it in your Dockerfile")
    elif manifest.image != OWN_IMAGE:
        rule = f"the version is installed in the kit's own image only, not in {manifest.image}"
        cure = ("take it out, or write ", Setting("image", OWN_IMAGE))
        yield Problem("tensorflow", value, rule, cure)


def check_pins(manifest: Manifest, requirements: str) -> Iterator[Problem]:
    """Yields a requirement that pins another TensorFlow than the image's."""
    has = manifest.tensorflow or OWN_VERSION
    for line in requirements.splitlines():
        pin = _PIN.fullmatch(line.partition(";")[0].strip())
        if pin and manifest.runs_in_kits_image and pin[1] != has:
            rule = f'"{line}" asks for another TensorFlow than the image has ({has})'
            cure = ("let the image have it: ", Setting("tensorflow", pin[1]))
            yield Problem("requirements", f'"{manifest.requirements}"', rule, cure)
