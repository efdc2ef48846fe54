"""Parses a program: its file, and the modules in its directory that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.errors import HintText, KeyStyle, hint_text
from cluster_kit.programs import style
from cluster_kit.programs.style import Fault


@dataclass(frozen=True)
class Hint:
    """What a check found at a location (`file:line` or a manifest key), the rule, and the fix.

    A hint without a rule and a fix reports a change that the kit made.
    """

    location: str
    what: str
    rule: str = ""
    fix: HintText = ""

    def told_by(self, words: KeyStyle) -> Hint:
        """Returns the hint with its fix as text.

        A location in a program counts as the key `program`.
        """
        location = "program" if ":" in self.location else self.location
        return replace(self, fix=hint_text(self.fix, words, location))

    def __str__(self) -> str:
        rule, fix = self.rule and f"\n    {self.rule}", hint_text(self.fix)
        return f"{self.location}: {self.what}{rule}" + (fix and f"\n    → {fix}")


MOST_FILES = 50


@dataclass(frozen=True)
class Source:
    """One parsed file with all its nodes.

    `names` maps each imported name to the dotted names it can mean: several if one import is the
    fallback of another.
    """

    file: str
    module: str
    nodes: tuple[ast.AST, ...]
    names: dict[str, frozenset[str]]

    def location(self, node: ast.AST) -> str:
        """`file:line` of a node."""
        return f"{self.file}:{getattr(node, 'lineno', 1)}"

    def meanings(self, node: ast.AST) -> frozenset[str]:
        """The dotted names that an expression can mean; empty if the imports do not show it.

        `tensorflow.keras.Model` for `tf.keras.Model`.
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
            text = style.content(path)
            source = _parse(text, name)
        except SyntaxError as error:
            syntax_fault = style.fault_of(error, text, name)
            hints.append(_syntax_hint(syntax_fault, style.hint(syntax_fault.message, text)))
            continue
        except style.UNREADABLE:
            continue
        if fault := style.too_new(text, name):
            hints.append(_version_hint(fault))
        sources[path] = source
        modules = [
            file
            for file in _own_modules(source, path, program.parent)
            if file not in seen and _is_below(file, program.parent)
        ]
        seen.update(modules)
        waiting += dict.fromkeys(modules)
    return list(sources.values()), hints


def files(program: Path) -> list[Path]:
    """The program's file and those of its own modules that can be read, the program first."""
    modules = (program.parent / source.file for source in read(program)[0])
    return list(dict.fromkeys([program, *modules]))


def _syntax_hint(fault: Fault, hint: str) -> Hint:
    rule = f"not valid Python: {fault.message}"
    return Hint(fault.location, fault.line, rule, hint or "fix the line")


def _version_hint(fault: Fault) -> Hint:
    oldest = ".".join(map(str, style.OLDEST_PYTHON))
    rule = f"the image's Python is {oldest}, unless you chose another base: {fault.message}"
    return Hint(
        fault.location, fault.line, rule, f"write it in a form that Python {oldest} accepts"
    )


def _parse(text: bytes, name: str) -> Source:
    nodes = tuple(ast.walk(style.tree(text)))
    module = name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return Source(name, module, nodes, _bindings(nodes))


def _bindings(nodes: Iterable[ast.AST]) -> dict[str, frozenset[str]]:
    """The names bound by imports and by assignments of imported names, with their dotted names."""
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


def _is_below(file: Path, folder: Path) -> bool:
    """Whether a file is in a directory, and not only a link in it: tasks do not see the target of a
    link that leads outside, and readers of the run must not see it."""
    return file.resolve().is_relative_to(folder.resolve())


def _files(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    whole = folder.joinpath(*parts)
    for candidate in (whole.with_suffix(".py") if parts else whole, whole / "__init__.py"):
        try:
            if candidate.suffix == ".py" and candidate.is_file():
                yield candidate
        except OSError:
            continue
