"""The syntax trees of the package's files, each made once in a process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Nobody may change it: others look at the same one."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the tree, as `ast.walk` gives them."""
    return tuple(ast.walk(tree_of(path)))
