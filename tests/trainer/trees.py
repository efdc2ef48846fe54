"""The syntax trees of the package's files, each parsed once per process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Returns the syntax tree of the file. Callers must not change it, since it is shared."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Returns all nodes of the tree, as `ast.walk` yields them."""
    return tuple(ast.walk(tree_of(path)))
