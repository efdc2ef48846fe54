"""What one task gets: its role's limits, with its own laid over them. Pure."""

from __future__ import annotations

from cluster_kit.manifest.schema import Limits, Manifest


def limits_of(manifest: Manifest, role: str, index: int) -> Limits:
    """The limits of a task: those of `[role.<role>]` with those of `[task.<role>-<index>]`."""
    of_role = manifest.limits(role)
    own = manifest.task.get(f"{role}-{index}")
    return of_role if own is None else laid_over(of_role, own)


def laid_over(below: Limits, above: Limits) -> Limits:
    """Every field of `above` that is given, else of `below`; tables are joined, `above` winning."""
    return below.model_copy(
        update={
            key: _joined(getattr(below, key), getattr(above, key))
            for key in type(below).model_fields
        }
    )


def _joined(below: object, above: object) -> object:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | above
    return below if above is None else above
