"""Makes the environment variables of tasks, finds secrets among their values, and masks them.

`contract.interface` documents the kit's own variables.
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
from cluster_kit.resolved import OWNER, SECRETS, Cluster, RestartCodes, Sidecar, Task
from cluster_kit.roles import PS, ROLES, gpu_pool, trainers
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
"""The path of a file with values for all tasks: the variables in GROWING, and TF_CONFIG's
cluster."""
BEACON_SECRET = "CLUSTER_KIT_BEACON_SECRET"
"""The secret that authenticates the tasks of a run to each other: made at `up`, and written into no
rendered file."""
TRAINING = "CLUSTER_KIT_TRAINING"
"""The training cluster's spec, for the evaluator: Estimators require it."""
GROWING = ("CLUSTER_KIT_SERVERS", "NO_PROXY", "no_proxy")
"""The shared variables whose length grows with the number of tasks, since they name all of them."""
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
        **_policies(cluster),
        "CLUSTER_KIT_RETRIES": str(cluster.retries),
        "CLUSTER_KIT_SERVER": cluster.server,
        "CLUSTER_KIT_SERVERS": ",".join(task.name for task in cluster.tasks if task.serves),
        "CLUSTER_KIT_SILENT_S": f"{deadlines.silent:.15g}",
        "CLUSTER_KIT_STALL_S": "auto" if deadlines.stall is None else f"{deadlines.stall:.15g}",
        "CLUSTER_KIT_START_DEADLINE_S": f"{deadlines.start:.15g}",
        **({"CLUSTER_KIT_DATA_SERVICE": address} if (address := cluster.data_service) else {}),
        **({"CLUSTER_KIT_WAITS_FOR": json.dumps(waits)} if (waits := _waits_for(cluster)) else {}),
        "NO_PROXY": no_proxy(cluster),
        "no_proxy": no_proxy(cluster),
    }


def _policies(cluster: Cluster) -> dict[str, str]:
    """The variables about success and exit codes, for clusters that do not leave both to the
    leader."""
    variables = {}
    if cluster.restart != RestartCodes():
        variables["CLUSTER_KIT_RESTART"] = json.dumps(dataclasses.asdict(cluster.restart))
    if rule := cluster.success:
        needed = {"text": rule.text, "needed": dict(rule.needed)}
        variables["CLUSTER_KIT_SUCCESS"] = json.dumps(needed)
    return variables


def _waits_for(cluster: Cluster) -> list[dict[str, object]]:
    """Returns the sidecars that the tasks themselves check for readiness."""
    return [
        {"name": s.name, "host": str(s.ip), "port": s.ready.port, "path": s.ready.path}
        for s in cluster.sidecars
        if s.ready and s.ready.port
    ]


def new_secret() -> dict[str, str]:
    """Returns BEACON_SECRET with a new random value."""
    return {BEACON_SECRET: secrets.token_hex(16)}


def no_proxy(cluster: Cluster) -> str:
    """Returns the hosts to which connections bypass proxies, since gRPC between tasks must."""
    domains = dict.fromkeys(task.host.partition(".")[2] for task in cluster.tasks if task.host)
    if domains:  # the names of all tasks end with one of these
        return ",".join(["localhost", "127.0.0.1", *(f".{domain}" for domain in domains)])
    names = [task.name for task in cluster.tasks] if cluster.addressing == "name" else []
    return ",".join(["localhost", "127.0.0.1", str(cluster.subnet), *names])


def own_variables(cluster: Cluster, task: Task, config: str, *, leads: bool) -> dict[str, str]:
    """Returns one task's variables, sorted by name: the kit's own override the manifest's.

    Args:
        config: the task's TF_CONFIG.
        leads: whether the task is the cluster's leader.
    """
    # A container has one interface in the bridge network; NCCL would otherwise try all interfaces.
    bridged = task.gpus and not cluster.host_network
    variables = {"NCCL_SOCKET_IFNAME": "eth0"} if bridged else {}
    variables |= task.environment
    for key in {"NO_PROXY", "no_proxy"} & variables.keys():
        variables[key] = f"{variables[key]},{no_proxy(cluster)}"
    variables |= {"CLUSTER_KIT_TASK": task.name, "TF_CONFIG": config}
    if not ROLES[task.role].trains:
        variables["CLUSTER_KIT_SERVERS"] = ""  # its TF_CONFIG contains no server
    # The TensorFlow version of a user's image is not known here.
    estimators = cluster.variant is None or has_estimators(cluster.tensorflow)
    if ROLES[task.role].evaluates and estimators:
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
    variables |= _gpu_environment(cluster, task) | _trainers(cluster, task)
    if leads and cluster.profile:
        variables["CLUSTER_KIT_PROFILE"] = json.dumps(dataclasses.asdict(cluster.profile))
    if leads and (promises := {t.name: _promised(t) for t in cluster.tasks if t.serves and t.gpus}):
        variables["CLUSTER_KIT_PROMISES"] = json.dumps(promises)
    return dict(sorted(variables.items()))


def _promised(task: Task) -> list[dict[str, str]]:
    """Returns the GPUs that a task was promised, in the form that the image reads."""
    return [dataclasses.asdict(gpu) for gpu in task.gpus_promised]


def _gpu_environment(cluster: Cluster, task: Task) -> dict[str, str]:
    """Returns the variables for a task's GPUs: which GPUs it must see, and its memory limit."""
    variables = {}
    if task.gpus:
        variables["CLUSTER_KIT_GPUS"] = json.dumps(_promised(task))
    else:
        variables["CUDA_VISIBLE_DEVICES"] = NO_GPU
        pool = gpu_pool(cluster.style, has_ps=bool(cluster.of(PS.name)))
        if ROLES[task.role] in pool and cluster.simulate_gpus:
            variables["CLUSTER_KIT_SIMULATE_GPUS"] = str(cluster.simulate_gpus)
    if task.gpu_memory_mib is not None:
        variables["CLUSTER_KIT_GPU_MEMORY_MB"] = str(task.gpu_memory_mib)
    return variables


def _trainers(cluster: Cluster, task: Task) -> dict[str, str]:
    """Returns the variable for tasks that share their machine's CPUs with other trainers."""
    roles = {role.name for role in trainers(cluster.style)}
    count = sum(one.role in roles for one in cluster.tasks)
    shares = cluster.one_host and task.role in roles and count > 1
    return {"CLUSTER_KIT_TRAINERS": str(count)} if shares else {}


def hides(name: str, value: str) -> bool:
    """Returns whether a variable's value must be hidden; False if it is empty or already masked."""
    return looks_secret(name) and value not in ("", MASK)


def mode_of(cluster: Cluster) -> int | None:
    """Returns the mode for a file that has all values of a cluster's tasks; None: the default."""
    in_addresses = any(url_passwords(text) for _, text in _texts(cluster))
    return 0o600 if _options(cluster) or in_addresses else None


def without_secrets(cluster: Cluster) -> Cluster:
    """Returns the cluster with MASK in place of secret values.

    These are the values of variables and options whose names look like secrets, and passwords in
    addresses.
    """
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


def _sidecar_without(sidecar: Sidecar) -> Sidecar:
    words = _words_without((*(sidecar.entrypoint or ()), *sidecar.command))
    begin = len(sidecar.entrypoint or ())
    return replace(
        sidecar,
        environment=shown(sidecar.environment),
        entrypoint=None if sidecar.entrypoint is None else words[:begin],
        command=words[begin:],
    )


def _words_without(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(without_url_passwords, without_option_values(words)))


def shown(environment: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Returns the variables, with MASK as the value of each whose name looks like a secret's."""
    return tuple(
        (name, MASK if looks_secret(name) else without_url_passwords(value))
        for name, value in environment
    )


def has_secrets(words: Iterable[str]) -> bool:
    """Returns whether a command line has a secret option value, or a password in an address."""
    command_line = tuple(words)
    return _words_without(command_line) != command_line


def _commands(cluster: Cluster) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields the owner and the command line of each command that a manifest gives to containers."""
    yield from ((task.role, task.arguments) for task in cluster.tasks)
    yield from ((s.name, (*(s.entrypoint or ()), *s.command)) for s in cluster.sidecars)
    if cluster.fetch is not None:
        yield "[data]", cluster.fetch.args


def _options(cluster: Cluster) -> dict[str, str]:
    """Returns the source of each secret option value, by value."""
    return {
        value: f"an argument of {owner}"
        for owner, words in _commands(cluster)
        for value in option_values(words)
    }


def _texts(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yields the description and the text of each part of a manifest that may have addresses."""
    for owner, words in _commands(cluster):
        yield from ((f"an argument of {owner}", word) for word in words)
    variables = [pair for task in cluster.tasks for pair in task.environment]
    variables += [pair for sidecar in cluster.sidecars for pair in sidecar.environment]
    yield from (pair for pair in variables if not looks_secret(pair[0]))
    yield "the requirements", cluster.requirements


def _in_addresses(cluster: Cluster) -> dict[str, str]:
    """Returns the source of each password in an address, by password."""
    return {
        password: f"{source}, in an address"
        for source, text in _texts(cluster)
        for password in passwords_in(text)
    }


def passwords_in(text: str) -> set[str]:
    """Returns the passwords of addresses in a text, except common words such as `postgres`."""
    return {password for password in url_passwords(text) if any(_unmistakable(password))}


def masked_in(text: str) -> set[str]:
    """Returns the parts of addresses in a text that are masked everywhere.

    These are passwords; if a password is a common word such as `postgres`, it is `USER:PASSWORD@`.
    """
    passwords = passwords_in(text)
    return passwords | {
        f"{user}@" for user in userinfos(text) if not any(p in user for p in passwords)
    }


def masked_of_addresses(cluster: Cluster) -> set[str]:
    """Returns the masked parts of all addresses of a cluster; see `masked_in`."""
    return {part for _, text in _texts(cluster) for part in masked_in(text)}


MOST_BYTES = 64 * 1024
"""The maximum number of bytes that are read of a file with secrets."""
_VARIABLE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*"""
    r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\n]*)""",
    re.MULTILINE,
)
"""A variable in an `env_file`; a quoted value may have several lines."""
_NAME = re.compile(r"(?:export\s+)?(?:[A-Za-z_]\w{0,18}|[A-Z_][A-Z0-9_]*)")
"""A line of an `env_file` that takes a variable from the caller's environment. Longer words are
more likely part of a key."""


def secret_in(source: str, target: str) -> set[str]:
    """Returns the text of the file `source` if it is mounted as a secret, else an empty set.

    The set is also empty if the file cannot be read: a run that has ended must not fail because
    the file was removed.
    """
    if not source or PurePosixPath(target).parent != PurePosixPath(SECRETS):
        return set()
    with contextlib.suppress(OSError, ValueError), Path(source).open("rb") as file:
        return {file.read(MOST_BYTES).decode("utf-8", errors="replace")} - {""}
    return set()


def secret_variables(env_file: str) -> set[str]:
    """Returns the secret values in an `env_file`; an empty set if the file cannot be read.

    These are the values of variables whose names look like secrets, and lines that define no
    variable.
    """
    values = set()
    with contextlib.suppress(OSError, ValueError), Path(env_file).open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8-sig", errors="replace")
        for name, written in _VARIABLE.findall(text):
            value = written.strip()
            if looks_secret(name) and value[:1] in ("'", '"') and value[-1] == value[0]:
                values.add(value[1:-1])
            elif looks_secret(name):
                values |= {value, value.partition(" #")[0].rstrip(), value.lstrip("'\"")}
        # Lines of an unquoted key of several lines: Compose's error quotes the first of them.
        rest = (line.strip() for line in _VARIABLE.sub("", text).splitlines())
        values |= {line for line in rest if not (line.startswith("#") or _NAME.fullmatch(line))}
    return values - {""}


LEAST_MIXED, LEAST = 8, 12
"""Minimum lengths of a part of a secret that is searched for in files: LEAST_MIXED if it has digits
and letters, else LEAST. Shorter parts can be in a file by chance: `postgres` also names an
image."""
_PLACE = re.compile(r"(/|~|[a-z][a-z0-9+]*://)[^\s@]*")
"""A path, or an address without a password: other keys may legitimately have the same value."""


def known_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """Returns the source of each secret value, by value.

    Args:
        options: whether to include values in arguments (`--token VALUE`) and in addresses.
    """
    sources = {**_options(cluster), **_in_addresses(cluster)} if options else dict[str, str]()
    for task in cluster.tasks:
        sources |= {value: name for name, value in task.environment if looks_secret(name)}
        sources |= dict.fromkeys(secret_variables(task.env_file), task.env_file)
    for sidecar in cluster.sidecars:
        sources |= {value: name for name, value in sidecar.environment if looks_secret(name)}
    return _values(sources) | _declared(cluster)


def refused_secrets(cluster: Cluster, *, options: bool = True) -> dict[str, str]:
    """Returns the values of `known_secrets` that must not be written into a file.

    Paths are left out, such as the path of a mounted file with credentials. So are addresses,
    unless they are declared as secrets: a variable may look like a secret only by its name, and
    other keys may legitimately have the same path or address.
    """
    declared = _declared(cluster)
    return {
        value: name
        for value, name in known_secrets(cluster, options=options).items()
        if not (_is_path(value, cluster) or (value not in declared and _is_address(value)))
    }


def _declared(cluster: Cluster) -> dict[str, str]:
    """Returns the source of each value of `secrets` and `[secret]`, by value."""
    sources = {os.environ.get(name, ""): name for name in cluster.from_caller}
    for mount in cluster.all_mounts:
        sources |= dict.fromkeys(secret_in(mount.source, mount.target), mount.source)
    return _values(sources)


def _values(sources: Mapping[str, str]) -> dict[str, str]:
    """Returns the sources of the values that are neither empty nor masked, by value."""
    return {value: name for value, name in sources.items() if value not in ("", MASK)}


def _is_address(value: str) -> bool:
    """Returns whether a value is an address without a password or a key."""
    if "://" not in value or not _PLACE.fullmatch(value):
        return False
    _host, *segments = re.split(r"[/?&=;#]", value.partition("://")[2])
    return not any(len(part) >= LEAST_RANDOM and is_mixed(part) for part in segments)


def _is_path(value: str, cluster: Cluster) -> bool:
    """Returns whether a value is a path that exists on this host or in a container."""
    if "://" in value or not _PLACE.fullmatch(value):
        return False
    targets = (SECRETS, *(mount.target for mount in cluster.all_mounts))
    in_container = any(PurePosixPath(value).is_relative_to(target) for target in targets)
    return in_container or os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111


def refuse_in_text(text: str, file: str, cluster: Cluster, *, options: bool = True) -> str:
    """Returns `text`, the contents of a file made from a cluster.

    Raises:
        UsageError: the text has the value of a secret.
    """
    if name := secret_of(text, refused_secrets(cluster, options=options)):
        raise UsageError(
            f"{file} would have the value of a secret in clear: {name}",
            'pass it only as a secret, by `[secret]` or `secrets = ["NAME"]`, and remove it from '
            "arguments, commands and other variables",
        )
    return text


def secret_of(text: str, known: Mapping[str, str]) -> str:
    """Returns the source of the first secret that is in a text as a whole or in part; "" if none.

    Values with quotes and dollar signs are also found as YAML, Compose or a shell escapes them.
    """
    plain = text.replace("'\"'\"'", "'").replace("''", "'").replace("$$", "$")
    for value, name in known.items():
        if any(part in text or part in plain for part in _unmistakable(value)):
            return name
    return ""


def _unmistakable(value: str) -> Iterator[str]:
    """Yields the parts of a value that are too long to be in a file by chance."""
    for part in parts(value):
        least = LEAST_MIXED if is_mixed(part) else LEAST
        if not part.startswith("-----") and len(part) >= least:
            yield part
