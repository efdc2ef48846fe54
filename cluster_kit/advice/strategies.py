"""Rule: the multi-worker strategy that a program makes fits the cluster's style."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source
from cluster_kit.manifest.schema import Manifest
from cluster_kit.programs.style import style_of

PARAMETER_SERVER, ALL_REDUCE = "ParameterServerStrategy", "MultiWorkerMirroredStrategy"
NAMES = {
    "ParameterServerStrategy": PARAMETER_SERVER,
    "ParameterServerStrategyV2": PARAMETER_SERVER,
    "MultiWorkerMirroredStrategy": ALL_REDUCE,
    "CollectiveAllReduceStrategy": ALL_REDUCE,
}


def strategies(sources: list[Source]) -> Iterator[str]:
    """Yields the usual name of each strategy that the program makes."""
    yield from (name for _, _, name in _constructions(sources))


def check(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields all-reduce in a program that only the chief runs: it would wait for the workers."""
    constructions = list(_constructions(sources))
    names = {name for _, _, name in constructions}
    if style_of(manifest) != "coordinator" or names != {ALL_REDUCE}:
        return
    source, node, _ = constructions[0]
    yield Hint(
        source.place(node),
        f"{ALL_REDUCE}, but only the chief runs the program",
        "it waits until every worker runs the program as well",
        'write `chief = 0` and `ps = 0` (make: N_CHIEF=0 N_PS=0), or `style = "all-tasks"`',
    )


def _constructions(sources: list[Source]) -> Iterator[tuple[Source, ast.Call, str]]:
    """Yields each call that makes a strategy, with its file and the strategy's usual name."""
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call):
                for name in source.meanings(node.func):
                    last = name.rpartition(".")[2]
                    if name.startswith("tensorflow.") and last in NAMES:
                        yield source, node, NAMES[last]
