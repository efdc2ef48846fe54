"""The arguments of a program: whether a built-in one takes them, and what one says for --help."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.host import Host
from cluster_kit.image.base_image import CONFINED, TMP
from cluster_kit.image.kit_image import SOURCE
from cluster_kit.manifest.command_line import Caller
from cluster_kit.platforms.container import container_specs
from cluster_kit.problem import Setting
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.resolved import SECRETS, Cluster
from cluster_kit.util.nearest import did_you_mean
from cluster_kit.util.process import Completed

HELP = ("--help", "-h")
HELP_TIMEOUT_S = 120.0
_USAGE = 2
_ERROR = re.compile(r"^\S+: error: (.*)", re.MULTILINE | re.DOTALL)
_OF_ONE = re.compile(r"argument (\S+?): (.*)", re.DOTALL)
_VALUE = re.compile(r"invalid (?:[\w ]+ )?(?:value|choice): '(.*?)'(.*)", re.DOTALL)


def check_arguments(host: Host, cluster: Cluster, caller: Caller = Caller.SHELL) -> None:
    """Raises UsageError if the built-in program of the cluster does not take its arguments."""
    _, program, *arguments = cluster.leader.command
    if program in PROGRAMS and arguments:
        asked = _ask(host, program, arguments, _place(cluster))
        if asked.code == _USAGE:
            message, hint = told(program, asked.errors, caller)
            raise UsageError(message, hint)


def told(program: str, said: str, caller: Caller = Caller.SHELL) -> tuple[str, str]:
    """(message, hint): what argparse says of wrong arguments, the one wrong word first."""
    lists_all = f"{caller.setting(Setting('args', HELP[:1]))} lists all of them"
    found = _ERROR.search(said)
    rule = found[1].strip() if found else said.strip().removeprefix("error: ")
    if rule.startswith("unrecognized arguments: "):
        word = rule.partition(": ")[2].split()[0].partition("=")[0]
        options = sorted(set(re.findall(r"--[a-z][a-z-]*", said.partition("error: ")[0])))
        return f"`{word}`: the {program} has no such argument", did_you_mean(
            word, options
        ) + lists_all
    one = _OF_ONE.fullmatch(rule)
    if one is None:
        return f"arguments of the {program}: {rule}", lists_all
    name = one[1].partition("/")[0]
    if value := _VALUE.fullmatch(one[2]):
        return f"`{value[1]}`: no valid value of the {program}'s `{name}`{value[2]}", lists_all
    return f"`{name}` of the {program}: {one[2]}", lists_all


def wants_help(arguments: Sequence[str]) -> bool:
    """Whether a person asks for the program's help, and not for a cluster."""
    return any(word in HELP for word in arguments)


def program_help(host: Host, cluster: Cluster) -> str:
    """What the cluster's program prints for `--help`; one of the user's own is run in its image.

    Raises:
        UsageError: it ended with an error.
        EngineError: it did not end in time.
    """
    program = cluster.leader.command[1]
    try:
        done = (
            _ask(host, program, HELP[:1]) if program in PROGRAMS else _run(host, cluster, program)
        )
    except subprocess.TimeoutExpired:
        words = f"{program} --help did not end within {HELP_TIMEOUT_S:.0f} s"
        raise EngineError(words, "it may take no --help: see its source") from None
    if not done.ok:
        words = f"{program} --help ended with exit code {done.code}:\n{done.tail()}"
        raise UsageError(words, "it may take no --help: see its source")
    return done.output or done.errors


def _place(cluster: Cluster) -> dict[str, str]:
    """What an argument's meaning depends on: the leader's variables about who else there is."""
    leader = container_specs(cluster)[cluster.tasks.index(cluster.leader)]
    return {name: leader.environment[name] for name in ("TF_CONFIG", "CLUSTER_KIT_SERVERS")}


def _ask(
    host: Host,
    program: str,
    arguments: Sequence[str],
    place: Mapping[str, str] = MappingProxyType({}),
) -> Completed:
    """What the program's own parser says; the image holds the same code."""
    command = (sys.executable, "-B", "-m", "trainer", "arguments", program, *arguments)
    env = {"TF_CONFIG": "", **place, "PYTHONPATH": str(SOURCE)}
    return host.processes.run(command, env=env, timeout_s=HELP_TIMEOUT_S)


def _run(host: Host, cluster: Cluster, program: str) -> Completed:
    """The program with --help in a container of its own, without network or output."""
    mounts = [
        f"--volume={mount.source}:{mount.target}:ro"
        for mount in cluster.mounts
        # The engine would make what is not there yet: data that a first start fetches.
        if Path(mount.source).exists() and not mount.target.startswith(SECRETS)
    ]
    command = (
        *("docker", "run", *CONFINED, "--init", f"--user={cluster.user}", TMP),
        *("--env=HOME=/tmp", *mounts, "--workdir=/tmp", "--entrypoint=python3"),
        *(cluster.image, program, HELP[0]),
    )
    return host.processes.run(command, timeout_s=HELP_TIMEOUT_S)
