"""A linter for templates: they may have only attributes, loops and conditions; everything else
belongs in Python.

An attribute may be plain data that the filter `yaml` writes with an indent: `{{ service | yaml(2)
}}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from jinja2 import Environment, nodes


def findings(path: Path) -> list[str]:
    """Returns `file:line: text` for each part that is not an attribute, a `for` or an `if`."""
    tree = Environment().parse(path.read_text(encoding="utf-8"))
    return [
        f"{path.name}:{line}: {what} belongs in Python" for line, what in _statements(tree.body)
    ]


def _statements(body: list[nodes.Node]) -> Iterator[tuple[int, str]]:
    for node in body:
        if isinstance(node, nodes.Output):
            for hole in node.nodes:
                if not isinstance(hole, nodes.TemplateData):
                    yield from _attribute(hole.node if _is_yaml(hole) else hole)
        elif isinstance(node, nodes.For):
            if not isinstance(node.target, nodes.Name) or node.test or node.recursive or node.else_:
                yield node.lineno, "more than a plain `for`"
            yield from _attribute(node.iter)
            yield from _statements(node.body)
        elif isinstance(node, nodes.If):
            yield from _condition(node.test)
            yield from _statements([*node.body, *node.elif_, *node.else_])
        else:
            yield node.lineno, type(node).__name__


def _is_yaml(hole: nodes.Node) -> TypeGuard[nodes.Filter]:
    return (
        isinstance(hole, nodes.Filter)
        and hole.name == "yaml"
        and [type(one) for one in hole.args] == [nodes.Const]
        and not (hole.kwargs or hole.dyn_args or hole.dyn_kwargs)
    )


def _condition(test: nodes.Expr) -> Iterator[tuple[int, str]]:
    if isinstance(test, nodes.And | nodes.Or):
        yield from _condition(test.left)
        yield from _condition(test.right)
    elif isinstance(test, nodes.Not):
        yield from _condition(test.node)
    else:
        yield from _attribute(test)


def _attribute(node: nodes.Node) -> Iterator[tuple[int, str]]:
    """Returns whether the node is `name` or `name.attribute…`, without a computation."""
    inner = node
    while isinstance(inner, nodes.Getattr):
        inner = inner.node
    if not isinstance(inner, nodes.Name):
        yield node.lineno, type(inner).__name__
