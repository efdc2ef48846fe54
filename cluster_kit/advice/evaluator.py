"""An evaluator in the training cluster's spec, in a TF_CONFIG that the program writes itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source
from cluster_kit.roles import ROLES

_JOBS = {job: role for role in ROLES.values() for job in (role.job, *role.jobs)}
ADDRESSES = (ast.List, ast.ListComp)
SAID = (*ADDRESSES, ast.Name, ast.Call, ast.Attribute, ast.Subscript)
"""Elsewhere a name may as well stand for a number of tasks."""


def look(sources: list[Source]) -> Iterator[Hint]:
    """Dictionaries of addresses by job, where something assigns TF_CONFIG."""
    if not any(_writes_tf_config(node) for s in sources for node in ast.walk(s.tree)):
        return
    for source in sources:
        for node in _mixed(source):
            yield Hint(
                source.place(node),
                "an evaluator among the training tasks, in a TF_CONFIG that the program writes",
                "the strategy would wait for it for ever",
                "leave TF_CONFIG as the cluster gave it, or give the evaluator a spec of its "
                "own: {'cluster': {'evaluator': [...]}, ...}",
            )


def _writes_tf_config(node: ast.AST) -> bool:
    """`os.environ["TF_CONFIG"] = …`, or by `setdefault`, `update` or `putenv`."""
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


def _mixed(source: Source) -> list[ast.expr]:
    """Dictionaries that hold an evaluator's addresses beside those of others, each once."""
    found: list[ast.expr] = []
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Dict):
            continue
        if _mixes(node, ADDRESSES):
            found.append(node)
        # In {"cluster": {…}} a name or a call stands for addresses, too.
        found += [inner for key, inner in _items(node) if key == "cluster" and _mixes(inner, SAID)]
    return list(dict.fromkeys(found))


def _mixes(node: ast.AST, kinds: tuple[type[ast.expr], ...]) -> bool:
    """An evaluator's addresses beside those of others, as expressions of these kinds."""
    if not isinstance(node, ast.Dict):
        return False
    jobs = {key for key, value in _items(node) if isinstance(value, kinds)}
    training = {job for job, role in _JOBS.items() if not role.sidecar}
    return bool(jobs & (_JOBS.keys() - training)) and bool(jobs & training)


def _items(node: ast.Dict) -> Iterator[tuple[object, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            yield key.value, value
