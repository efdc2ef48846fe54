"""Rules: code for TensorFlow 1 or Python 2 has the key for it, and uses nothing removed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from cluster_kit.advice.sources import Hint, Source
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Setting
from cluster_kit.programs.style import LAST_WITH_ESTIMATORS, NIGHTLY, OWN_VERSION, has_estimators
from cluster_kit.util.paths import IMAGE

TABLE = IMAGE / "trainer" / "agent" / "injected" / "tf1" / "names.json"
TOP = "tensorflow."
MOST_NAMED = 3
ESTIMATORS = re.compile(r"((compat\.v[12]|python)\.)?estimator|(compat\.v[12]\.)?keras\.estimator")


def check_tf1(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields names of TensorFlow 1 if the key is not set, else names that even it does not give."""
    uses = [use for source in sources for use in _uses(source)]
    yield from _estimators(uses, manifest)
    if manifest.tf1:
        yield from _gone(uses, manifest.tensorflow)
    elif not any(map(_chooses, sources)):
        yield from _without_key(uses)


def _estimators(uses: list[Use], manifest: Manifest) -> Iterator[Hint]:
    """A hint at the first Estimator, in a TensorFlow that has none any more."""
    known = not manifest.runs_in_kits_image or has_estimators(manifest.tensorflow)
    if known or manifest.tensorflow == NIGHTLY:
        return
    for source, node, path in uses:
        name = next((name for name in _paths(path) if ESTIMATORS.fullmatch(name)), "")
        if name and not (manifest.tf1 and name == "estimator"):  # _gone says what else there is
            last = ".".join(map(str, LAST_WITH_ESTIMATORS))
            yield Hint(
                source.location(node),
                f"`tf.{name}`",
                f"TensorFlow {manifest.tensorflow or OWN_VERSION} has no Estimators: they went "
                f"after {last}",
                ("write ", Setting("tensorflow", last)),
            )
            return


Use = tuple[Source, ast.AST, str]
"""Where a name is used, and its path below `tensorflow`."""


def is_for_tf1(sources: list[Source]) -> bool:
    """Whether a program is certainly written for TensorFlow 1 alone."""
    uses = [use for source in sources for use in _uses(source)]
    return bool(_old(uses)) and not any(map(_chooses, sources))


def _old(uses: list[Use]) -> list[Use]:
    """Those of names that only TensorFlow 1 has."""
    known = frozenset(_table()["only_in_1"])
    return [use for use in uses if known.intersection(_paths(use[2]))]


def _without_key(uses: list[Use]) -> Iterator[Hint]:
    """One hint for the whole program, at the first name that only TensorFlow 1 has."""
    known = frozenset(_table()["only_in_1"])
    if not (old := _old(uses)):
        return
    parts = list(dict.fromkeys(f"tf.{_shortest(path, known)}" for _, _, path in old))
    names = [name for name in parts if not any(other.startswith(f"{name}.") for other in parts)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    source, node, _ = old[0]
    yield Hint(
        source.location(node),
        f"{', '.join(f'`{name}`' for name in names[:MOST_NAMED])}{more}: code for TensorFlow 1",
        "`import tensorflow` is TensorFlow 2, which does not have them",
        ("write ", Setting("tf1", True), ": the program then runs unchanged"),
    )


def _gone(uses: list[Use], version: str) -> Iterator[Hint]:
    """A hint for each name that is gone, where it is used first."""
    table, told = _table(), set[str]()
    if has_estimators(version):
        told.add("estimator")
    for source, node, path in uses:
        for part in _paths(path):
            reason = _reason(table, part)
            if reason and part not in told:
                told.add(part)
                rule = "TensorFlow 2 has no replacement for it that works by itself"
                yield Hint(source.location(node), f"`tf.{part}`", rule, reason)
                break


def _reason(table: dict[str, Any], path: str) -> str:
    """What to use instead of a name below `tensorflow`, "" if it is there or not known."""
    if not path.startswith("contrib."):
        return str(table["gone"].get(path, ""))
    below = path.removeprefix("contrib.")
    above, _, last = below.rpartition(".")
    row, home = table["contrib"].get(below), table["contrib"].get(above)
    if isinstance(row, str):
        return row
    return str(home.get("gone", {}).get(last, "")) if isinstance(home, dict) else ""


@cache
def _table() -> dict[str, Any]:
    """What the image knows of TensorFlow 1's names."""
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def _uses(source: Source) -> Iterator[Use]:
    """Every name below `tensorflow` that certainly means that, in the order of lines."""
    tried = _inside_of_try(source)
    found: list[Use] = []
    for node in source.nodes:
        if node in tried:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            meanings = source.meanings(node) if isinstance(node, ast.Attribute) else frozenset()
            names = list(meanings) if len(meanings) == 1 else []
        found += [(source, node, n.removeprefix(TOP)) for n in names if n.startswith(TOP)]
    return iter(sorted(found, key=lambda use: getattr(use[1], "lineno", 1)))


def _inside_of_try(source: Source) -> set[ast.AST]:
    """What stands inside of a `try`: there another way is at hand if it fails."""
    return {
        inner
        for node in source.nodes
        if isinstance(node, ast.Try)
        for statement in (*node.body, *(s for handler in node.handlers for s in handler.body))
        for inner in ast.walk(statement)
    }


def _chooses(source: Source) -> bool:
    """Whether a program knows of both: it names compat.v1, or looks which version it has."""
    versions = ("__version__", "VERSION", "version")
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{TOP}compat."):
            return True
        if isinstance(node, ast.Import | ast.ImportFrom):
            if any(f"{TOP}compat" in alias.name for alias in node.names):
                return True
        elif isinstance(node, ast.Attribute):
            named = {name.removeprefix(TOP) for name in source.meanings(node)}
            if any(name.startswith("compat.") or name in versions for name in named):
                return True
    return False


def _paths(path: str) -> Iterator[str]:
    """`a.b.c`, `a.b` and `a`, the shortest first."""
    parts = path.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


def _shortest(path: str, known: frozenset[str]) -> str:
    """The part of a path that tells: `contrib.slim` of `contrib.slim.conv2d`."""
    first = next(part for part in _paths(path) if part in known)
    return ".".join(path.split(".")[:2]) if first in ("app", "contrib", "layers") else first


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


def check_python2(sources: list[Source]) -> Iterator[Hint]:
    """Yields each thing once a file, with all its lines."""
    own = {source.module.partition(".")[0] for source in sources}
    for source in sources:
        locations: dict[tuple[str, str], list[int]] = {}
        for node, what, instead in _found(source, own):
            locations.setdefault((what, instead), []).append(getattr(node, "lineno", 1))
        for (what, instead), lines in locations.items():
            first, *others = sorted(set(lines))
            also = f" (also in {', '.join(map(str, others))})" if others else ""
            yield Hint(
                f"{source.file}:{first}",
                f"`{what}`{also}",
                "written for Python 2; the image's Python is 3, and nothing is rewritten",
                f"write `{instead}`",
            )


def _found(source: Source, own: set[str]) -> Iterator[Found]:
    bound, tried = _bound(source), _inside_of_guard(source)
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


def _inside_of_guard(source: Source) -> set[ast.AST]:
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
