"""Rules: names, images, variables and mounts of sidecars, and room for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from cluster_kit.manifest.names import IMAGE, NAME, TASK, near_name
from cluster_kit.manifest.schema import Manifest
from cluster_kit.manifest.sidecars import SidecarTable
from cluster_kit.plan import addresses
from cluster_kit.plan.rules.limits import check_name
from cluster_kit.plan.rules.mounts import check_absolute
from cluster_kit.plan.sidecars import shares_image
from cluster_kit.problem import Problem, Setting
from cluster_kit.util.toml_text import to_toml

MOST = len(addresses.SIDECARS)


def check_sidecars(manifest: Manifest) -> Iterator[Problem]:
    """Yields what is wrong with the sidecars, each by itself and all together."""
    if len(manifest.sidecar) > MOST:
        rule = f"a cluster has addresses for {MOST} sidecars"
        yield Problem("sidecar", str(len(manifest.sidecar)), rule, "take some of them out")
    if manifest.sidecar:
        yield from _check_subnet(manifest.subnet)
    for name, table in manifest.sidecar.items():
        place = f"sidecar.{name}"
        yield from _check_name(place, name)
        yield from _check_command(place, table)
        yield from _check_variables(place, table)
        yield from _check_mounts(place, table)


def _check_subnet(subnet: str) -> Iterator[Problem]:
    """Yields a subnet that has no addresses for sidecars; of an invalid one others tell."""
    try:
        prefix = addresses.WHOLE if subnet == "auto" else IPv4Network(subnet).prefixlen
    except ValueError:
        return
    if prefix > addresses.WHOLE:
        rule = f"sidecars have addresses in a /{addresses.WHOLE} or larger only"
        cure = f'use a /{addresses.WHOLE}, or "auto"'
        yield Problem("subnet", to_toml(subnet), rule, cure, ("sidecar",))


def _check_name(place: str, name: str) -> Iterator[Problem]:
    if TASK.fullmatch(name) or name == "localhost":
        taken = "a task is" if TASK.fullmatch(name) else "each container itself is"
        rule = f"taken: {taken} called so"
        yield Problem(place, "", rule, "choose another name, for example [sidecar.metrics]")
    elif not NAME.fullmatch(name):
        rule = "must be a DNS label of at most 40 characters: a-z, 0-9 and inner hyphens"
        yield Problem(place, "", rule, f"for example [sidecar.{near_name(name)}]")


def _check_command(place: str, table: SidecarTable) -> Iterator[Problem]:
    """Yields an image that has no valid name, and the tasks' image with nothing to run."""
    if not shares_image(table) and not IMAGE.fullmatch(table.image):
        rule = "not a valid name of an image"
        cure = ("write one like ", Setting(f"{place}.image", "redis:7"))
        yield Problem(f"{place}.image", to_toml(table.image), rule, cure)
    if table.command or table.entrypoint:
        return
    if shares_image(table) or table.entrypoint == []:
        what = "the image of the tasks" if shares_image(table) else "no entry point"
        rule = f"with {what} it needs a command"
        yield Problem(place, "", rule, 'for example `command = ["python3", "-m", "http.server"]`')


def _check_variables(place: str, table: SidecarTable) -> Iterator[Problem]:
    for key in table.environment:
        yield from check_name(f"{place}.environment.{key}", "", key)
    for key in table.secrets:
        yield from check_name(f"{place}.secrets", to_toml(key), key)
        if key in table.environment:
            rule = "it has a value in `environment`, too"
            yield Problem(f"{place}.secrets", to_toml(key), rule, "take one of them out")


def _check_mounts(place: str, table: SidecarTable) -> Iterator[Problem]:
    """Yields targets that are no paths, or are taken; what is in its image is for it to know."""
    seen: set[str] = set()
    for number, mount in enumerate(table.mount):
        key = f"{place}.mount.{number}"
        yield from check_absolute(key, mount)
        if re.fullmatch("/+", mount.target) or mount.target in seen:
            rule = "nothing can be mounted at the root" if mount.target not in seen else "taken"
            yield Problem(f"{key}.target", to_toml(mount.target), rule, "choose another directory")
        seen.add(mount.target)
