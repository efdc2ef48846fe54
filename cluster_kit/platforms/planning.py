"""Reads and plans manifests with what all platforms add to them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cluster_kit.facts import HostFacts
from cluster_kit.manifest import load as loading
from cluster_kit.manifest import schema
from cluster_kit.manifest.command_line import Caller
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import plan as planning
from cluster_kit.plan.plan import OwnImages
from cluster_kit.platform_table import PLATFORMS
from cluster_kit.platforms.platform import all_platforms, platform_of
from cluster_kit.programs.resolve import Inputs
from cluster_kit.resolved import Cluster


@cache
def manifest_model() -> type[Manifest]:
    """The model of a whole manifest: the words of `engine`, and the tables of platforms."""
    *others, last = (platform.meaning for platform in all_platforms())
    described = f"What runs the containers: {', '.join(others)}, or {last}"
    tables = {one.name: table for one in all_platforms() if (table := one.table())}
    return schema.with_platforms(tuple(PLATFORMS), described, tables)


def json_schema() -> dict[str, Any]:
    """The manifest's JSON Schema (draft 2020-12), for editors."""
    return schema.json_schema(manifest_model())


def load(
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    root: Path | None = None,
    by_set: frozenset[str] = frozenset(),
    caller: Caller = Caller.SHELL,
) -> Loaded:
    """The manifest in a file, as `manifest.load.load` reads it, for any platform.

    Raises:
        ManifestError: the file cannot be read, or is not valid TOML.
    """
    return loading.load(path, overrides, root, by_set, caller, model=manifest_model())


def plan(loaded: Loaded, inputs: Inputs, facts: HostFacts, images: OwnImages) -> Cluster:
    """The cluster of a manifest, as `plan.plan.plan` makes it, for the platform that it names.

    Raises:
        ManifestError: the manifest is invalid; the error has every problem, in its order.
    """
    platform = platform_of(loaded.manifest.engine)
    return planning.plan(loaded, inputs, facts, images, platform)
