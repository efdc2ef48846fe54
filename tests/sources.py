"""The syntax trees of the project's own files, each made once in a process."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def text_of(path: Path) -> str:
    """What is in the file."""
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Nobody may change it: others look at the same one."""
    return ast.parse(text_of(path))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the tree, as `ast.walk` gives them."""
    return tuple(ast.walk(tree_of(path)))
