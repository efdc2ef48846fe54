"""Rules: a program that reads its place in the cluster from flags gets them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from cluster_kit.advice.sources import Hint, Source
from cluster_kit.advice.tf1 import is_for_tf1
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.arguments import TRAINING, names_in
from cluster_kit.problem import Problem, Setting
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.style import ALL_TASKS, style_of
from cluster_kit.roles import CHIEF
from cluster_kit.util.toml_text import to_toml

NO_CHIEF = Setting(CHIEF.name, 0)


def check_arguments(manifest: Manifest) -> Iterator[Hint]:
    """Yields address arguments if only the chief runs the program, or if the chief's are absent."""
    names = names_in(manifest.args)
    describe_cluster = {"role", "worker_hosts"} <= names
    if not describe_cluster or manifest.program in PROGRAMS or manifest.count(CHIEF.name) != 1:
        return
    if style_of(manifest) == "coordinator":
        yield Hint(
            "args",
            "they tell each task its place, but only the chief runs the program",
            "under a coordinator, ps and workers are servers",
            ("write ", ALL_TASKS, ", and ", NO_CHIEF, " if worker 0 is the program's chief"),
        )
    elif "chief_hosts" not in names:
        yield Hint(
            "args",
            f"chief-0 gets the role `{manifest.chief_job}`, but no task gets its address",
            "every task's job needs its addresses",
            (
                "write ",
                NO_CHIEF,
                " if worker 0 is the program's chief, or pass {{ chief_hosts }}, too",
            ),
        )


PLACES = {
    "job_name": "{{ role }}",
    "task_index": "{{ index }}",
    "task_id": "{{ index }}",
    "type": "{{ role }}",
    "index": "{{ index }}",
    "ps_hosts": "{{ ps_hosts }}",
    "worker_hosts": "{{ worker_hosts }}",
    "master": "{{ master }}",
    "task": "{{ index }}",
    "ps_tasks": "{{ num_ps }}",
    "num_ps_tasks": "{{ num_ps }}",
    "worker_replicas": "{{ num_replicas }}",
}
"""Flags of programs from before TF_CONFIG, and the templates that fill them."""
SURE = ({"ps_hosts", "worker_hosts"}, {"master", "task", "worker_replicas"})
"""A program that takes all of one of these sets is such a program."""
NOT_TOLD = "no argument gives them, so no task knows its place in the cluster"
HOSTS, SERVER = {"type", "index"}, {"master", "task"}
"""Names that mean this only beside the first set, or only beside the second."""


def check_flags(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields the first of these flags if no argument gives any of them, and that may be right."""
    flags = _missing(sources, manifest)
    if flags and not _certain(flags, sources, manifest):
        yield Hint(
            flags[0].location, _takes(flags), NOT_TOLD, _problem(flags, sources, manifest).hint
        )


def refuse(sources: list[Source], manifest: Manifest) -> Iterator[Problem]:
    """Yields the arguments that are missing if the program cannot find its cluster without."""
    flags = _missing(sources, manifest)
    if flags and _certain(flags, sources, manifest):
        yield _problem(flags, sources, manifest)


@dataclass(frozen=True)
class _Flag:
    """A flag that a program defines, where, and whether its default stands in the text."""

    name: str
    location: str
    constant: bool


def _missing(sources: list[Source], manifest: Manifest) -> list[_Flag]:
    """The flags that tell the program its place, none of which is given."""
    if any(_names_tf_config(source) for source in sources):
        return []
    defined = {flag.name: flag for source in sources for flag in _flags(source)}
    given = {argument.lstrip("-").partition("=")[0] for argument in manifest.args}
    known = [name for name in PLACES if name in defined]
    if given.intersection(known) or not any(sure <= defined.keys() for sure in SURE):
        return []
    other = SERVER if defined.keys() >= SURE[0] else HOSTS
    return [defined[name] for name in known if name not in other]


def _certain(flags: list[_Flag], sources: list[Source], manifest: Manifest) -> bool:
    """Whether several tasks run a program that has no other way to find the others."""
    if sum(manifest.count(role.name) for role in TRAINING) < 2:
        return False
    if not all(flag.constant for flag in flags):
        return False
    return not any(
        name.endswith(("Strategy", "ClusterResolver"))
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.Call)
        for name in source.meanings(node.func)
    )


def _takes(flags: list[_Flag]) -> str:
    return f"the program takes {', '.join(f'--{flag.name}' for flag in flags)}"


def _problem(flags: list[_Flag], sources: list[Source], manifest: Manifest) -> Problem:
    """The problem of these flags, with the settings by which the program finds its cluster."""
    added = (f"--{flag.name}={PLACES[flag.name]}" for flag in flags)
    settings = [Setting("args", (*manifest.args, *added))]
    if not manifest.tf1 and is_for_tf1(sources):
        settings.append(Setting("tf1", True))
        manifest = manifest.model_copy(update={"tf1": True})
    if style_of(manifest) == "coordinator":
        settings.append(ALL_TASKS)
    if manifest.count(CHIEF.name) and SURE[0] <= {flag.name for flag in flags}:
        settings.append(Setting(CHIEF.name, 0))  # worker 0 is it
    hint = [part for setting in settings for part in (" and ", setting)][1:]
    rule = f"{_takes(flags)} ({flags[0].location}), and {NOT_TOLD}"
    reads = (CHIEF.name, "style", "program", "tf1")
    value = to_toml(manifest.args) if manifest.args else ""
    return Problem("args", value, rule, ("write ", *hint), reads)


def _flags(source: Source) -> Iterator[_Flag]:
    """The flags that a file defines."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            continue
        absl = node.func.attr.startswith("DEFINE_")
        if absl or (node.func.attr == "add_argument" and first.value.startswith("--")):
            defaults = [keyword.value for keyword in node.keywords if keyword.arg == "default"]
            defaults += node.args[1:2] if absl else []
            constant = all(isinstance(default, ast.Constant) for default in defaults)
            yield _Flag(first.value.removeprefix("--"), source.location(node), constant)


def _names_tf_config(source: Source) -> bool:
    return any(
        isinstance(node, ast.Constant) and node.value == "TF_CONFIG" for node in source.nodes
    )
