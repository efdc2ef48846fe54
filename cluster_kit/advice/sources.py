"""A program's text: the file, and the modules of its own directory that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_kit.advice.hint import Hint

MOST_FILES = 50
MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Source:
    """One parsed file. `names` maps what an import binds to all the dotted names it may mean:
    several, where one import is the fallback of another."""

    file: str
    module: str
    tree: ast.Module
    names: dict[str, frozenset[str]]

    def place(self, node: ast.AST) -> str:
        return f"{self.file}:{getattr(node, 'lineno', 1)}"

    def meanings(self, node: ast.AST) -> frozenset[str]:
        """Dotted names that an expression such as `tf.keras.Model` stands for, as far as imports
        tell: `tensorflow.keras.Model`."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, frozenset())
        if isinstance(node, ast.Attribute):
            return frozenset(f"{name}.{node.attr}" for name in self.meanings(node.value))
        return frozenset()


def read(program: Path) -> tuple[list[Source], list[Hint]]:
    """The program and its own modules; a hint for the file itself where it is no Python."""
    sources: dict[Path, Source] = {}
    waiting = [program]
    while waiting and len(sources) < MOST_FILES:
        path = waiting.pop(0)
        if path in sources:
            continue
        try:
            source = _parse(path, program.parent)
        except SyntaxError as error:
            if path == program:
                place, rule = f"{path.name}:{error.lineno or 1}", f"this is no Python: {error.msg}"
                return [], [Hint(place, (error.text or "").strip(), rule, "mend the line")]
            continue
        except (OSError, ValueError, RecursionError, MemoryError):
            continue  # not to be read, or nothing that a parser can hold: the run itself will tell
        sources[path] = source
        waiting += _own_modules(source, path, program.parent)
    return list(sources.values()), []


def _parse(path: Path, folder: Path) -> Source:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError("too long for a program that somebody wrote")
    tree = ast.parse(path.read_bytes(), filename=path.name)
    relative = path.relative_to(folder)
    module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
    return Source(relative.as_posix(), module, tree, _bindings(tree))


def _bindings(tree: ast.Module) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                found.setdefault(bound, set()).add(alias.name if alias.asname else bound)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.setdefault(alias.asname or alias.name, set()).add(name)
    return {name: frozenset(meanings) for name, meanings in found.items()}


def _own_modules(source: Source, path: Path, folder: Path) -> Iterator[Path]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(folder, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            start = path.parents[node.level - 1] if node.level else folder
            parts = (node.module or "").split(".") if node.module else []
            if start.is_relative_to(folder):
                yield from _files(start, parts)
                for alias in node.names:
                    yield from _files(start, [*parts, alias.name])


def _files(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    whole = folder.joinpath(*parts)
    for candidate in (whole.with_suffix(".py") if parts else whole, whole / "__init__.py"):
        try:
            if candidate.suffix == ".py" and candidate.is_file():
                yield candidate
        except OSError:
            continue
