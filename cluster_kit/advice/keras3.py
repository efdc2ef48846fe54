"""Rule: no `fit` of Keras 3 under the strategies that it does not support."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice import models
from cluster_kit.advice.hint import Hint
from cluster_kit.advice.models import Names
from cluster_kit.advice.sources import Source
from cluster_kit.advice.strategies import strategies

MODEL_PARTS = {"Sequential", "Model", "Input", "models", "layers", "applications"}
FIT_KEYS = {"epochs", "steps_per_epoch", "validation_data", "validation_steps", "callbacks"}
"""Arguments of Keras's `fit`, which tell it from the `fit` of other libraries."""


def check(sources: list[Source]) -> Iterator[Hint]:
    """Yields calls of `fit`, if all models are made with Keras 3 and none with tf.keras."""
    strategy = next(strategies(sources), "")
    kinds = {kind for source in sources for kind in _kinds_of_models(source)}
    if not strategy or kinds != {"keras"}:
        return
    known = models.names(sources)
    for source in sources:
        for node in source.nodes:
            if _is_fit(node, source, known):
                yield Hint(
                    source.place(node),
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
