"""The rules a manifest must keep, each with its cure. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from cluster_kit.cluster import ROLES, Role
from cluster_kit.errors import Problem
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.schema import Limits, Manifest
from cluster_kit.plan import addresses
from cluster_kit.programs.style import check_style

_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
"""Docker's reference grammar: host, path, tag, digest."""
OWN_IMAGE = "trainer"
TASK = re.compile(rf"({'|'.join(ROLES)})-(0|[1-9][0-9]{{0,8}})")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
RESERVED = re.compile(r"TF_CONFIG|(CUDA|NVIDIA)_VISIBLE_DEVICES|CLUSTER_KIT_\w+")


def check_shape(manifest: Manifest) -> Iterator[Problem]:
    """Names, counts, port, and overrides that point at nothing."""
    if not NAME.fullmatch(manifest.name):
        rule = "must be a DNS label of at most 40 characters: a-z, 0-9 and inner hyphens"
        cure = f'for example `name = "{near_name(manifest.name)}"`'
        yield Problem("name", f'"{manifest.name}"', rule, cure)
    yield from _check_counts(manifest)
    if not 1024 <= manifest.port <= 65534:
        rule = "must be 1024 to 65534 (unprivileged; the next port is the beacon's)"
        yield Problem("port", str(manifest.port), rule, "write `port = 2222`")
    if not IMAGE.fullmatch(manifest.image):
        rule = "not the name of an image"
        cure = 'write `image = "trainer"`, or one like "registry:5000/team/name:tag"'
        yield Problem("image", f'"{manifest.image}"', rule, cure)
    elif manifest.image != OWN_IMAGE and manifest.requirements:
        rule = f"only the kit's own image is added to, not {manifest.image}"
        cure = 'install them in your image, or write `image = "trainer"`'
        yield Problem("requirements", f'"{manifest.requirements}"', rule, cure)
    yield from _check_tasks_exist(manifest)


def near_name(name: str) -> str:
    """A name that is allowed, as near as can be to one that is not."""
    near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return near or "my-cluster"


def _check_counts(manifest: Manifest) -> Iterator[Problem]:
    if manifest.chief not in (0, 1):
        rule = "a cluster has at most one chief"
        yield Problem("chief", str(manifest.chief), rule, "write `chief = 1`", ())
    if manifest.evaluator not in (0, 1):
        rule = "a cluster has at most one evaluator, in a spec of its own"
        yield Problem("evaluator", str(manifest.evaluator), rule, "write `evaluator = 1`")
    if manifest.worker < 1:
        rule = "a cluster needs at least one worker"
        yield Problem("worker", str(manifest.worker), rule, "write `worker = 1`")
    if manifest.ps < 0:
        rule = "a count cannot be negative"
        yield Problem("ps", str(manifest.ps), rule, "write `ps = 0` or more", ())
    yield from check_style(manifest)
    if too_many(manifest):
        role = "worker" if manifest.worker >= manifest.ps else "ps"
        rule = f"so many tasks fit in no subnet up to a /{addresses.WIDEST}"
        yield Problem(role, str(getattr(manifest, role)), rule, "ask for fewer tasks")


def last_indexes(manifest: Manifest) -> tuple[tuple[Role, int], ...]:
    """The highest index of each role that has a task."""
    counts = ((role, getattr(manifest, role)) for role in ROLES)
    return tuple((role, count - 1) for role, count in counts if count > 0)


def too_many(manifest: Manifest) -> bool:
    """Whether no subnet could hold the tasks: then nothing may count through them."""
    return addresses.prefix_needed(last_indexes(manifest)) is None


def _check_tasks_exist(manifest: Manifest) -> Iterator[Problem]:
    for name in manifest.task:
        place = f"task.{name}"
        match = TASK.fullmatch(name)
        if match is None:
            rule = "no task is called that"
            cure = "tasks are called like `worker-1`: a role and its index"
            yield Problem(place, "", rule, cure, ())
            continue
        role, index, count = match[1], int(match[2]), getattr(manifest, match[1])
        if index >= count:
            rule = f"there is no such task: {role} = {count}"
            cure = "take the override out"
            if index == 0 or role in ("worker", "ps"):
                cure = f"raise `{role}` to {index + 1}, or {cure}"
            yield Problem(place, "", rule, cure, (role,))


def check_limits(manifest: Manifest, facts: HostFacts) -> Iterator[Problem]:
    """CPU and memory limits against the host, and environment names that are the kit's own."""
    tables: dict[str, Limits] = {f"role.{r}": getattr(manifest.role, r) for r in ROLES}
    tables |= {f"task.{name}": limits for name, limits in manifest.task.items()}
    for place, limits in tables.items():
        yield from _check_table(place, limits, facts)
    total = _memory_limits(manifest)
    alone = all((limits.memory or 0) <= facts.memory for limits in tables.values())
    if alone and total > facts.memory:
        rule = f"all memory limits add up to {_gib(total)}, this host has {_gib(facts.memory)}"
        yield Problem("memory", "", rule, "lower the limits or ask for fewer tasks")


def _memory_limits(manifest: Manifest) -> int:
    """The sum over all tasks: each role's, corrected by what single tasks say."""
    of_role: dict[str, int] = {r: getattr(manifest.role, r).memory or 0 for r in ROLES}
    total: int = sum(of_role[role] * max(0, getattr(manifest, role)) for role in ROLES)
    for name, own in manifest.task.items():
        match = TASK.fullmatch(name)
        if match and own.memory is not None and int(match[2]) < getattr(manifest, match[1]):
            total += own.memory - of_role[match[1]]
    return total


def _check_table(place: str, limits: Limits, facts: HostFacts) -> Iterator[Problem]:
    if limits.cpus is not None and limits.cpus > facts.cpus:
        rule = f"this host has {facts.cpus} CPUs"
        cure = f"at most `cpus = {facts.cpus}`"
        yield Problem(f"{place}.cpus", f"{limits.cpus:g}", rule, cure, ())
    if limits.memory is not None and limits.memory > facts.memory:
        rule = f"this host has {_gib(facts.memory)}"
        cure = f'at most `memory = "{facts.memory // 2**20}m"`'
        yield Problem(f"{place}.memory", _gib(limits.memory), rule, cure, ())
    for key in limits.environment:
        if RESERVED.fullmatch(key):
            rule = "this variable is the kit's own: it decides what the task is"
            yield Problem(f"{place}.environment.{key}", "", rule, "take it out", ())
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            rule = "no name of an environment variable"
            yield Problem(f"{place}.environment.{key}", "", rule, "letters, digits and _ only", ())


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def check_subnet(manifest: Manifest, facts: HostFacts) -> tuple[IPv4Network | None, list[Problem]]:
    """A subnet that the manifest states: well-formed, private, big enough, and free.

    Docker itself notices a clash with another Docker network only at start, and one with a route
    of the host never: it takes the gateway's address for itself.
    """
    text, last = manifest.subnet, last_indexes(manifest)
    try:
        subnet = IPv4Network(text)
    except ValueError as error:
        cure = 'write a CIDR like "172.28.0.0/24", or "auto"'
        return None, [Problem("subnet", f'"{text}"', str(error), cure, ())]
    problems = []
    if not any(subnet.subnet_of(block) for block in addresses.PRIVATE):
        rule = "not private (RFC 1918): 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16"
        cure = 'choose one inside these, e.g. "172.28.0.0/24", or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, cure, ()))
    widest, narrowest = addresses.WIDEST, addresses.NARROWEST
    if not widest <= subnet.prefixlen <= narrowest:
        rule = f"the prefix must be /{widest} to /{narrowest}"
        problems.append(Problem("subnet", f'"{text}"', rule, "e.g. a /24", ()))
    elif not too_many(manifest) and not addresses.fits(subnet.prefixlen, last):
        needed = addresses.prefix_needed(last, smallest=narrowest)
        rule = "too small for its tasks' address blocks"
        cure = f'use a /{needed} or larger, or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, cure))
    # A Docker network shows up twice: under its name, and then as its bridge's route.
    first = {network.subnet: network for network in reversed(facts.networks)}
    for network in reversed(first.values()):
        if network.cluster != manifest.name and network.subnet.overlaps(subnet):
            rule = f"overlaps {network.subnet} of {network.owner}"
            cure = 'choose another, or "auto"'
            problems.append(Problem("subnet", f'"{text}"', rule, cure, ("name",)))
    usable = not problems and not too_many(manifest)
    return (subnet if usable else None), problems
