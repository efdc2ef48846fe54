"""The variables of a task: finds those that are secrets, and the permissions of files with their
values.

`contract.interface` says what each variable of the kit means.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from cluster_kit.errors import UsageError
from cluster_kit.plan.tasks import cluster_spec
from cluster_kit.programs.style import has_estimators
from cluster_kit.resolved import OWNER, SECRETS, Cluster, Sidecar, Task
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import (
    LEAST_RANDOM,
    MASK,
    is_mixed,
    looks_secret,
    option_values,
    parts,
    url_passwords,
    userinfos,
    without_option_values,
    without_url_passwords,
)

SHARED = "CLUSTER_KIT_SHARED"
"""The path of a file that has the variables in GROWING, and TF_CONFIG's cluster, for all tasks."""
BEACON_SECRET = "CLUSTER_KIT_BEACON_SECRET"
"""The secret by which the tasks of a run know each other: made at `up`, and in no rendered file."""
TRAINING = "CLUSTER_KIT_TRAINING"
"""The training cluster, for an evaluator: an Estimator demands it."""
GROWING = ("CLUSTER_KIT_SERVERS", "NO_PROXY", "no_proxy")
"""The shared variables that name every task."""
NO_GPU = "-1"
"""The value by which CUDA sees no device."""


def shared_variables(cluster: Cluster) -> dict[str, str]:
    """Returns the variables that all tasks of a cluster have."""
    deadlines = cluster.deadlines
    switches = {"CLUSTER_KIT_OLD_API": cluster.tf1, "CLUSTER_KIT_OWN_SERVER": cluster.own_servers}
    return {
        **{name: "on" for name, on in switches.items() if on},
        "CLUSTER_KIT_BEACON": cluster.beacon,
        "CLUSTER_KIT_DATA": cluster.data,
        "CLUSTER_KIT_EVALUATOR_GRACE_S": f"{deadlines.evaluator_grace:.15g}",
        "CLUSTER_KIT_GPU_CHECK": "on" if cluster.gpu_check else "off",
        "CLUSTER_KIT_JOB_DEADLINE_S": f"{deadlines.job:.15g}",
        "CLUSTER_KIT_LEADER": cluster.leader.name,
        "CLUSTER_KIT_RETRIES": str(cluster.retries),
        "CLUSTER_KIT_SERVER": cluster.server,
        "CLUSTER_KIT_SERVERS": ",".join(task.name for task in cluster.tasks if task.serves),
        "CLUSTER_KIT_SILENT_S": f"{deadlines.silent:.15g}",
        "CLUSTER_KIT_STALL_S": "auto" if deadlines.stall is None else f"{deadlines.stall:.15g}",
        "CLUSTER_KIT_START_DEADLINE_S": f"{deadlines.start:.15g}",
        **({"CLUSTER_KIT_WAITS_FOR": json.dumps(asked)} if (asked := _waits_for(cluster)) else {}),
        "NO_PROXY": no_proxy(cluster),
        "no_proxy": no_proxy(cluster),
    }


def _waits_for(cluster: Cluster) -> list[dict[str, object]]:
    """The sidecars whose readiness the tasks check themselves."""
    return [
        {"name": one.name, "host": str(one.ip), "port": one.ready.port, "path": one.ready.path}
        for one in cluster.sidecars
        if one.ready and one.ready.port
    ]


def new_secret() -> dict[str, str]:
    """Returns BEACON_SECRET with a new random value."""
    return {BEACON_SECRET: secrets.token_hex(16)}


def no_proxy(cluster: Cluster) -> str:
    """The hosts that bypass proxies: the cluster's own gRPC must not use proxies."""
    domains = dict.fromkeys(task.host.partition(".")[2] for task in cluster.tasks if task.host)
    if domains:  # all tasks' names have this ending
        return ",".join(["localhost", "127.0.0.1", *(f".{domain}" for domain in domains)])
    names = [task.name for task in cluster.tasks] if cluster.addressing == "name" else []
    return ",".join(["localhost", "127.0.0.1", str(cluster.subnet), *names])


def own_variables(cluster: Cluster, task: Task, config: str, *, leads: bool) -> dict[str, str]:
    """Returns one task's variables: the manifest's, overridden by the kit's own, sorted by name.

    Args:
        config: the task's TF_CONFIG.
        leads: whether it is the cluster's leader.
    """
    # One bridge network, one interface: NCCL would otherwise try them all.
    bridged = task.gpus and not cluster.host_network
    variables = {"NCCL_SOCKET_IFNAME": "eth0"} if bridged else {}
    variables |= task.environment
    for key in {"NO_PROXY", "no_proxy"} & variables.keys():
        variables[key] = f"{variables[key]},{no_proxy(cluster)}"
    variables |= {"CLUSTER_KIT_TASK": task.name, "TF_CONFIG": config}
    if ROLES[task.role].evaluates:
        # Its TF_CONFIG contains only itself, and no server.
        variables["CLUSTER_KIT_SERVERS"] = ""
        # The TensorFlow version of a user's image is not known here.
        if cluster.variant is None or has_estimators(cluster.tensorflow):
            variables[TRAINING] = json.dumps(cluster_spec(cluster))
    if task.secret_files:
        variables["CLUSTER_KIT_SECRETS"] = json.dumps(
            {
                name: {"variable": variable, "stays": variable in task.secrets}
                for name, variable in task.secret_files
            }
        )
    if task.debug:
        variables["CLUSTER_KIT_DEBUG"] = str(task.debug)
    if task.bandwidth is not None:
        variables["CLUSTER_KIT_BANDWIDTH_BPS"] = str(task.bandwidth)
    if task.bandwidth is not None or cluster.user == OWNER:
        variables["CLUSTER_KIT_USER"] = cluster.user
    variables |= _gpu_environment(cluster, task)
    if leads and cluster.profile:
        variables["CLUSTER_KIT_PROFILE"] = json.dumps(dataclasses.asdict(cluster.profile))
    if leads and (promises := {t.name: _promised(t) for t in cluster.tasks if t.serves and t.gpus}):
        variables["CLUSTER_KIT_PROMISES"] = json.dumps(promises)
    return dict(sorted(variables.items()))


def _promised(task: Task) -> list[dict[str, str]]:
    """A task's GPUs in the form that the image reads."""
    return [dataclasses.asdict(gpu) for gpu in task.gpus_promised]


def _gpu_environment(cluster: Cluster, task: Task) -> dict[str, str]:
    """The variables about a task's GPUs: which it must see, and its memory limit on them."""
    variables = {}
    if task.gpus:
        variables["CLUSTER_KIT_GPUS"] = json.dumps(_promised(task))
    else:
        variables["CUDA_VISIBLE_DEVICES"] = NO_GPU
        if ROLES[task.role].gpus == "pool" and cluster.simulate_gpus:
            variables["CLUSTER_KIT_SIMULATE_GPUS"] = str(cluster.simulate_gpus)
    if task.gpu_memory_mib is not None:
        variables["CLUSTER_KIT_GPU_MEMORY_MB"] = str(task.gpu_memory_mib)
    return variables


def hides(name: str, value: str) -> bool:
    """Whether a variable's value must be hidden; False for a masked value."""
    return looks_secret(name) and value not in ("", MASK)


def mode_of(cluster: Cluster) -> int | None:
    """The permissions of a file with all values of a cluster's tasks; None for the usual ones."""
    in_addresses = any(url_passwords(text) for _, text in _texts(cluster))
    return 0o600 if _options(cluster) or in_addresses else None


def without_secrets(cluster: Cluster) -> Cluster:
    """The cluster with MASK for every value of a variable or an option that looks like a secret,
    and for passwords in addresses."""
    fetch = cluster.fetch
    return replace(
        cluster,
        tasks=tuple(map(_task_without, cluster.tasks)),
        sidecars=tuple(map(_sidecar_without, cluster.sidecars)),
        fetch=fetch and replace(fetch, args=_words_without(fetch.args)),
        requirements=without_url_passwords(cluster.requirements),
    )


def _task_without(task: Task) -> Task:
    command = (*task.command[:2], *_words_without(task.arguments))
    return replace(task, environment=shown(task.environment), command=command)


def _sidecar_without(one: Sidecar) -> Sidecar:
    words = _words_without((*(one.entrypoint or ()), *one.command))
    begin = len(one.entrypoint or ())
    return replace(
        one,
        environment=shown(one.environment),
        entrypoint=None if one.entrypoint is None else words[:begin],
        command=words[begin:],
    )


def _words_without(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(without_url_passwords, without_option_values(words)))


def shown(environment: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The variables, with MASK for every value of one that looks like a secret."""
    return tuple(
        (name, MASK if looks_secret(name) else without_url_passwords(value))
        for name, value in environment
    )


def has_secrets(words: Iterable[str]) -> bool:
    """Whether a command line has an option's value that must be hidden, or a password in an
    address."""
    command_line = tuple(words)
    return _words_without(command_line) != command_line


def _commands(cluster: Cluster) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields each command line that a manifest gives to containers, with its owner."""
    yield from ((task.role, task.arguments) for task in cluster.tasks)
    yield from ((one.name, (*(one.entrypoint or ()), *one.command)) for one in cluster.sidecars)
    if cluster.fetch is not None:
        yield "[data]", cluster.fetch.args


def _options(cluster: Cluster) -> dict[str, str]:
    """The sources of option values that look like secrets, by value."""
    return {
        value: f"an argument of {whose}"
        for whose, words in _commands(cluster)
        for value in option_values(words)
    }


def _texts(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yields the texts of a manifest that may have addresses, each after its description."""
    for whose, words in _commands(cluster):
        yield from ((f"an argument of {whose}", word) for word in words)
    variables = [pair for task in cluster.tasks for pair in task.environment]
    variables += [pair for one in cluster.sidecars for pair in one.environment]
    yield from (pair for pair in variables if not looks_secret(pair[0]))
    yield "the requirements", cluster.requirements


def _in_addresses(cluster: Cluster) -> dict[str, str]:
    """The sources of passwords in addresses, by password."""
    return {
        password: f"{where}, in an address"
        for where, text in _texts(cluster)
        for password in passwords_in(text)
    }


def passwords_in(text: str) -> set[str]:
    """The passwords of addresses in a text, except words such as `postgres`, which other texts
    contain, too."""
    return {password for password in url_passwords(text) if any(_unmistakable(password))}


def masked_in(text: str) -> set[str]:
    """The parts of addresses in a text that are masked everywhere: passwords, and for a password
    such as `postgres` the whole `USER:PASSWORD@`."""
    passwords = passwords_in(text)
    return passwords | {
        f"{user}@" for user in userinfos(text) if not any(p in user for p in passwords)
    }


def masked_of_addresses(cluster: Cluster) -> set[str]:
    """The masked parts of the addresses of a cluster; see `masked_in`."""
    return {part for _, text in _texts(cluster) for part in masked_in(text)}


MOST_BYTES = 64 * 1024
_VARIABLE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*"""
    r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\n]*)""",
    re.MULTILINE,
)
"""A line of an `env_file`; a value between quotes may have several."""
_NAME = re.compile(r"(?:export\s+)?(?:[A-Za-z_]\w{0,18}|[A-Z_][A-Z0-9_]*)")
"""A line of one that takes a variable from the caller. Longer words are rather part of a key."""


def secret_in(source: str, target: str) -> set[str]:
    """The text of a file that is mounted at `target`, if it is a secret.

    Unreadable parts are left out: an ended run must not fail because a file was removed.
    """
    if not source or PurePosixPath(target).parent != PurePosixPath(SECRETS):
        return set()
    with contextlib.suppress(OSError, ValueError), Path(source).open("rb") as file:
        return {file.read(MOST_BYTES).decode("utf-8", errors="replace")} - {""}
    return set()


def secret_variables(env_file: str) -> set[str]:
    """The values in an `env_file` whose names look like secrets, and lines that are no variables;
    {} if the file is missing."""
    values = set()
    with contextlib.suppress(OSError, ValueError), Path(env_file).open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8-sig", errors="replace")
        for name, written in _VARIABLE.findall(text):
            value = written.strip()
            if looks_secret(name) and value[:1] in ("'", '"') and value[-1] == value[0]:
                values.add(value[1:-1])
            elif looks_secret(name):
                values |= {value, value.partition(" #")[0].rstrip(), value.lstrip("'\"")}
        # A key of several lines without quotes: Compose's error has the first that is no variable.
        rest = (line.strip() for line in _VARIABLE.sub("", text).splitlines())
        values |= {line for line in rest if not (line.startswith("#") or _NAME.fullmatch(line))}
    return values - {""}


LEAST_MIXED, LEAST = 8, 12
"""Characters of a part that is found in a file by nothing but a secret: with digits and letters,
and of any kind. `postgres` is also the name of an image."""
_PLACE = re.compile(r"(/|~|[a-z][a-z0-9+]*://)[^\s@]*")
"""A path or an address without a password, which other keys may have for good."""


def known_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """The source of each secret value, by value.

    Args:
        options: whether to add those in arguments (`--token VALUE`) and in addresses.
    """
    sources = {**_options(cluster), **_in_addresses(cluster)} if options else dict[str, str]()
    for task in cluster.tasks:
        sources |= {value: name for name, value in task.environment if looks_secret(name)}
        sources |= dict.fromkeys(secret_variables(task.env_file), task.env_file)
    for one in cluster.sidecars:
        sources |= {value: name for name, value in one.environment if looks_secret(name)}
    return _values(sources) | _declared(cluster)


def refused_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """Those of `known_secrets` that no file may have.

    What a variable has that only looks like a secret's by its name may be a path or an address,
    which other keys may have for good. What is declared as a secret is one, unless it is a path:
    that of a file with credentials, say, which is mounted as well.
    """
    declared = _declared(cluster)
    return {
        value: name
        for value, name in known_secrets(cluster, options=options).items()
        if not (_is_path(value, cluster) or (value not in declared and _is_address(value)))
    }


def _declared(cluster: Cluster) -> dict[str, str]:
    """The sources of the values of `secrets` and `[secret]`, by value."""
    sources = {os.environ.get(name, ""): name for name in cluster.from_caller}
    for mount in cluster.all_mounts:
        sources |= dict.fromkeys(secret_in(mount.source, mount.target), mount.source)
    return _values(sources)


def _values(found: Mapping[str, str]) -> dict[str, str]:
    return {value: name for value, name in found.items() if value not in ("", MASK)}


def _is_address(value: str) -> bool:
    """Whether a value is an address without a password or a key."""
    if "://" not in value or not _PLACE.fullmatch(value):
        return False
    _host, *segments = re.split(r"[/?&=;#]", value.partition("://")[2])
    return not any(len(one) >= LEAST_RANDOM and is_mixed(one) for one in segments)


def _is_path(value: str, cluster: Cluster) -> bool:
    """Whether a value is a path that is there, on this host or in a container."""
    if "://" in value or not _PLACE.fullmatch(value):
        return False
    targets = (SECRETS, *(mount.target for mount in cluster.all_mounts))
    in_container = any(PurePosixPath(value).is_relative_to(target) for target in targets)
    return in_container or os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111


def refuse_in_text(text: str, file: str, cluster: Cluster, *, options: bool = True) -> str:
    """Returns the text of a file that is made of a cluster.

    Raises:
        UsageError: it has the value of a secret.
    """
    if name := secret_of(text, refused_secrets(cluster, options=options)):
        raise UsageError(
            f"{file} would have the value of a secret in clear: {name}",
            'hand it over as a secret only: `[secret]`, or `secrets = ["NAME"]`; remove it of '
            "arguments, commands and other variables",
        )
    return text


def secret_of(text: str, known: Mapping[str, str]) -> str:
    """The source of the first secret value in a text, whole or a recognizable part; "" if none.

    Quotes and dollars are also found in the escaped forms of YAML, Compose and a shell.
    """
    plain = text.replace("'\"'\"'", "'").replace("''", "'").replace("$$", "$")
    for value, name in known.items():
        if any(part in text or part in plain for part in _unmistakable(value)):
            return name
    return ""


def _unmistakable(value: str) -> Iterator[str]:
    """Yields the parts of a value that cannot be in a file by chance."""
    for part in parts(value):
        least = LEAST_MIXED if is_mixed(part) else LEAST
        if not part.startswith("-----") and len(part) >= least:
            yield part
