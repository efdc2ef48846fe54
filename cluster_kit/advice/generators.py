"""Rule: no Python generator inside a dataset function that is sent to the workers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source

DATASET_FN_TAKERS = {"DatasetCreator", "create_per_worker_dataset"}
GENERATORS = {
    "from_generator", "ImageDataGenerator", "flow_from_directory", "flow_from_dataframe"
}  # fmt: skip
WRAPPERS = {"partial", "function"}
"""functools.partial and tf.function: the function inside counts."""
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def check(sources: list[Source]) -> Iterator[Hint]:
    """Yields generators in a dataset function or in functions of the program that it calls."""
    reported: set[str] = set()
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or _last(node.func) not in DATASET_FN_TAKERS:
                continue
            dataset_fn = node.args[0] if node.args else _keyword(node, "dataset_fn")
            for home, function in _functions(dataset_fn, source, sources):
                for file, call in _generators(function, home, sources, set()):
                    place = file.place(call)
                    if place not in reported:
                        reported.add(place)
                        yield _hint(place, _last(call.func), _last(node.func))


def _hint(place: str, generator: str, taker: str) -> Hint:
    return Hint(
        place,
        f"`{generator}` inside a function that {taker} gets",
        "a Python generator would run in the chief, not in the workers, and the chief would "
        "hang at its end",
        "read files there (list_files, TFRecordDataset, tf.io, tf.image), or make tensors of "
        "the data",
    )


def _functions(
    node: ast.expr | None, source: Source, sources: list[Source]
) -> Iterator[tuple[Source, Function]]:
    """Yields the function that an expression names, with its file; nothing if not certain."""
    if isinstance(node, ast.Lambda):
        yield source, node
    elif isinstance(node, ast.Call) and _last(node.func) in WRAPPERS and node.args:
        yield from _functions(node.args[0], source, sources)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = _last(node)
        functions = _defined(name, source) if _is_own(node) else []
        for meaning in source.meanings(node):
            module, _, last = meaning.rpartition(".")
            functions += [
                d for other in sources if other.module == module for d in _defined(last, other)
            ]
        if len(functions) == 1:
            yield functions[0]


def _is_own(node: ast.Name | ast.Attribute) -> bool:
    """Whether it is a plain name, or an attribute of `self` or `cls`."""
    return isinstance(node, ast.Name) or (
        isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    )


def _defined(name: str, source: Source) -> list[tuple[Source, Function]]:
    return [
        (source, node)
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]


def _generators(
    function: Function, source: Source, sources: list[Source], seen: set[Function]
) -> Iterator[tuple[Source, ast.Call]]:
    """Yields calls of generators in a function and in those that it names, with their files."""
    if function in seen:
        return
    seen.add(function)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Call) and _last(node.func) in GENERATORS:
            yield source, node
        elif isinstance(node, ast.Call):
            for named in (node.func, *node.args):
                for home, called in _functions(named, source, sources):
                    yield from _generators(called, home, sources, seen)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
