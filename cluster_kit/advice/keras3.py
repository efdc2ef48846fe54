"""Rule: no `fit` of Keras 3 under the strategies that it does not support."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cluster_kit.advice.sources import Hint, Source
from cluster_kit.advice.strategies import strategies

MAKERS = {"Model", "Sequential", "Functional", "load_model", "clone_model", "model_from_json"}
Assignment = ast.Assign | ast.AnnAssign | ast.NamedExpr
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Names:
    """Names of variables, attributes, functions and classes: the last part of dotted names.

    `models` are models and functions or classes that make one; `others` come from other libraries;
    `modules` are the program's own.
    """

    modules: frozenset[str]
    models: frozenset[str] = field(default=NOTHING)
    others: frozenset[str] = field(default=NOTHING)

    def model(self, node: ast.expr, source: Source) -> bool:
        """Whether this is a model; a name like `model` is one unless another library made it."""
        if isinstance(node, ast.Call):
            return self._makes_one(node.func, source)
        name = _last(node)
        named_model = name == "model" or name.endswith("_model")
        return name not in self.others and (named_model or self._makes_one(node, source))

    def other(self, node: ast.expr, source: Source) -> bool:
        """Whether this was made by another library."""
        if not isinstance(node, ast.Call):
            return _last(node) in self.others
        meanings = source.meanings(node.func)
        return bool(meanings) and not any(is_maker(m) or self._is_own(m) for m in meanings)

    def _makes_one(self, node: ast.expr, source: Source) -> bool:
        meanings = source.meanings(node)
        if any(map(is_maker, meanings)):
            return True
        is_local = not meanings or any(map(self._is_own, meanings))
        return is_local and _last(node) in self.models - self.others

    def _is_own(self, meaning: str) -> bool:
        return meaning.rpartition(".")[0] in self.modules


def names(sources: list[Source]) -> Names:
    """The names in all sources; assignments, returns and base classes are followed."""
    known = Names(frozenset(source.module for source in sources))
    foreign = frozenset(name for s in sources for name in _assigned_others(s, known))
    known = replace(known, others=foreign)
    while more := {name for s in sources for name in _model_names(s, known)} - known.models:
        known = replace(known, models=known.models | more)
    return known


def _assigned_others(source: Source, known: Names) -> Iterator[str]:
    """Yields names to which something of another library is assigned."""
    for node in source.nodes:
        if isinstance(node, Assignment) and node.value and known.other(node.value, source):
            yield from _targets(node)


def _model_names(source: Source, known: Names) -> Iterator[str]:
    """Yields names of models, of classes derived from one, and of functions that return one."""
    for node in source.nodes:
        if isinstance(node, Assignment) and node.value and known.model(node.value, source):
            yield from _targets(node)
        elif isinstance(node, ast.ClassDef):
            if any(known.model(base, source) for base in node.bases):
                yield node.name
        elif isinstance(node, ast.FunctionDef):
            returned = (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value)
            if any(known.model(value, source) for value in returned):
                yield node.name


def is_maker(meaning: str) -> bool:
    """Whether a dotted name makes a model of Keras 3.

    `keras.Sequential`, `keras.models.load_model` and `keras.applications.ResNet50` do.
    """
    root, _, path = meaning.partition(".")
    parts = path.removeprefix("api.").split(".")
    application = parts[0] == "applications" and parts[-1][:1].isupper()
    return root == "keras" and (parts[-1] in MAKERS or application)


def _targets(node: Assignment) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return filter(None, map(_last, targets))


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


MODEL_PARTS = {"Sequential", "Model", "Input", "models", "layers", "applications"}
FIT_KEYS = {"epochs", "steps_per_epoch", "validation_data", "validation_steps", "callbacks"}
"""Arguments of Keras's `fit`, which tell it from the `fit` of other libraries."""


def check_keras3(sources: list[Source]) -> Iterator[Hint]:
    """Yields calls of `fit`, if all models are made with Keras 3 and none with tf.keras."""
    strategy = next(strategies(sources), "")
    kinds = {kind for source in sources for kind in _kinds_of_models(source)}
    if not strategy or kinds != {"keras"}:
        return
    known = names(sources)
    for source in sources:
        for node in source.nodes:
            if _is_fit(node, source, known):
                yield Hint(
                    source.location(node),
                    f"`fit` of Keras 3 in a program that uses {strategy}",
                    "Keras 3 supports neither ParameterServerStrategy nor "
                    "MultiWorkerMirroredStrategy: there `fit` fails",
                    "write `import tf_keras as keras` (tf.keras is the same in the image), "
                    "or a training loop of your own",
                )


def _kinds_of_models(source: Source) -> Iterator[str]:
    """Yields `keras` for each part of a model that is certainly Keras 3's, else `other`."""
    for node in source.nodes:
        if not isinstance(node, ast.Attribute | ast.Name):
            continue
        meanings = source.meanings(node)
        parts = {_part(name) for name in meanings}
        if meanings and parts <= MODEL_PARTS:
            yield "keras" if all(name.startswith("keras.") for name in meanings) else "other"


def _part(name: str) -> str:
    """The part of Keras that a dotted name is in, "" if it is not of Keras."""
    for root in ("tensorflow.keras.", "tensorflow.compat.v2.keras.", "tf_keras.", "keras."):
        if name.startswith(root):
            return name.removeprefix(root).removeprefix("api.").partition(".")[0]
    return ""


def _is_fit(node: ast.AST, source: Source, known: Names) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr != "fit":
        return False
    fitted = node.func.value
    keras_like = any(keyword.arg in FIT_KEYS for keyword in node.keywords)
    return known.model(fitted, source) or (keras_like and not known.other(fitted, source))
