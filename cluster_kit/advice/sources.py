"""Parses a program: its file, and the modules in its directory that it imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.errors import HintText, KeyStyle, hint_text
from cluster_kit.programs import style
from cluster_kit.programs.style import Fault


@dataclass(frozen=True)
class Hint:
    """What a check found at a manifest's key, the rule, and the fix.

    `line` is the place in the file that the key names, `train.py:3`; "" if the finding is in the
    manifest itself. A hint without a rule and a fix reports a change that the kit made.
    """

    key: str
    what: str
    rule: str = ""
    fix: HintText = ""
    line: str = ""

    @property
    def location(self) -> str:
        """`line`, or else `key`."""
        return self.line or self.key

    def told_by(self, words: KeyStyle) -> Hint:
        """Returns the hint with its fix as text."""
        return replace(self, fix=hint_text(self.fix, words, self.key))

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

    def hint(self, node: ast.AST, what: str, rule: str, fix: HintText) -> Hint:
        """A hint on a node of the program."""
        return Hint("program", what, rule, fix, self.location(node))

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


def files(program: Path, sources: Sequence[Source]) -> list[Path]:
    """The files of a program with these sources, the program's own first."""
    modules = (program.parent / source.file for source in sources)
    return list(dict.fromkeys([program, *modules]))


SETTINGS = (".cfg", ".gin", ".ini", ".json", ".toml", ".yaml", ".yml")
"""Suffixes of files with a program's settings."""
MOST_SETTINGS = 100
LONGEST_NAME = 300


def settings(program: Path, sources: Sequence[Source], arguments: Sequence[str]) -> list[Path]:
    """The files of settings in the program's directory that its arguments or its code name: by
    their path in that directory, in `/program`, or beside the module."""
    folder = program.parent
    named = [(folder, word.rpartition("=")[2]) for word in arguments]
    for source in sources:
        beside = (folder / source.file).parent
        texts = [node.value for node in source.nodes if isinstance(node, ast.Constant)]
        words = [text for text in texts if isinstance(text, str) and text.endswith(SETTINGS)]
        named += [(place, word) for word in words for place in dict.fromkeys((folder, beside))]
    found: dict[Path, None] = {}
    for place, word in named:
        if not word.endswith(SETTINGS) or len(word) > LONGEST_NAME:
            continue
        try:
            file = (place / word.removeprefix("/program/")).resolve()
            if file.is_relative_to(folder.resolve()) and file.is_file():
                found[folder / file.relative_to(folder.resolve())] = None
        except (OSError, ValueError):
            continue
    return list(found)[:MOST_SETTINGS]


def _syntax_hint(fault: Fault, hint: str) -> Hint:
    here = ".".join(map(str, sys.version_info[:2]))
    rule = f"not valid Python {here}: {fault.message}"
    hint = hint or "fix the line, if the image has no newer Python"
    return Hint("program", fault.line, rule, hint, fault.location)


def _version_hint(fault: Fault) -> Hint:
    oldest = ".".join(map(str, style.OLDEST_PYTHON))
    rule = f"the kit's image has Python {oldest}, which does not accept this: {fault.message}"
    hint = f"write it in a form that Python {oldest} accepts, if that is the image's"
    return Hint("program", fault.line, rule, hint, fault.location)


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
    """Yields the files below `folder` that the source at `path` imports, or runs as modules."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and "runpy.run_module" in source.meanings(node.func):
            if node.args and isinstance(name := getattr(node.args[0], "value", None), str):
                yield from _files(folder, name.split("."))
                yield from _files(folder, [*name.split("."), "__main__"])
        elif isinstance(node, ast.Import):
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


_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_LATER = (*_FUNCTION.__args__, ast.ClassDef, ast.Lambda, ast.comprehension)
_LEAVES = ("sys.exit", "exit", "quit", "os._exit", "os.abort", "os.execv", "os.execvp")
"""Functions that end a program."""
_IGNORE_ERRORS = ("suppress", "raises", "assertRaises")
"""Context managers whose body may fail."""


def executed(program: str, sources: Sequence[Source]) -> Iterator[tuple[Source, ast.AST]]:
    """Yields the imports and expressions that a program certainly executes, in their order, with
    their files.

    Those of the program's module, of its own modules that it imports, and of functions that it
    calls by name: not below a condition, in a loop or in a `try`, nor after a statement that can
    leave a function or the program.

    Args:
        program: the name of the program's file.
    """
    by_module = {source.module: source for source in sources}
    first = next((source for source in sources if source.file == program), None)
    if first is not None:
        yield from _executed(_body(first), first, by_module, {first.nodes[0]})


def _body(source: Source) -> list[ast.stmt]:
    module = source.nodes[0]
    return module.body if isinstance(module, ast.Module) else []


def _executed(
    body: Sequence[ast.stmt], source: Source, modules: Mapping[str, Source], entered: set[ast.AST]
) -> Iterator[tuple[Source, ast.AST]]:
    """As `executed`, for these statements; `entered` has the modules and functions so far."""
    for statement in body:
        for node in _evaluated(statement):
            yield source, node
            for inner, home in _entered(node, source, modules):
                if inner not in entered:
                    entered.add(inner)
                    yield from _executed(getattr(inner, "body", []), home, modules, entered)
        yield from _executed(_always_entered(statement), source, modules, entered)
        if _can_leave(statement, source):
            return


def _always_entered(statement: ast.stmt) -> list[ast.stmt]:
    """The statements inside of this one that are executed with it."""
    match statement:
        case ast.ClassDef():
            return statement.body
        case ast.If() if _names_main(statement.test):
            return statement.body
        case ast.With() if not _ignores_errors(statement):
            return statement.body
    return []


def _evaluated(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yields a statement that is an import, or the expressions that a statement always evaluates
    itself, without those of its body."""
    parts: list[ast.AST | None] = []
    match statement:
        case ast.Import() | ast.ImportFrom():
            yield statement
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = (*statement.args.defaults, *statement.args.kw_defaults)
            parts = [*statement.decorator_list, *defaults]
        case ast.ClassDef():
            keywords = (keyword.value for keyword in statement.keywords)
            parts = [*statement.decorator_list, *statement.bases, *keywords]
        case ast.If() | ast.While() | ast.Assert():
            parts = [statement.test]
        case ast.For() | ast.AsyncFor():
            parts = [statement.iter]
        case ast.With():
            parts = [item.context_expr for item in statement.items[:1]]
        case ast.AnnAssign():
            parts = [statement.value]
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Return() | ast.Raise():
            parts = list(ast.iter_child_nodes(statement))
    for part in parts:
        if part is not None:
            yield from _always_in(part)


def _always_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yields an expression and those in it that are evaluated with it, the inner ones first."""
    if isinstance(node, _LATER):
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.BoolOp):
        children = [node.values[0]]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        children = [node.generators[0].iter]
    for child in children:
        yield from _always_in(child)
    yield node


def _entered(
    node: ast.AST, source: Source, modules: Mapping[str, Source]
) -> Iterator[tuple[ast.AST, Source]]:
    """Yields the modules that an import executes, or the function that a call executes, each with
    its file."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    elif isinstance(node, ast.Call):
        defined = [d for d in _body(source) if getattr(d, "name", "") == _called(node, source)]
        if len(defined) == 1 and _runs_when_called(defined[0]):
            yield defined[0], source
    for name in names:
        if (module := modules.get(name)) is not None:
            yield module.nodes[0], module


def _called(call: ast.Call, source: Source) -> str:
    """The name of the function that a call executes, "" if it has none; `app.run` calls `main`."""
    if any(name.endswith("app.run") for name in source.meanings(call.func)):
        arguments = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "main")]
        return getattr(arguments[0], "id", "") if arguments else "main"
    return getattr(call.func, "id", "")


def _runs_when_called(function: ast.AST) -> bool:
    """Whether a call executes the body: not of a generator, nor if a decorator decides."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    return not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


def _names_main(test: ast.expr) -> bool:
    """Whether a condition is `__name__ == "__main__"`."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


def _ignores_errors(statement: ast.With) -> bool:
    names = (
        getattr(node, "attr", "") or getattr(node, "id", "")
        for item in statement.items
        for node in ast.walk(item.context_expr)
    )
    return any(name in _IGNORE_ERRORS for name in names)


def _can_leave(statement: ast.stmt, source: Source) -> bool:
    """Whether a statement can end the function or the program that it is in."""
    if isinstance(statement, _FUNCTION | ast.ClassDef):
        return False
    return any(
        isinstance(node, ast.Return | ast.Raise)
        or (
            isinstance(node, ast.Call)
            and not {ast.unparse(node.func), *source.meanings(node.func)}.isdisjoint(_LEAVES)
        )
        for node in ast.walk(statement)
    )
