"""Rule: what Python 2 had and Python 3 lacks is not used. Nothing is rewritten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source

NAMES = {
    "basestring": "str",
    "execfile": "exec(open(file).read())",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
"""Built-in names of Python 2, and what to write."""
METHODS = {"iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
MODULES = {
    "ConfigParser": "configparser",
    "Queue": "queue",
    "StringIO": "io",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "httplib": "http.client",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}
BINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Found = tuple[ast.AST, str, str]
"""Where it is, what it is, and what to write."""


def check(sources: list[Source]) -> Iterator[Hint]:
    """Yields each thing once a file, with all its lines."""
    own = {source.module.partition(".")[0] for source in sources}
    for source in sources:
        places: dict[tuple[str, str], list[int]] = {}
        for node, what, instead in _found(source, own):
            places.setdefault((what, instead), []).append(getattr(node, "lineno", 1))
        for (what, instead), lines in places.items():
            first, *others = sorted(set(lines))
            also = f" (also in {', '.join(map(str, others))})" if others else ""
            yield Hint(
                f"{source.file}:{first}",
                f"`{what}`{also}",
                "written for Python 2; the image's Python is 3, and nothing is rewritten",
                f"write `{instead}`",
            )


def _found(source: Source, own: set[str]) -> Iterator[Found]:
    bound, tried = _bound(source), _inside_of_try(source)
    for node in source.nodes:
        if node in tried:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in NAMES and name not in bound:
                yield node, name, NAMES[name]
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]) if name in METHODS:
                if name not in bound:
                    yield node, f".{name}()", f".{METHODS[name]}()"
            case ast.Call(func=ast.Name(id="range"), args=[*_, ast.BinOp(op=ast.Div())]):
                if "range" not in bound:
                    yield node, "range(… / …)", "range(… // …)"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name in MODULES and alias.name not in own:
                        yield node, f"import {alias.name}", f"import {MODULES[alias.name]}"
            case ast.ImportFrom(module=str(module), level=0) if module in MODULES:
                if module not in own:
                    yield node, f"from {module} import", f"from {MODULES[module]} import"


def _bound(source: Source) -> set[str]:
    """The names that a file gives a meaning of its own; all of them if it imports with a star."""
    bound = set(source.names)
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            star = any(alias.name == "*" for alias in node.names)
            bound |= {*NAMES, *METHODS, "range"} if star else {a.name for a in node.names}
        elif isinstance(node, BINDS):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound


def _inside_of_try(source: Source) -> set[ast.AST]:
    """What stands inside of a `try`: there another way is at hand if it fails."""
    return {
        inner
        for node in source.nodes
        if isinstance(node, ast.Try) and _catches_names(node)
        for statement in (*node.body, *(s for handler in node.handlers for s in handler.body))
        for inner in ast.walk(statement)
    }


def _catches_names(node: ast.Try) -> bool:
    """Whether it is about a name or a module that may be missing."""
    caught = [ast.unparse(handler.type) if handler.type else "" for handler in node.handlers]
    missing = ("NameError", "ImportError", "ModuleNotFoundError", "AttributeError", "Exception")
    return any(not text or any(name in text for name in missing) for text in caught)
