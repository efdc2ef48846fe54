"""Rule: under ParameterServerStrategy nothing is sharded by `input_pipeline_id`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source

STRATEGY = "ParameterServerStrategy"
OTHERS = {"MultiWorkerMirroredStrategy", "MirroredStrategy", "TPUStrategy"}
"""A program that knows one of these as well may shard in that case alone."""


def check(sources: list[Source]) -> Iterator[Hint]:
    """Yields calls of `shard` with `input_pipeline_id` in programs with that strategy alone."""
    names = {_last(node) for source in sources for node in source.nodes}
    if STRATEGY not in names or names & OTHERS:
        return
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and _last(node.func) == "shard" and _by_id(node):
                yield Hint(
                    source.place(node),
                    "a dataset is sharded by `input_pipeline_id`",
                    f"{STRATEGY} tells every worker that it is number 0 of 1, so each gets all of "
                    "the data",
                    "write `from cluster_kit_input import shard`, and `shard(dataset)`",
                )


def _by_id(call: ast.Call) -> bool:
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(_last(part) == "input_pipeline_id" for one in given for part in ast.walk(one))


def _last(node: ast.AST) -> str:
    """The name that an expression ends with, `shard` of `data.shard`; "" if it has none."""
    return getattr(node, "attr", "") or getattr(node, "id", "")
