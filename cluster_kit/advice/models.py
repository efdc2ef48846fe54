"""Which expressions of a program are models of Keras 3, as far as their names tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cluster_kit.advice.sources import Source

MAKERS = {"Model", "Sequential", "Functional", "load_model", "clone_model", "model_from_json"}
Assignment = ast.Assign | ast.AnnAssign | ast.NamedExpr
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Names:
    """Last names of variables, attributes, functions and classes, wherever they stand: of models
    and what makes one (`ours`), and of what another library makes (`others`)."""

    modules: frozenset[str]
    ours: frozenset[str] = field(default=NOTHING)
    others: frozenset[str] = field(default=NOTHING)

    def model(self, node: ast.expr, source: Source) -> bool:
        """Whether this is a model. What is called one is one where nothing says otherwise."""
        if isinstance(node, ast.Call):
            return self._makes_one(node.func, source)
        name = _last(node)
        called = name == "model" or name.endswith("_model")
        return name not in self.others and (called or self._makes_one(node, source))

    def other(self, node: ast.expr, source: Source) -> bool:
        """Whether this is something of another library."""
        if not isinstance(node, ast.Call):
            return _last(node) in self.others
        meanings = source.meanings(node.func)
        return bool(meanings) and not any(is_maker(m) or self._is_own(m) for m in meanings)

    def _makes_one(self, node: ast.expr, source: Source) -> bool:
        meanings = source.meanings(node)
        if any(map(is_maker, meanings)):
            return True
        own = not meanings or any(map(self._is_own, meanings))
        return own and _last(node) in self.ours - self.others

    def _is_own(self, meaning: str) -> bool:
        return meaning.rpartition(".")[0] in self.modules


def names(sources: list[Source]) -> Names:
    """Follows what is assigned, returned and derived from, until nothing more is found."""
    found = Names(frozenset(source.module for source in sources))
    others = frozenset(name for s in sources for name in _assigned_others(s, found))
    found = replace(found, others=others)
    while more := {name for s in sources for name in _named(s, found)} - found.ours:
        found = replace(found, ours=found.ours | more)
    return found


def _assigned_others(source: Source, known: Names) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, Assignment) and node.value and known.other(node.value, source):
            yield from _targets(node)


def _named(source: Source, known: Names) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, Assignment) and node.value and known.model(node.value, source):
            yield from _targets(node)
        elif isinstance(node, ast.ClassDef):
            if any(known.model(base, source) for base in node.bases):
                yield node.name
        elif isinstance(node, ast.FunctionDef):
            returned = (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value)
            if any(known.model(value, source) for value in returned):
                yield node.name


def is_maker(meaning: str) -> bool:
    """`keras.Sequential`, `keras.models.load_model`, `keras.applications.ResNet50`."""
    root, _, rest = meaning.partition(".")
    parts = rest.removeprefix("api.").split(".")
    application = parts[0] == "applications" and parts[-1][:1].isupper()
    return root == "keras" and (parts[-1] in MAKERS or application)


def _targets(node: Assignment) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return filter(None, map(_last, targets))


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
