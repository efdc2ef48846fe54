"""Rule: no evaluator in the training cluster's spec of a TF_CONFIG that the program writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source
from cluster_kit.roles import ROLES

_JOBS = {job: role for role in ROLES.values() for job in (role.job, *role.jobs)}
ADDRESSES = (ast.List, ast.ListComp)
MAYBE_ADDRESSES = (*ADDRESSES, ast.Name, ast.Call, ast.Attribute, ast.Subscript)
"""Only below the key "cluster": elsewhere a name may as well stand for a number of tasks."""


def check(sources: list[Source]) -> Iterator[Hint]:
    """Yields dictionaries with addresses of an evaluator and of training tasks.

    Only of a program that assigns TF_CONFIG somewhere.
    """
    if not any(writes_tf_config(node) for s in sources for node in s.nodes):
        return
    for source in sources:
        for node in _mixed_specs(source):
            yield Hint(
                source.place(node),
                "an evaluator among the training tasks, in a TF_CONFIG that the program writes",
                "the strategy would wait for it for ever",
                "leave TF_CONFIG as the cluster gave it, or give the evaluator a spec of its "
                "own: {'cluster': {'evaluator': [...]}, ...}",
            )


def writes_tf_config(node: ast.AST) -> bool:
    """Whether it is `os.environ["TF_CONFIG"] = …`, or `setdefault`, `update` or `putenv` of it."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return _is_tf_config(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        first = node.args[0] if node.args else None
        if node.func.attr in ("setdefault", "putenv"):
            return first is not None and _is_tf_config(first)
        if node.func.attr == "update":
            return any(keyword.arg == "TF_CONFIG" for keyword in node.keywords) or (
                isinstance(first, ast.Dict) and any(k and _is_tf_config(k) for k in first.keys)
            )
    return False


def _is_tf_config(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "TF_CONFIG"


def _mixed_specs(source: Source) -> list[ast.expr]:
    """Dictionaries that hold addresses of an evaluator and of training tasks, each once."""
    specs: list[ast.expr] = []
    for node in source.nodes:
        if not isinstance(node, ast.Dict):
            continue
        if _is_mixed(node, ADDRESSES):
            specs.append(node)
        # In {"cluster": {…}} a name or a call stands for addresses, too.
        inner_specs = (inner for key, inner in _items(node) if key == "cluster")
        specs += [inner for inner in inner_specs if _is_mixed(inner, MAYBE_ADDRESSES)]
    return list(dict.fromkeys(specs))


def _is_mixed(node: ast.AST, kinds: tuple[type[ast.expr], ...]) -> bool:
    """Whether it gives addresses, as these kinds of nodes, to an evaluator and training tasks."""
    if not isinstance(node, ast.Dict):
        return False
    jobs = {key for key, value in _items(node) if isinstance(value, kinds)}
    training = {job for job, role in _JOBS.items() if not role.sidecar}
    return bool(jobs & (_JOBS.keys() - training)) and bool(jobs & training)


def _items(node: ast.Dict) -> Iterator[tuple[object, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            yield key.value, value
