"""The syntax trees of the project's own files, each parsed once per process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def text_of(path: Path) -> str:
    """Returns the text of the file."""
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Returns the syntax tree of the file. Callers must not change it, since it is shared."""
    return ast.parse(text_of(path))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Returns all nodes of the tree, as `ast.walk` yields them."""
    return tuple(ast.walk(tree_of(path)))
