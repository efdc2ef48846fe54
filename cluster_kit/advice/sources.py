"""Reads a program: its file, and the modules of its own directory that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.problem import Cure, Words, cure_text
from cluster_kit.programs import syntax
from cluster_kit.programs.syntax import Fault


@dataclass(frozen=True)
class Hint:
    """What is at a place (`file:line` or a manifest key), the rule against it, and the cure.

    A hint with neither rule nor cure only says what the kit has done about it.
    """

    place: str
    what: str
    rule: str = ""
    cure: Cure = ""

    def told_by(self, words: Words) -> Hint:
        """Returns the hint with its cure as text.

        A program is cured by whatever has named it: a place in one counts as the key `program`.
        """
        place = "program" if ":" in self.place else self.place
        return replace(self, cure=cure_text(self.cure, words, place))

    def __str__(self) -> str:
        rule, cure = self.rule and f"\n    {self.rule}", cure_text(self.cure)
        return f"{self.place}: {self.what}{rule}" + (cure and f"\n    → {cure}")


MOST_FILES = 50


@dataclass(frozen=True)
class Source:
    """One parsed file with all its nodes. `names` maps each name that an import binds to the
    dotted names it may mean.

    They are several if one import is the fallback of another.
    """

    file: str
    module: str
    nodes: tuple[ast.AST, ...]
    names: dict[str, frozenset[str]]

    def place(self, node: ast.AST) -> str:
        """`file:line` of a node."""
        return f"{self.file}:{getattr(node, 'lineno', 1)}"

    def meanings(self, node: ast.AST) -> frozenset[str]:
        """Dotted names that an expression may mean: `tensorflow.keras.Model` for `tf.keras.Model`.

        Empty if the imports do not tell.
        """
        return _meanings(node, self.names)


def read(program: Path) -> tuple[list[Source], list[Hint]]:
    """The program and its own modules, and a hint for each file that is not valid Python."""
    sources: dict[Path, Source] = {}
    hints: list[Hint] = []
    waiting, seen = [program], {program}
    while waiting and len(seen) <= MOST_FILES:
        path = waiting.pop(0)
        name = path.relative_to(program.parent).as_posix()
        try:
            text = syntax.content(path)
            source = _parse(text, name)
        except SyntaxError as error:
            found = syntax.fault_of(error, text, name)
            hints.append(_syntax_hint(found, syntax.cure(found.message, text)))
            continue
        except syntax.UNREADABLE:
            continue
        if fault := syntax.too_new(text, name):
            hints.append(_version_hint(fault))
        sources[path] = source
        modules = [file for file in _own_modules(source, path, program.parent) if file not in seen]
        seen.update(modules)
        waiting += dict.fromkeys(modules)
    return list(sources.values()), hints


def files(program: Path) -> list[Path]:
    """The program's file and those of its own modules that can be read, the program first."""
    modules = (program.parent / source.file for source in read(program)[0])
    return list(dict.fromkeys([program, *modules]))


def _syntax_hint(fault: Fault, cure: str) -> Hint:
    rule = f"not valid Python: {fault.message}"
    return Hint(fault.place, fault.line, rule, cure or "mend the line")


def _version_hint(fault: Fault) -> Hint:
    oldest = ".".join(map(str, syntax.OLDEST))
    rule = f"the image's Python is {oldest}, unless you chose another base: {fault.message}"
    return Hint(fault.place, fault.line, rule, f"write it as Python {oldest} knows it")


def _parse(text: bytes, name: str) -> Source:
    nodes = tuple(ast.walk(syntax.tree(text)))
    module = name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return Source(name, module, nodes, _bindings(nodes))


def _bindings(nodes: Iterable[ast.AST]) -> dict[str, frozenset[str]]:
    """The names that imports and plain assignments of them bind, with their dotted names."""
    bindings: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                bindings.setdefault(bound, set()).add(alias.name if alias.asname else bound)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                bindings.setdefault(alias.asname or alias.name, set()).add(name)
        elif isinstance(node, ast.Assign):  # keras = tf.keras
            for target in node.targets:
                if isinstance(target, ast.Name) and (names := _meanings(node.value, bindings)):
                    bindings.setdefault(target.id, set()).update(names)
    return {name: frozenset(meanings) for name, meanings in bindings.items()}


def _meanings(node: ast.AST, names: Mapping[str, Set[str]]) -> frozenset[str]:
    if isinstance(node, ast.Name):
        return frozenset(names.get(node.id, ()))
    if isinstance(node, ast.Attribute):
        return frozenset(f"{name}.{node.attr}" for name in _meanings(node.value, names))
    return frozenset()


def _own_modules(source: Source, path: Path, folder: Path) -> Iterator[Path]:
    """Yields the files below `folder` that the source at `path` imports."""
    for node in source.nodes:
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
