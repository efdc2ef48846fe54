"""Rules: names, counts, the subnet, pinned addresses, published ports, and who decides that the job
succeeded. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.field_types import IMAGE, NAME, TASK, near_name
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import addresses
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.style import check_style, runs_program
from cluster_kit.resolved import OWN_IMAGE, RestartCodes, SuccessRule
from cluster_kit.roles import DATA_WORKER, ROLES, Role
from cluster_kit.util.nearest import nearest
from cluster_kit.util.toml_text import dotted, to_toml


def check_counts(manifest: Manifest) -> Iterator[Problem]:
    """Yields counts that no cluster can have, or that do not fit the manifest's style."""
    for row in ROLES.values():
        count = manifest.count(row.name)
        if not row.allows(count):
            yield Problem(row.name, str(count), *_broken_bound(row, count))
    yield from check_style(manifest)
    yield from _check_data_workers(manifest)
    if too_many(manifest):
        role = max(ROLES, key=manifest.count)
        rule = f"too many tasks for the largest subnet, a /{addresses.WIDEST}"
        yield Problem(role, str(manifest.count(role)), rule, "ask for fewer tasks")


def _check_data_workers(manifest: Manifest) -> Iterator[Problem]:
    """Yields a problem if there are data workers, but the program cannot use them."""
    count, none = manifest.count(DATA_WORKER.name), Setting(DATA_WORKER.name, 0)
    if count <= 0:
        return
    program = PROGRAMS.get(manifest.program)
    if program is not None and not program.data_service:
        rule = f"{manifest.program} prepares its input itself, without tf.data service"
        yield Problem(DATA_WORKER.name, str(count), rule, ("write ", none), ("program",))
    if manifest.tf1:
        rule = "a program for TensorFlow 1 has no tf.data service"
        hint = ("write ", none, ", or ", Setting("tf1", False))
        yield Problem(DATA_WORKER.name, str(count), rule, hint, ("tf1",))


def _broken_bound(role: Role, count: int) -> tuple[str, HintText]:
    """The rule that this count of a role breaks, and its hint."""
    if role.most == 1:
        spec = ", in a spec of its own" if role.evaluates else ""
        return f"a cluster has at most one {role.name}{spec}", ("write ", Setting(role.name, 1))
    if role.most is not None and count > role.most:
        rule = f"a cluster has at most {role.most} tasks of the role {role.name}"
        return rule, ("write ", Setting(role.name, role.most))
    if role.least:
        few = "one" if role.least == 1 else str(role.least)
        rule = f"a cluster needs at least {few} {role.name}"
        return rule, ("write ", Setting(role.name, role.least))
    return "a count cannot be negative", ("write ", Setting(role.name, 0), " or more")


def check_tasks_exist(manifest: Manifest) -> Iterator[Problem]:
    """Yields a problem for every table `[task.…]` of a task that the cluster does not have."""
    for name in manifest.task:
        key_path = f"task.{name}"
        match = TASK.fullmatch(name)
        if match is None:
            rule = "not a valid task name"
            hint: HintText = "tasks are called like `worker-1`: a role and its index"
            yield Problem(key_path, "", rule, hint)
            continue
        role, index, count = match[1], int(match[2]), manifest.count(match[1])
        if index >= count:
            key = ROLES[role].one_for or role
            rule = f"no such task: {key} = {manifest.count(key)}"
            hint = "remove the table"
            if ROLES[role].allows(index + 1):
                hint = ("write ", Setting(key, index + 1), f", or {hint}")
            yield Problem(key_path, "", rule, hint, (key,))


def last_indexes(manifest: Manifest) -> tuple[tuple[str, int], ...]:
    """(role, highest valid index) of each role that has a task."""
    counts = ((name, manifest.count(name), row.most) for name, row in ROLES.items())
    return tuple((role, min(count, most or count) - 1) for role, count, most in counts if count > 0)


def too_many(manifest: Manifest) -> bool:
    """Whether the tasks fit in no subnet; there may then be too many to list them."""
    return addresses.prefix_needed(last_indexes(manifest)) is None


READS = (*ROLES, "name")
"""The keys that determine how large a subnet must be, and which one is free."""


def check_port(manifest: Manifest) -> Iterator[Problem]:
    """Yields a problem for a port that tasks cannot listen on."""
    if not 1024 <= manifest.port <= 65534:
        rule = "must be 1024 to 65534 (unprivileged; the next port is the beacon's)"
        yield Problem("port", str(manifest.port), rule, ("write ", Setting("port", 2222)))


def find_subnet(manifest: Manifest, facts: HostFacts) -> tuple[IPv4Network | None, list[Problem]]:
    """The subnet that the manifest gives, or a free one; None if there are problems."""
    if manifest.subnet != "auto":
        return _given_subnet(manifest, facts)
    prefix = addresses.prefix_needed(last_indexes(manifest))
    if prefix is None:
        return None, []
    subnet = addresses.pick_subnet(manifest.name, prefix, facts.networks)
    if subnet is None:
        pools = ", ".join(str(pool) for pool in addresses.POOLS)
        rule = f"Docker networks and routes of this host use all of {pools}"
        hint = "remove unused networks (docker network prune), or set `subnet`"
        return None, [Problem("subnet", '"auto"', rule, hint, READS)]
    return subnet, []


def _given_subnet(manifest: Manifest, facts: HostFacts) -> tuple[IPv4Network | None, list[Problem]]:
    """The subnet in the manifest; None if it has problems, which are added to the others.

    Docker notices an overlap with another Docker network only when the cluster starts, and an
    overlap with a route of the host never.
    """
    text, last = manifest.subnet, last_indexes(manifest)
    try:
        subnet = IPv4Network(text)
    except ValueError as error:
        hint = 'write a CIDR like "172.28.0.0/24", or "auto"'
        return None, [Problem("subnet", f'"{text}"', str(error), hint)]
    problems = []
    if not any(subnet.subnet_of(block) for block in addresses.PRIVATE):
        rule = "not private (RFC 1918): 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16"
        hint = 'choose one inside these, e.g. "172.28.0.0/24", or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, hint))
    widest, narrowest = addresses.WIDEST, addresses.NARROWEST
    if not widest <= subnet.prefixlen <= narrowest:
        rule = f"the prefix must be /{widest} to /{narrowest}"
        problems.append(Problem("subnet", f'"{text}"', rule, "e.g. a /24"))
    elif not too_many(manifest) and not addresses.fits(subnet.prefixlen, last):
        needed = addresses.prefix_needed(last, smallest=narrowest)
        rule = "too small for its tasks' address blocks"
        hint = f'use a /{needed} or larger, or "auto"'
        problems.append(Problem("subnet", f'"{text}"', rule, hint, READS))
    # A Docker network is in the facts twice: by its name, and as the route of its bridge.
    first = {network.subnet: network for network in reversed(facts.networks)}
    for network in reversed(first.values()):
        if network.cluster != manifest.name and network.subnet.overlaps(subnet):
            rule = f"overlaps {network.subnet} of {network.owner}"
            hint = 'choose another, or "auto"'
            problems.append(Problem("subnet", f'"{text}"', rule, hint, ("name",)))
    usable = not problems and not too_many(manifest)
    return (subnet if usable else None), problems


def find_pins(
    manifest: Manifest, subnet: IPv4Network | None
) -> tuple[dict[str, IPv4Address], list[Problem]]:
    """The pinned addresses by task name, and the problems of invalid or duplicate ones."""
    pins: dict[str, IPv4Address] = {}
    problems: list[Problem] = []
    for name, limits in manifest.task.items():
        if limits.ip is None:
            continue
        key_path, value = f"task.{name}.ip", f'"{limits.ip}"'
        try:
            pins[name] = IPv4Address(limits.ip)
        except ValueError:
            hint = 'write one like "172.28.0.5"'
            problems.append(Problem(key_path, value, "not a valid IPv4 address", hint))
            continue
        if manifest.subnet == "auto":
            rule = "a pinned address needs a fixed subnet"
            example = ("for example ", Setting("subnet", "172.28.0.0/24"))
            problems.append(Problem(key_path, value, rule, example, ("subnet",)))
    if subnet is not None:
        problems += _misplaced(manifest, subnet, pins)
    return pins, problems


def _misplaced(
    manifest: Manifest, subnet: IPv4Network, pins: dict[str, IPv4Address]
) -> list[Problem]:
    """The problems of pinned addresses outside the subnet, or in use."""
    if not pins or manifest.subnet == "auto":
        return []
    problems = []
    hint = f"choose a free address of {subnet}"
    taken = {
        addresses.gateway(subnet): "the gateway",
        subnet.network_address: "the network's own address",
        subnet.broadcast_address: "the broadcast address",
    }
    for role, last in last_indexes(manifest):
        for index in range(last + 1):
            if f"{role}-{index}" not in pins:
                taken[addresses.of(subnet, role, index)] = f"{role}-{index}"
    for name, number in zip(manifest.sidecar, range(len(addresses.SIDECARS)), strict=False):
        taken[addresses.of_sidecar(subnet, number)] = f"the sidecar {name}"
    for name, address in pins.items():
        key_path, value = f"task.{name}.ip", f'"{address}"'
        if address not in subnet:
            rule = f"outside the subnet {subnet}"
            problems.append(Problem(key_path, value, rule, hint, ("subnet",)))
        elif address in taken:
            rule = f"taken by {taken[address]}"
            problems.append(
                Problem(key_path, value, rule, hint, (*ROLES, "subnet", "task", "sidecar"))
            )
        taken.setdefault(address, name)
    return problems


def check_ports(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of ports that two tasks would share, and of ports on an internal network."""
    taken: dict[int, str] = {}
    for key_path, ports in published(manifest):
        for host, _ in ports:
            if host in taken:
                rule = f"{taken[host]} already publishes 127.0.0.1:{host}"
                hint = 'give it another port of this host, e.g. "8081:80"'
                yield Problem(key_path, str(host), rule, hint, (*ROLES, "role", "task", "sidecar"))
            taken.setdefault(host, key_path)
    yield from _shared(manifest)
    if manifest.network.internal and taken:
        rule = f"an internal network cannot publish ports: {', '.join(map(str, sorted(taken)))}"
        hint = "remove this, or remove `ports`"
        yield Problem("network.internal", "true", rule, hint, ("role", "task", "sidecar"))


def published(manifest: Manifest) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yields every key that publishes ports, with its pairs of host port and container port."""
    for role in ROLES:
        if ports := manifest.limits(role).ports:
            yield f"role.{role}.ports", ports
    for name, limits in manifest.task.items():
        if limits.ports:
            yield f"task.{name}.ports", limits.ports
    for name, sidecar in manifest.sidecar.items():
        if sidecar.ports:
            yield f"sidecar.{name}.ports", sidecar.ports


def _shared(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of ports that a role sets for several tasks."""
    for role in ROLES:
        ports, count = manifest.limits(role).ports, manifest.count(role)
        for name, limits in manifest.task.items():
            match = TASK.fullmatch(name)
            if match and match[1] == role and int(match[2]) < manifest.count(role):
                count -= limits.ports is not None
        if ports and count > 1:
            rule = f"{count} tasks cannot publish the same port of this host"
            hint = f"set it for one task: `ports` under [task.{role}-0]"
            yield Problem(f"role.{role}.ports", str(ports[0][0]), rule, hint, (role, "task"))


OWN = Setting("image", OWN_IMAGE)


def check_names(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of `name` and `image`, and of `requirements` with an image of the user's."""
    hint: HintText
    if not NAME.fullmatch(manifest.name):
        rule = "must be a DNS label of at most 40 characters: a-z, 0-9 and inner hyphens"
        hint = ("for example ", Setting("name", near_name(manifest.name)))
        yield Problem("name", f'"{manifest.name}"', rule, hint)
    if not IMAGE.fullmatch(manifest.image):
        rule = "not a valid name of an image"
        hint = ("write ", OWN, ', or one like "registry:5000/team/name:tag"')
        yield Problem("image", f'"{manifest.image}"', rule, hint)
    elif manifest.build:
        yield from _beside_build(manifest)
    elif manifest.image != OWN_IMAGE and manifest.requirements:
        rule = f"the kit installs packages only in its own image, not in {manifest.image}"
        hint = ("install them in your image, or set ", OWN)
        yield Problem("requirements", f'"{manifest.requirements}"', rule, hint)


def _beside_build(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of keys that cannot be combined with `build`."""
    if "image" in manifest.model_fields_set:
        rule = "the image is built from a Dockerfile (`build`), so `image` cannot name another one"
        yield Problem("image", f'"{manifest.image}"', rule, "remove `image` or `build`")
    if manifest.requirements:
        rule = "the kit installs packages only in its own image, not in one that `build` makes"
        hint = "remove it, and install them in your Dockerfile: `RUN pip install …`"
        yield Problem("requirements", f'"{manifest.requirements}"', rule, hint)


LEADS = tuple(role for role in ROLES.values() if role.leads)
"""The roles that train, and can decide that the job succeeded."""
ROUNDING = 1e-9
"""A share of 0.7 of ten tasks is seven, not eight."""


def success_of(manifest: Manifest) -> SuccessRule | None:
    """The rule of a valid manifest; None if the leader decides."""
    shares = manifest.success
    if shares == "leader":
        return None
    if not isinstance(shares, dict):
        shares = {role.name: 1 for role in LEADS if _decides(manifest, role)}
    needed = {
        role.name: math.ceil(shares[role.name] * manifest.count(role.name) - ROUNDING)
        for role in LEADS
        if role.name in shares
    }
    evaluators = [
        shares[one.name] for one in ROLES.values() if one.evaluates and one.name in shares
    ]
    return SuccessRule(to_toml(manifest.success), tuple(needed.items()), all(evaluators))


def restart_of(manifest: Manifest) -> RestartCodes:
    """The exit codes that the manifest names."""
    table = manifest.restart
    return RestartCodes(tuple(table.permanent), tuple(table.retryable))


def _decides(manifest: Manifest, role: Role) -> bool:
    return manifest.count(role.name) > 0 and runs_program(manifest, role.name)


def check_policies(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of `success` and `[restart]`."""
    if isinstance(manifest.success, dict):
        yield from _check_shares(manifest, manifest.success)
    yield from _check_codes(manifest)


def _check_shares(manifest: Manifest, shares: dict[str, int | float]) -> Iterator[Problem]:
    reads = (*ROLES, "style", "tf1", "ps_runs")
    for name, share in shares.items():
        role, key_path, value = ROLES.get(name), dotted(["success", name]), to_toml(share)
        if role is None:
            near = nearest(name, [one.name for one in LEADS])
            hint = f"did you mean `{near}`?" if near else f"name {_names(LEADS)}"
            yield Problem(key_path, value, "no such role", hint)
        elif role.evaluates and share not in (0, 1):
            rule = f"an {name} decides with the others (1), or does not (0)"
            yield Problem(key_path, value, rule, _example(shares, name, 1))
        elif role.evaluates:
            continue
        elif not role.leads:
            rule = f"a {name} never ends by itself, so it cannot decide"
            yield Problem(key_path, value, rule, f"remove it, and name {_names(LEADS)}")
        elif not manifest.count(name):
            hint_of_role: HintText = ("remove it, or write ", Setting(name, 1))
            yield Problem(key_path, value, f"the cluster has no {name}", hint_of_role, reads)
        elif not runs_program(manifest, name):
            rule = f"under a coordinator every {name} is a server, which never ends by itself"
            hint_of_style: HintText = (
                "remove it: the chief decides, or write ",
                Setting("style", "all-tasks"),
                f" if each {name} runs the program",
            )
            yield Problem(key_path, value, rule, hint_of_style, reads)
        elif not 0 < share <= 1:
            rule = f"a share of the {name} tasks is more than 0 and at most 1"
            yield Problem(key_path, value, rule, f"{_example(shares, name, 0.5)}: half of them")
    if not any(role.name in shares for role in LEADS) and all(name in ROLES for name in shares):
        deciding = [one.name for one in LEADS if _decides(manifest, one)]
        decides = (deciding or [LEADS[0].name])[-1]
        rule = "names no task that trains, so nobody decides"
        yield Problem("success", to_toml(shares), rule, _example(shares, decides, 1), reads)


def _example(shares: Mapping[str, int | float], name: str, share: float) -> str:
    """The shares with another one of this role, as a hint."""
    known = {role: value for role, value in shares.items() if role in ROLES}
    return f"for example `success = {to_toml({**known, name: share})}`"


def _names(roles: Sequence[Role]) -> str:
    return " or ".join(f"`{role.name}`" for role in roles)


def _check_codes(manifest: Manifest) -> Iterator[Problem]:
    table = manifest.restart
    both = sorted({*_each(table.permanent)} & {*_each(table.retryable)})
    if both:
        rule = f"{_text(both)} cannot be both permanent and retryable"
        hint: HintText = "name each exit code in one of the two lists"
        yield Problem("restart.retryable", _written(table.retryable), rule, hint)
    if table.retryable and not manifest.retries:
        rule = "with `retries = 0`, no program is started again"
        hint = ("write ", Setting("retries", 3), ", or remove it")
        yield Problem("restart.retryable", _written(table.retryable), rule, hint, ("retries",))


def _each(ranges: Sequence[tuple[int, int]]) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)


def _text(codes: Sequence[int]) -> str:
    first, more = codes[0], len(codes) - 1
    return f"exit code {first}" if not more else f"exit code {first} (and {more} more)"


def _written(ranges: Sequence[tuple[int, int]]) -> str:
    """The codes as in the manifest."""
    return to_toml([first if first == last else f"{first}-{last}" for first, last in ranges])
