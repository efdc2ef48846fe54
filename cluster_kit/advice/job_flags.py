"""Rule: a program that is told its place by flags gets them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source
from cluster_kit.manifest.schema import Manifest

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
HOSTS, SERVER = {"type", "index"}, {"master", "task"}
"""Names that mean this only beside the first set, or only beside the second."""


def check(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields the first of these flags if no argument gives any of them."""
    if any(_names_tf_config(source) for source in sources):
        return
    defined = {name: place for source in sources for name, place in _flags(source)}
    given = {argument.lstrip("-").partition("=")[0] for argument in manifest.args}
    known = [name for name in PLACES if name in defined]
    if given.intersection(known) or not any(sure <= defined.keys() for sure in SURE):
        return
    other = SERVER if defined.keys() >= SURE[0] else HOSTS
    known = [name for name in known if name not in other]
    yield Hint(
        defined[known[0]],
        f"the program takes {', '.join(f'--{name}' for name in known)}",
        "no argument gives them, so no task is told its place in the cluster",
        f'write ARGS="{" ".join(f"--{name}={PLACES[name]}" for name in known)}" '
        "(`args = […]` in a manifest)",
    )


def _flags(source: Source) -> Iterator[tuple[str, str]]:
    """The name and the place of each flag that a file defines."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            continue
        if node.func.attr.startswith("DEFINE_"):
            yield first.value, source.place(node)
        elif node.func.attr == "add_argument" and first.value.startswith("--"):
            yield first.value.removeprefix("--"), source.place(node)


def _names_tf_config(source: Source) -> bool:
    return any(
        isinstance(node, ast.Constant) and node.value == "TF_CONFIG" for node in source.nodes
    )
