"""The line of `doctor` about secrets. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import Cluster


def check_secrets(cluster: Cluster | None, environment: Mapping[str, str]) -> list[Check]:
    """Whether all variables that tasks take from the caller are set; [] if there are none."""
    asked = cluster.from_caller if cluster else ()
    absent = [name for name in asked if not environment.get(name)]
    if not asked:
        return []
    if absent:
        hint = f"`export {absent[0]}=…`, or take it out of `secrets`"
        return [Check("secrets", "fail", f"not set: {', '.join(absent)}", hint)]
    return [Check("secrets", "ok", f"set: {', '.join(asked)}")]
