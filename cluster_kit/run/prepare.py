"""Prepares a requested cluster for its start: manifest, images, plan and program arguments."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from cluster_kit.advice.of_program import (
    Fitted,
    Hint,
    fit,
    gpus_in_use,
    portable_hints,
    refused_gpus,
)
from cluster_kit.errors import EngineError, Problem, Setting, UsageError
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.image import debugger, kit_image
from cluster_kit.image.base_image import CONFINED, REGISTRY_BASE, TMP
from cluster_kit.image.kit_image import SOURCE, Say, Variant
from cluster_kit.image.user_image import built_tag
from cluster_kit.machine.host_facts import gather, gather_networks
from cluster_kit.manifest.command_line import Caller
from cluster_kit.manifest.load import Loaded, find
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.plan import OwnImages
from cluster_kit.plan.portable import check_portable, debugged, everywhere, moved, neutral
from cluster_kit.platforms.container import task_containers
from cluster_kit.platforms.engine import Engine, gpus_taken
from cluster_kit.platforms.platform import load, plan, platform_of
from cluster_kit.platforms.rendered_file import Build
from cluster_kit.programs import resolve
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.resolve import Inputs, without_trainer
from cluster_kit.resolved import SECRETS, TRAINER, Cluster
from cluster_kit.run.request import Request
from cluster_kit.util.nearest import did_you_mean
from cluster_kit.util.paths import CLONE
from cluster_kit.util.process import TIMED_OUT, Completed
from cluster_kit.util.terminal import harmless
from cluster_kit.workspace import RunDirectory, Workspace

KINDS: tuple[Variant, Variant] = ("cpu", "gpu")
PLAIN = re.compile(r"[A-Za-z0-9.]+")
"""A version that can be part of a file's name; the plan refuses any other."""


def images_of(
    host: Host, manifest: Manifest, inputs: Inputs, workspace: Workspace
) -> tuple[OwnImages, list[Problem]]:
    """The images' tags, and the files of a Dockerfile's directory that cannot be read."""
    tag, problems = "", list[Problem]()
    if inputs.dockerfile is not None:
        tag, problems = built_tag(inputs.dockerfile, workspace.written())
    version = manifest.tensorflow
    if version and PLAIN.fullmatch(version):
        cpu, gpu = (kit_image.tag(workspace.manifests, version, kind) for kind in KINDS)
    else:
        cpu, gpu = (host.image_tag(kind) for kind in KINDS)
    return OwnImages(cpu, gpu, tag), problems


@dataclass(frozen=True)
class Prepared:
    """Everything that a verb needs to know about a manifest, made by `prepare`.

    `hints` are warnings about the program, and about GPUs that the cluster does not get.
    """

    request: Request
    manifest: Loaded
    inputs: Inputs
    images: OwnImages
    facts: HostFacts
    cluster: Cluster
    hints: tuple[Hint, ...]


def prepare(
    host: Host,
    request: Request,
    workspace: Workspace,
    engine: Engine | None,
    *,
    portable: bool = False,
    loaded: Loaded | None = None,
) -> Prepared:
    """The cluster of a manifest on this host, and all inputs of its plan.

    Args:
        engine: None to plan without one (see `gather`).
        loaded: the manifest, if it has been read already.
        portable: plan for no host in particular (see `plan.portable`).
    Raises:
        UsageError: the manifest was not found.
        ManifestError: it is invalid; the error has every problem.
        EngineError: the engine stopped answering.
    """
    loaded = loaded or read(request, workspace)
    folder = loaded.path.parent
    fitted = fit(resolve.program_file(loaded.manifest, folder), loaded)
    loaded = fitted.loaded
    inputs = resolve.resolve(loaded.manifest, folder, workspace.fetched.resolve())
    images, unread = images_of(host, loaded.manifest, inputs, workspace)
    inputs = replace(inputs, problems=(*inputs.problems, *fitted.problems, *unread))
    if portable:
        return _portable(request, workspace, fitted, inputs, images)
    facts = gather(host, engine)
    cluster = _asked(plan(loaded, inputs, facts, images), request)
    hints = (
        *fitted.hints,
        *refused_gpus(loaded.manifest, facts),
        *gpus_in_use(loaded.manifest, cluster, facts),
        *_left_out(cluster),
    )
    return Prepared(request, loaded, inputs, images, facts, cluster, hints)


def _left_out(cluster: Cluster) -> list[Hint]:
    """A hint that names the files of the cluster's directories that are left out of its tasks."""
    paths = platform_of(cluster.engine).left_out(cluster)
    reason = "what is data, looks like a secret, leads elsewhere or was rendered is left out"
    return [Hint(cluster.engine, f"{reason}: {', '.join(paths)}")] if paths else []


def _asked(cluster: Cluster, request: Request) -> Cluster:
    """The cluster with those settings of the request that a manifest cannot have."""
    if not request.debug:
        return cluster
    return debugged(cluster, request.debug, str(debugger.place()))


def prepare_locked(
    host: Host,
    request: Request,
    workspace: Workspace,
    engine: Engine | None,
    say: Say,
    loaded: Loaded | None = None,
) -> Prepared:
    """Like `prepare`; also resolves the packages of another TensorFlow if there is no lock file
    yet.

    Raises what `prepare` and `image.kit_image.ensure_lock` raise.
    """
    loaded = loaded or read(request, workspace)
    prepared = prepare(host, request, workspace, engine, loaded=loaded)
    if kit_image.ensure_lock(host, prepared.cluster, workspace.manifests, say):
        return prepare(host, request, workspace, engine, loaded=loaded)
    return prepared


def refuse_unlocked(prepared: Prepared) -> None:
    """Raise UsageError if the image's tag is unknown, so that a rendered file would name no
    image."""
    if kit_image.is_unlocked(prepared.cluster):
        raise UsageError(
            f"the packages of TensorFlow {prepared.cluster.tensorflow} are not resolved yet",
            f"run `cluster-kit image build {prepared.request.manifest}`: it writes a lock file "
            "next to the manifests, and builds the image",
        )


def _portable(
    request: Request, workspace: Workspace, fitted: Fitted, inputs: Inputs, images: OwnImages
) -> Prepared:
    """Like `prepare`, for any host."""
    loaded, root = fitted.loaded, workspace.root.resolve()
    manifest = loaded.manifest
    if not loaded.path.is_relative_to(root):
        raise UsageError(
            f"{loaded.path} is outside of {root}: a copy of that folder would not have it",
            "run this in the folder that has the manifest, below which there is a compose/",
        )
    loaded.refuse([*check_portable(manifest), *inputs.problems])
    facts = neutral(manifest)
    inputs = without_trainer(inputs)
    cluster = plan(loaded, inputs, facts, images)
    file = workspace.portable(cluster.name)
    cluster = moved(cluster, file.parent.resolve(), root, everywhere(loaded))
    hints = (*fitted.hints, *portable_hints(manifest, cluster))
    return Prepared(request, loaded, inputs, images, facts, cluster, hints)


def read(request: Request, workspace: Workspace) -> Loaded:
    """The requested manifest, with its overrides.

    Raises:
        UsageError: it was not found.
        ManifestError: it cannot be read; the returned value has all other problems.
    """
    try:
        path = find(request.manifest, workspace.manifests)
    except UsageError as error:
        error.hint = _repeat(request.manifest, workspace) or error.hint
        raise
    root = workspace.root.resolve()
    return load(path, request.overrides, root, request.by_set, request.caller)


def _repeat(name: str, workspace: Workspace) -> str:
    """The hint how to repeat the newest run of this name, if another manifest was run under it;
    else ""."""
    from cluster_kit.report.facts import repeated  # a report's modules take long to import
    from cluster_kit.run.run_directory import read_record

    newest = workspace.latest_runs().get(name)
    try:
        record = read_record(RunDirectory(newest)) if newest else None
    except UsageError:
        return ""
    command = repeated(record.cluster.origin.command) if record else ""
    if not command or name in command.split(" --")[0].split():
        return ""
    return (
        f"its runs are those of another manifest: `{command}` repeats the newest one, and continues"
        " it with `--resume`"
    )


def prepare_again(host: Host, prepared: Prepared, engine: Engine) -> Prepared:
    """A new plan with the subnets and GPUs that are free now; other facts are reused.

    Raises:
        ManifestError: no subnet is free, or too few GPUs are.
        EngineError: the engine stopped answering.
    """
    facts = replace(prepared.facts, networks=gather_networks(host, engine))
    if facts.gpus:
        facts = replace(facts, gpus_taken=gpus_taken(engine))
    cluster = plan(prepared.manifest, prepared.inputs, facts, prepared.images)
    cluster = _asked(cluster, prepared.request)
    return replace(prepared, facts=facts, cluster=cluster)


HELP = ("--help", "-h")
HELP_TIMEOUT_S = 120.0
FOR_PROGRAMS = f"{TRAINER}/agent/injected/for_programs"
"""The modules that tasks' programs can import, such as `cluster_kit_input`."""
LONGEST_HELP = 1_000_000
"""Characters."""
_USAGE = 2
_ERROR = re.compile(r"^\S+: error: (.*)", re.MULTILINE | re.DOTALL)
_OF_ONE = re.compile(r"argument (\S+?): (.*)", re.DOTALL)
_VALUE = re.compile(r"invalid (?:[\w ]+ )?(?:value|choice): '(.*?)'(.*)", re.DOTALL)


def check_arguments(host: Host, cluster: Cluster, caller: Caller = Caller.SHELL) -> None:
    """Raise UsageError if the arguments of the cluster's built-in program are invalid."""
    _, program, *arguments = cluster.leader.command
    if program in PROGRAMS and arguments:
        check = _ask(host, program, arguments, _place(cluster))
        if check.code == _USAGE:
            message, hint = told(program, check.errors, caller)
            raise UsageError(message, hint)


def told(program: str, output: str, caller: Caller = Caller.SHELL) -> tuple[str, str]:
    """(message, hint) from argparse's output about invalid arguments; the invalid word comes
    first."""
    lists_all = f"{caller.setting(Setting('args', HELP[:1]))} lists all of them"
    match = _ERROR.search(output)
    rule = match[1].strip() if match else output.strip().removeprefix("error: ")
    if rule.startswith("unrecognized arguments: "):
        word = rule.partition(": ")[2].split()[0].partition("=")[0]
        options = sorted(set(re.findall(r"--[a-z][a-z-]*", output.partition("error: ")[0])))
        return f"`{word}`: the {program} has no such argument", did_you_mean(
            word, options
        ) + lists_all
    of_one_key = _OF_ONE.fullmatch(rule)
    if of_one_key is None:
        return f"arguments of the {program}: {rule}", lists_all
    name = of_one_key[1].partition("/")[0]
    if value := _VALUE.fullmatch(of_one_key[2]):
        return f"`{value[1]}`: no valid value of the {program}'s `{name}`{value[2]}", lists_all
    return f"`{name}` of the {program}: {of_one_key[2]}", lists_all


def wants_help(arguments: Sequence[str]) -> bool:
    """Whether the arguments request the program's help instead of a run."""
    return any(word in HELP for word in arguments)


def program_help(host: Host, cluster: Cluster) -> str:
    """The output of the cluster's program for `--help`; a user's program runs in its image.

    Raises:
        UsageError: it ended with an error.
        EngineError: it did not end in time.
    """
    program = cluster.leader.command[1]
    done = _ask(host, program, HELP[:1]) if program in PROGRAMS else _run(host, cluster, program)
    if done.code == TIMED_OUT:
        words = f"{program} --help did not end within {HELP_TIMEOUT_S:.0f} s"
        raise EngineError(words, "it may take no --help: see its source")
    if not done.ok:
        words = f"{program} --help ended with exit code {done.code}:\n{done.tail()}"
        raise UsageError(words, "it may take no --help: see its source")
    return harmless(done.output or done.errors)


def _place(cluster: Cluster) -> dict[str, str]:
    """The leader's variables that the check of arguments needs: they describe the cluster's
    tasks."""
    leader = task_containers(cluster)[cluster.tasks.index(cluster.leader)]
    return {name: leader.environment[name] for name in ("TF_CONFIG", "CLUSTER_KIT_SERVERS")}


def _ask(
    host: Host,
    program: str,
    arguments: Sequence[str],
    place: Mapping[str, str] = MappingProxyType({}),
) -> Completed:
    """The output of the program's own parser, run on this host; the image has the same code."""
    # -P: ignores modules of the same name in the current directory, where others may have put them.
    command = (sys.executable, "-P", "-B", "-m", "trainer", "arguments", program, *arguments)
    env = {"TF_CONFIG": "", **place, "PYTHONPATH": str(SOURCE)}
    return host.processes.run(command, env=env, timeout_s=HELP_TIMEOUT_S)


def _run(host: Host, cluster: Cluster, program: str) -> Completed:
    """Run the program with --help in a separate container, without network or output."""
    mounts = [
        f"--volume={mount.source}:{mount.target}:ro"
        for mount in cluster.mounts
        # The engine would create missing sources, such as data that the first start fetches.
        if Path(mount.source).exists() and not mount.target.startswith(SECRETS)
    ]
    name = f"cluster-kit-help-{secrets.token_hex(4)}"
    # An image of one's own can have a PYTHONPATH of its own, without which its programs do not run.
    importable = [f"--env=PYTHONPATH={FOR_PROGRAMS}"] if cluster.variant is not None else []
    command = (
        *("docker", "run", *CONFINED, f"--name={name}", "--init", f"--user={cluster.user}", TMP),
        *("--env=HOME=/tmp", *importable, *mounts, "--workdir=/tmp", "--entrypoint=python3"),
        *(cluster.image, program, HELP[0]),
    )
    # A program that ignores signals would outlive the command.
    with host.processes.afterwards(["docker", "rm", "--force", name]):
        return host.processes.run(command, timeout_s=HELP_TIMEOUT_S, most=LONGEST_HELP)


def build_of(cluster: Cluster, root: Path, folder: Path) -> Build | None:
    """The build of the kit's image or of a Dockerfile's; None if only the kit can build the image.

    It is also None for an image that the manifest names.

    Args:
        root: the folder that is copied as a whole.
        folder: the directory of the file.
    """
    if cluster.dockerfile is not None:
        return Build(cluster.dockerfile.context, cluster.dockerfile.file, {})
    variant = cluster.variant
    copied = CLONE is not None and SOURCE.is_relative_to(root.resolve())
    if variant is None or cluster.requirements or cluster.tensorflow or not copied:
        return None
    inputs = cluster.image.rpartition("-")[2]
    return Build(
        context=Path(os.path.relpath(SOURCE, folder.resolve())).as_posix(),
        dockerfile="recipe/Dockerfile",
        arguments={"BASE": REGISTRY_BASE, "VARIANT": variant, "INPUTS": inputs},
    )
