"""Rules: limits, variables, mounts, secrets and services of containers. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from pathlib import PurePosixPath

from cluster_kit.contract import scheduling
from cluster_kit.errors import Problem, Setting
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.field_types import IMAGE, NAME, TASK, near_name
from cluster_kit.manifest.schema import (
    Limits,
    Manifest,
    MountTable,
    PlainMount,
    SidecarTable,
)
from cluster_kit.plan import addresses
from cluster_kit.plan.tasks import is_template, shares_image
from cluster_kit.resolved import OUTPUT, OWNER, RESERVED
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import MASK
from cluster_kit.util.nearest import proposal
from cluster_kit.util.toml_text import to_toml

IDLE_SERVER = 82 << 20
"""The memory of an idle TensorFlow server in bytes, which every task needs at least."""
ENOUGH = "512m"
SCHEDULING = "CLUSTER_KIT_SCHEDULING"
_LOADED = re.compile(r"PATH|(LD|PYTHON)[A-Z0-9_]*")
"""Variables that set the directories of programs, libraries and modules."""
_LOADED_BY_HOME = ("HOME",)
"""Variables that set Python's modules below the home directory; the kit's image ignores them."""


def check_limits(manifest: Manifest, facts: HostFacts) -> Iterator[Problem]:
    """Yields problems of limits that exceed this host, and of environment variables."""
    tables: dict[str, Limits] = {f"role.{r}": manifest.limits(r) for r in ROLES}
    tables |= {f"task.{name}": limits for name, limits in manifest.task.items()}
    for key_path, limits in tables.items():
        yield from _check_table(key_path, limits, facts)
        if facts.user == OWNER or _is_shaped(manifest, key_path):
            yield from _check_start(manifest, key_path, limits)
    total = _memory_limits(manifest)
    alone = all((limits.memory or 0) <= facts.memory for limits in tables.values())
    if alone and total > facts.memory:
        rule = (
            f"the sum of all memory limits is {_gib(total)}, but this host has {_gib(facts.memory)}"
        )
        hint = "lower the limits, or ask for fewer tasks"
        yield Problem("memory", "", rule, hint, (*ROLES, "role", "task"))


def _memory_limits(manifest: Manifest) -> int:
    """The sum of all tasks' memory limits in bytes; a task's limit replaces its role's."""
    of_role: dict[str, int] = {r: manifest.limits(r).memory or 0 for r in ROLES}
    total: int = sum(of_role[role] * max(0, manifest.count(role)) for role in ROLES)
    for name, of_task in manifest.task.items():
        match = TASK.fullmatch(name)
        if match and of_task.memory is not None and int(match[2]) < manifest.count(match[1]):
            total += of_task.memory - of_role[match[1]]
    return total


def _check_table(key_path: str, limits: Limits, facts: HostFacts) -> Iterator[Problem]:
    """Yields the problems of one table `[role.…]` or `[task.…]`."""
    if limits.cpus is not None and limits.cpus > facts.cpus:
        rule = f"this host has {facts.cpus} CPUs"
        most = Setting(f"{key_path}.cpus", facts.cpus)
        yield Problem(most.key, f"{limits.cpus:g}", rule, ("at most ", most))
    if limits.memory is not None and limits.memory > facts.memory:
        rule = f"this host has {_gib(facts.memory)}"
        most = Setting(f"{key_path}.memory", f"{facts.memory // 2**20}m")
        yield Problem(most.key, _gib(limits.memory), rule, ("at most ", most))
    if limits.memory is not None and limits.memory < IDLE_SERVER:
        rule = f"an idle TensorFlow server needs {_mib(IDLE_SERVER)}"
        enough = Setting(f"{key_path}.memory", ENOUGH)
        yield Problem(enough.key, _mib(limits.memory), rule, ("for example ", enough))
    for key in limits.environment:
        yield from check_name(f"{key_path}.environment.{key}", "", key)
        value = limits.environment[key]
        if key == SCHEDULING and not scheduling.is_valid(value):
            where, rule = f"{key_path}.environment.{key}", scheduling.RULE
            yield Problem(where, to_toml(value), rule, "use one of them")
    for key in limits.secrets or ():
        yield from check_name(f"{key_path}.secrets", to_toml(key), key)
        if key in limits.environment:
            rule = "it has a value in `environment`, too"
            yield Problem(f"{key_path}.secrets", to_toml(key), rule, "remove one of them")


def _is_shaped(manifest: Manifest, key_path: str) -> bool:
    """Whether a task of this table has a `bandwidth`, from this table or another one."""
    table, _, name = key_path.partition(".")
    if table == "task":
        match = TASK.fullmatch(name)  # another rule reports unknown names
        of_task = manifest.limits_of(match[1], int(match[2])) if match else None
        return of_task is not None and of_task.bandwidth is not None
    of_tasks = [limits for key, limits in manifest.task.items() if key.startswith(f"{name}-")]
    return any(one.bandwidth is not None for one in (manifest.limits(name), *of_tasks))


def _check_start(manifest: Manifest, key_path: str, limits: Limits) -> Iterator[Problem]:
    """Yields problems of variables that let a container run tasks' files as root."""
    written = [OUTPUT, *(m.target for _, m in placed(manifest) if not m.read_only)]
    for name, value in limits.environment.items():
        by_home = name in _LOADED_BY_HOME and not manifest.runs_in_kits_image
        places = [posixpath.normpath(word) for word in re.split("[: ]", value) if word]
        below = [p for p in places for top in written if PurePosixPath(p).is_relative_to(top)]
        if (below or is_template(value)) and (by_home or _LOADED.fullmatch(name)):
            rule = (
                "its container starts as root, and root would run files that programs have "
                "written there"
            )
            hint = "name a directory that tasks cannot write, or set it in the program"
            yield Problem(f"{key_path}.environment.{name}", to_toml(value), rule, hint)


def check_name(key_path: str, value: str, key: str) -> Iterator[Problem]:
    """Yields the problems of an environment variable's name."""
    if RESERVED.fullmatch(key):
        rule = "the kit sets this variable: it determines the task"
        yield Problem(key_path, value, rule, "remove it")
    elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        rule = "not a valid name of an environment variable"
        yield Problem(key_path, value, rule, "use only letters, digits and _")


def _mib(size: int) -> str:
    return f"{size / 2**20:.3g} MiB"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


ULIMITS = (
    "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc",
    "rss", "rtprio", "rttime", "sigpending", "stack",
)  # fmt: skip


def check_resources(manifest: Manifest, facts: HostFacts) -> Iterator[Problem]:
    """Yields problems of shared memory that a task cannot have, and of unknown ulimits."""
    for table, limits in manifest.limits_by_table():
        yield from _check_shm(f"{table}.shm_size", limits, facts)
        for name in limits.ulimits:
            if name not in ULIMITS:
                hint = proposal(name, list(ULIMITS)) or f"known ulimits: {', '.join(ULIMITS)}"
                yield Problem(f"{table}.ulimits.{name}", "", "no such ulimit", hint)


def _check_shm(key_path: str, limits: Limits, facts: HostFacts) -> Iterator[Problem]:
    if limits.shm_size is None:
        return
    value = f"{limits.shm_size / 2**30:.3g} GiB"
    if limits.shm_size > facts.memory:
        rule = f"this host has {facts.memory / 2**30:.1f} GiB of memory"
        most = Setting(key_path, f"{facts.memory // 2**20}m")
        yield Problem(key_path, value, rule, ("at most ", most))
    elif limits.memory is not None and limits.shm_size > limits.memory:
        rule = f"it counts as the task's memory, whose limit is {limits.memory / 2**30:.3g} GiB"
        yield Problem(key_path, value, rule, "raise `memory` there, or lower this")


OWN = tuple(
    map(
        PurePosixPath,
        ("/program", "/data", "/output", "/run/secrets", "/opt/trainer", "/opt/venv",
         "/opt/datasets", "/proc", "/sys", "/dev"),
    )
)  # fmt: skip
"""Directories of the kit, its image or the kernel; no mount can be at or below them."""
WHOLE = tuple(
    map(
        PurePosixPath,
        ("/bin", "/etc", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/lib", "/lib64",
         "/opt", "/run", "/sbin", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/var"),
    )
)  # fmt: skip
"""Directories that a container needs; mounts are possible only below them."""
EXAMPLE = 'for example `target = "/cache"`'


def check_mounts(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of mounts: impossible targets and unknown roles."""
    for key_path, mount in placed(manifest):
        yield from check_target(key_path, mount)
        yield from check_roles(f"{key_path}.roles", mount.roles)
    yield from check_together(tuple(placed(manifest)))


def check_roles(key_path: str, roles: Iterable[str]) -> Iterator[Problem]:
    """Yields problems of unknown roles."""
    for role in roles:
        if role not in ROLES:
            hint = proposal(role, list(ROLES)) or f"roles: {', '.join(ROLES)}"
            yield Problem(key_path, to_toml(role), "no such role", hint)


def placed(manifest: Manifest) -> Iterator[tuple[str, MountTable]]:
    """Yields the manifest's mounts, each with its key (`mount.0`)."""
    yield from ((f"mount.{number}", mount) for number, mount in enumerate(manifest.mount))


def check_absolute(key_path: str, mount: PlainMount) -> Iterator[Problem]:
    """Yields a problem for a target that is not an absolute path."""
    if not re.match(r"/(?!/)", mount.target) or mount.target != posixpath.normpath(mount.target):
        rule = "must be an absolute path, without `..` and without a trailing slash"
        yield Problem(f"{key_path}.target", to_toml(mount.target), rule, EXAMPLE)


def check_target(key_path: str, mount: MountTable) -> Iterator[Problem]:
    """Yields the problem of a target at which nothing can be mounted."""
    key, value, target = f"{key_path}.target", to_toml(mount.target), PurePosixPath(mount.target)
    if faults := list(check_absolute(key_path, mount)):
        yield from faults
        return
    reserved = next((path for path in OWN if target.is_relative_to(path)), None)
    if reserved or target in WHOLE or any(path.is_relative_to(target) for path in OWN):
        rule = f"{reserved or target} in a container belongs to the kit or the system"
        yield Problem(key, value, rule, f"choose another directory, {EXAMPLE}")


def check_together(mounts: tuple[tuple[str, MountTable], ...]) -> Iterator[Problem]:
    """Yields problems of targets that are equal to or inside another mount of the same role."""
    for number, (key_path, mount) in enumerate(mounts):
        for before, other in mounts[:number]:
            if not _share_a_role(mount, other):
                continue
            key, value = f"{key_path}.target", to_toml(mount.target)
            if mount.target == other.target:
                rule = f"{before} is mounted there"
                yield Problem(key, value, rule, "choose another directory, or other `roles`")
            elif _nested(mount.target, other.target):
                rule = f"one of them would be inside the other: {before} is at {other.target}"
                yield Problem(
                    key, value, rule, "choose directories of which neither contains the other"
                )


def _share_a_role(one: MountTable, other: MountTable) -> bool:
    return not (one.roles and other.roles) or not set(one.roles).isdisjoint(other.roles)


def _nested(one: str, other: str) -> bool:
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)


FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


def check_secret_files(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of secrets: invalid file names, and values with no source or two sources."""
    for name, secret in manifest.secret.items():
        key_path = f"secret.{name}"
        if not FILE.fullmatch(name):
            rule = "not a valid name of a file in /run/secrets"
            yield Problem(key_path, "", rule, "use only letters, digits, `_`, `-` and `.`")
        if bool(secret.file) == bool(secret.environment):
            rule = (
                "it has no source for its value"
                if not secret.file
                else "it has two sources for its value"
            )
            hint = (
                f'write `{_key(name)} = "PATH"`, or `{_key(name)} = {{ environment = "VARIABLE" }}`'
            )
            yield Problem(key_path, "", rule, hint)
        elif secret.environment:
            key = f"{key_path}.environment"
            name, equals, _ = secret.environment.partition("=")
            yield from check_name(
                key, to_toml(f"{name}={MASK}" if equals else name), secret.environment
            )
        yield from check_roles(f"{key_path}.roles", secret.roles)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else to_toml(name)


MOST = len(addresses.SIDECARS)


def check_sidecars(manifest: Manifest) -> Iterator[Problem]:
    """Yields the problems of each sidecar, and of all together."""
    if len(manifest.sidecar) > MOST:
        rule = f"a cluster has addresses for at most {MOST} sidecars"
        yield Problem("sidecar", str(len(manifest.sidecar)), rule, "remove some of them")
    if manifest.sidecar:
        yield from _check_subnet(manifest.subnet)
    for name, table in manifest.sidecar.items():
        key_path = f"sidecar.{name}"
        yield from _check_name(key_path, name)
        yield from _check_command(key_path, table)
        yield from _check_variables(key_path, table)
        yield from _check_mounts(key_path, table)


def _check_subnet(subnet: str) -> Iterator[Problem]:
    """Yields a problem for a subnet without addresses for sidecars; other rules report an invalid
    subnet.
    """
    try:
        prefix = addresses.WHOLE if subnet == "auto" else IPv4Network(subnet).prefixlen
    except ValueError:
        return
    if prefix > addresses.WHOLE:
        rule = f"sidecars need a subnet of /{addresses.WHOLE} or larger"
        hint = f'use a /{addresses.WHOLE}, or "auto"'
        yield Problem("subnet", to_toml(subnet), rule, hint, ("sidecar",))


def _check_name(key_path: str, name: str) -> Iterator[Problem]:
    if TASK.fullmatch(name) or name == "localhost":
        taken = "a task is" if TASK.fullmatch(name) else "each container itself is"
        rule = f"taken: {taken} called so"
        yield Problem(key_path, "", rule, "choose another name, for example [sidecar.metrics]")
    elif not NAME.fullmatch(name):
        rule = "must be a DNS label of at most 40 characters: a-z, 0-9 and inner hyphens"
        yield Problem(key_path, "", rule, f"for example [sidecar.{near_name(name)}]")


def _check_command(key_path: str, table: SidecarTable) -> Iterator[Problem]:
    """Yields problems of an invalid image name, and of the tasks' image without a command."""
    if not shares_image(table) and not IMAGE.fullmatch(table.image):
        rule = "not a valid name of an image"
        hint = ("write one like ", Setting(f"{key_path}.image", "redis:7"))
        yield Problem(f"{key_path}.image", to_toml(table.image), rule, hint)
    if table.command or table.entrypoint:
        return
    if shares_image(table) or table.entrypoint == []:
        whose_command = "the image of the tasks" if shares_image(table) else "no entry point"
        rule = f"with {whose_command} it needs a command"
        yield Problem(
            key_path, "", rule, 'for example `command = ["python3", "-m", "http.server"]`'
        )


def _check_variables(key_path: str, table: SidecarTable) -> Iterator[Problem]:
    for key in table.environment:
        yield from check_name(f"{key_path}.environment.{key}", "", key)
    for key in table.secrets:
        yield from check_name(f"{key_path}.secrets", to_toml(key), key)
        if key in table.environment:
            rule = "it has a value in `environment`, too"
            yield Problem(f"{key_path}.secrets", to_toml(key), rule, "remove one of them")


def _check_mounts(key_path: str, table: SidecarTable) -> Iterator[Problem]:
    """Yields problems of targets that are invalid or used twice; the image's files are unknown."""
    seen: set[str] = set()
    for number, mount in enumerate(table.mount):
        key = f"{key_path}.mount.{number}"
        yield from check_absolute(key, mount)
        if re.fullmatch("/+", mount.target) or mount.target in seen:
            rule = "nothing can be mounted at /" if mount.target not in seen else "taken"
            yield Problem(f"{key}.target", to_toml(mount.target), rule, "choose another directory")
        seen.add(mount.target)
