"""Refusals that several engines share, each with its own reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.schema import Limits, Manifest
from cluster_kit.plan.tasks import names_in, templates_of
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.toml_text import to_toml

HERE = ("remove it, or run it on this host: ", Setting("engine", "compose"))
REQUIRE = Setting("gpus", "require")


def refused(key_path: str, value: str, rule: str, hint: HintText = HERE) -> Problem:
    """Returns the problem of a key that an engine does not support."""
    return Problem(key_path, value, rule, hint, ("engine",))


def addresses(manifest: Manifest, rule: str, hint: str) -> Iterator[Problem]:
    """Yields refusals of IP addresses that would have to be known before the start.

    Args:
        hint: what arguments can be given in their place.
    """
    if manifest.addressing == "ip" and "addressing" in manifest.model_fields_set:
        yield refused("addressing", '"ip"', rule, ("write ", Setting("addressing", "name")))
    for key_path, text in templates_of(manifest):
        if "ip" in names_in([text]):
            yield refused(key_path, to_toml(text), rule, hint)
    for name, task in manifest.task.items():
        if task.ip is not None:
            yield refused(f"task.{name}.ip", to_toml(task.ip), rule)


def own_network(manifest: Manifest, rule: str) -> Iterator[Problem]:
    """Yields refusals of keys that describe a network, for engines that create none."""
    if manifest.subnet != "auto":
        yield refused("subnet", to_toml(manifest.subnet), rule)
    if manifest.network.mtu is not None:
        yield refused("network.mtu", str(manifest.network.mtu), rule)


def bounds(manifest: Manifest, keys: Iterable[str], rule: str) -> Iterator[Problem]:
    """Yields refusals of these keys of `[container]`, for engines whose nodes' administrators set
    them."""
    for key in sorted(manifest.container.model_fields_set.intersection(keys)):
        value = getattr(manifest.container, key)
        yield refused(f"container.{key}", to_toml(value or 0), rule)


def of_this_host(manifest: Manifest, rule: str) -> Iterator[Problem]:
    """Yields refusals of GPUs that are found on this host or listed (`rule`), and of sidecars."""
    if manifest.gpus not in ("none", "require"):
        hint = ("write ", REQUIRE, " (and `gpus_per_worker`), or ", Setting("gpus", "none"))
        yield refused("gpus", to_toml(manifest.gpus), rule, hint)
    for name in manifest.sidecar:
        yield refused(f"sidecar.{name}", "", "the kit runs sidecars only for clusters on one host")


def in_limits(
    table: str, limits: Limits, cannot: Mapping[str, tuple[str, HintText]]
) -> Iterator[Problem]:
    """Yields refusals of keys of a role or a task; `cannot` has the rule and hint of each key."""
    for key, (rule, hint) in cannot.items():
        if value := getattr(limits, key):
            text = "" if isinstance(value, dict) else to_toml(value)
            yield refused(f"{table}.{key}", text, rule, hint)


def in_clear(table: str, limits: Limits, file: str, then: str = "") -> Iterator[Problem]:
    """Yields refusals of variables that look like secrets: the engine's file would have them.

    Args:
        then: what else to do after moving them to `secrets`.
    """
    for key in filter(looks_secret, limits.environment):
        rule = f"it looks like a secret, and {file} would have it in clear"
        hint = f'write `secrets = ["{key}"]` there instead{then}'
        yield refused(f"{table}.environment.{key}", "", rule, hint)
