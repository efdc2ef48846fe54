"""The rules a manifest must keep, each with its cure. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from cluster_kit import addresses
from cluster_kit.cluster import ROLES, Role
from cluster_kit.errors import Problem
from cluster_kit.facts import HostFacts
from cluster_kit.manifest import Limits, Manifest

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
RESERVED = re.compile(r"TF_CONFIG|CUDA_VISIBLE_DEVICES|CLUSTER_KIT_\w+")


def check_shape(manifest: Manifest) -> Iterator[Problem]:
    """Names, counts, port, and overrides that point at nothing."""
    if not NAME.fullmatch(manifest.name):
        rule = "must be a DNS label of at most 40 characters: a-z, 0-9 and inner hyphens"
        near = re.sub(r"[^a-z0-9]+", "-", manifest.name.lower()).strip("-")[:40] or "my-cluster"
        yield Problem("name", f'"{manifest.name}"', rule, f'for example `name = "{near}"`')
    yield from _check_counts(manifest)
    if not 1024 <= manifest.port <= 65534:
        rule = "must be 1024 to 65534 (unprivileged; the next port is the beacon's)"
        yield Problem("port", str(manifest.port), rule, "write `port = 2222`")
    yield from _check_tasks_exist(manifest)


def _check_counts(manifest: Manifest) -> Iterator[Problem]:
    if manifest.chief not in (0, 1):
        rule = "a cluster has at most one chief"
        yield Problem("chief", str(manifest.chief), rule, "write `chief = 1`")
    if manifest.evaluator not in (0, 1):
        rule = "a cluster has at most one evaluator, in a spec of its own"
        yield Problem("evaluator", str(manifest.evaluator), rule, "write `evaluator = 1`")
    if manifest.worker < 1:
        rule = "a cluster needs at least one worker"
        yield Problem("worker", str(manifest.worker), rule, "write `worker = 1`")
    if manifest.ps < 0:
        rule = "a count cannot be negative"
        yield Problem("ps", str(manifest.ps), rule, "write `ps = 0` or more")
    if manifest.ps > 0 and manifest.chief == 0:
        rule = "ps tasks need a chief that coordinates them"
        yield Problem("ps", str(manifest.ps), rule, "write `chief = 1`, or `ps = 0`")
    if manifest.chief == 1 and manifest.ps == 0:
        rule = "at least 1 ps task is needed under a chief that coordinates workers"
        yield Problem("ps", "0", rule, "write `ps = 1`, or `chief = 0`")


def _check_tasks_exist(manifest: Manifest) -> Iterator[Problem]:
    for name in manifest.task:
        role, _, index = name.rpartition("-")
        place = f"task.{name}"
        if role not in ROLES or not index.isdigit() or str(int(index)) != index:
            rule = "no task is called that"
            yield Problem(place, "", rule, "tasks are called like `worker-1`: a role and its index")
        elif int(index) >= getattr(manifest, role):
            count = getattr(manifest, role)
            rule = f"there is no such task: {role} = {count}"
            cure = f"raise `{role}` to {int(index) + 1}, or take the override out"
            yield Problem(place, "", rule, cure)


def check_limits(manifest: Manifest, facts: HostFacts) -> Iterator[Problem]:
    """CPU and memory limits against the host, and environment names that are the kit's own."""
    for role in ROLES:
        yield from _check_table(f"role.{role}", getattr(manifest.role, role), facts)
    for name, limits in manifest.task.items():
        yield from _check_table(f"task.{name}", limits, facts)
    total = sum(_memory_limits(manifest))
    if total > facts.memory:
        rule = f"all memory limits add up to {_gib(total)}, this host has {_gib(facts.memory)}"
        yield Problem("memory", "", rule, "lower the limits or ask for fewer tasks")


def _memory_limits(manifest: Manifest) -> Iterator[int]:
    for role in ROLES:
        of_role = getattr(manifest.role, role).memory or 0
        for index in range(getattr(manifest, role)):
            own = manifest.task.get(f"{role}-{index}")
            limit = (own.memory if own else None) or of_role
            if limit:
                yield limit


def _check_table(place: str, limits: Limits, facts: HostFacts) -> Iterator[Problem]:
    if limits.cpus is not None and limits.cpus > facts.cpus:
        rule = f"this host has {facts.cpus} CPUs"
        yield Problem(f"{place}.cpus", f"{limits.cpus:g}", rule, f"at most `cpus = {facts.cpus}`")
    if limits.memory is not None and limits.memory > facts.memory:
        rule = f"this host has {_gib(facts.memory)}"
        yield Problem(f"{place}.memory", _gib(limits.memory), rule, "lower it")
    for key in limits.environment:
        if RESERVED.fullmatch(key):
            rule = "this variable is the kit's own: it decides what the task is"
            yield Problem(f"{place}.environment.{key}", "", rule, "take it out")
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            rule = "no name of an environment variable"
            yield Problem(f"{place}.environment.{key}", "", rule, "letters, digits and _ only")


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def check_subnet(
    manifest: Manifest, facts: HostFacts, last: tuple[tuple[Role, int], ...]
) -> tuple[IPv4Network | None, list[Problem]]:
    """A subnet that the manifest states: well-formed, private, big enough, and free.

    Docker itself notices a clash with another Docker network only at start, and one with a route
    of the host never: it takes the gateway's address for itself.
    """
    text = manifest.subnet
    try:
        subnet = IPv4Network(text)
    except ValueError as error:
        cure = 'write a CIDR like "172.28.0.0/24", or "auto"'
        return None, [Problem("subnet", f'"{text}"', str(error), cure)]
    problems = []
    if not any(subnet.subnet_of(block) for block in addresses.PRIVATE):
        rule = "not private (RFC 1918): 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16"
        cure = 'choose one inside these, e.g. "172.28.0.0/24", or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, cure))
    widest, narrowest = addresses.WIDEST, addresses.NARROWEST
    if not widest <= subnet.prefixlen <= narrowest:
        rule = f"the prefix must be /{widest} to /{narrowest}"
        problems.append(Problem("subnet", f'"{text}"', rule, "e.g. a /24"))
    elif not addresses.fits(subnet.prefixlen, last):
        needed = addresses.prefix_needed(last, smallest=narrowest)
        rule = "too small for its tasks' address blocks"
        cure = f'use a /{needed} or larger, or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, cure))
    for network in facts.networks:
        if network.cluster != manifest.name and network.subnet.overlaps(subnet):
            rule = f"overlaps {network.subnet} of {network.owner}"
            problems.append(Problem("subnet", f'"{text}"', rule, 'choose another, or "auto"'))
    return (None if problems else subnet), problems
