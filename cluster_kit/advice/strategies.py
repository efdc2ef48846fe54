"""Which strategies of several machines a program makes, and whether the cluster is one for them."""

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
    """Each one that is made, by its usual name."""
    yield from (name for _, _, name in _made(sources))


def look(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """All-reduce for a chief that runs alone: it would wait for the workers to join."""
    made = list(_made(sources))
    if style_of(manifest) != "coordinator" or {name for _, _, name in made} != {ALL_REDUCE}:
        return
    source, node, _ = made[0]
    yield Hint(
        source.place(node),
        f"{ALL_REDUCE}, but only the chief runs the program",
        "it waits until every worker runs the program as well",
        'write `chief = 0` and `ps = 0` (make: N_CHIEF=0 N_PS=0), or `style = "all-tasks"`',
    )


def _made(sources: list[Source]) -> Iterator[tuple[Source, ast.Call, str]]:
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call):
                for name in source.meanings(node.func):
                    last = name.rpartition(".")[2]
                    if name.startswith("tensorflow.") and last in NAMES:
                        yield source, node, NAMES[last]
