"""Valid names of clusters, tasks and images. Pure."""

from __future__ import annotations

import re
import unicodedata

from cluster_kit.roles import ROLES

OWN_IMAGE = "trainer"
"""Stands for the image that the kit builds; any other image is the user's own."""
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
"""A cluster's name: a DNS label, short enough for the parts that Docker adds to it."""
TASK = re.compile(rf"({'|'.join(ROLES)})-(0|[1-9][0-9]{{0,8}})")
"""A task's name: its role and its index."""
_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
"""Docker's reference grammar: host, path, tag, digest."""


def near_name(name: str) -> str:
    """A valid cluster name, as similar as possible to one that is not."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    near = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    return near or "my-cluster"
