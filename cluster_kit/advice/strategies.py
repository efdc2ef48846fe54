"""Rule: the multi-worker strategy that a program makes fits the cluster's style."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster_kit.advice.evaluator import writes_tf_config
from cluster_kit.advice.hint import Hint
from cluster_kit.advice.sources import Source
from cluster_kit.manifest.loaded import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import IN_FILE, Problem, Setting
from cluster_kit.programs.style import ALL_TASKS, style_of
from cluster_kit.roles import CHIEF, PS

PARAMETER_SERVER, ALL_REDUCE = "ParameterServerStrategy", "MultiWorkerMirroredStrategy"
NAMES = {
    "ParameterServerStrategy": PARAMETER_SERVER,
    "ParameterServerStrategyV2": PARAMETER_SERVER,
    "MultiWorkerMirroredStrategy": ALL_REDUCE,
    "CollectiveAllReduceStrategy": ALL_REDUCE,
}
ALL_REDUCE_NAMES = {name for name, usual in NAMES.items() if usual == ALL_REDUCE}


def strategies(sources: list[Source]) -> Iterator[str]:
    """Yields the usual name of each strategy that the program makes."""
    yield from (name for _, _, name in _constructions(sources))


@dataclass(frozen=True)
class Shape:
    """What a program's strategy asks of its cluster: changed keys, what is said of them, and
    problems if the keys were chosen on purpose."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    hints: tuple[Hint, ...] = ()
    problems: tuple[Problem, ...] = ()


def shape(sources: list[Source], loaded: Loaded) -> Shape:
    """Returns the cluster's shape for a program that certainly trains by all-reduce alone.

    Every task must run such a program, and TensorFlow waits for ever if the cluster spec has a ps.
    A manifest that was written for another program, or does not name the key, is changed.
    """
    manifest, place = loaded.manifest, _certain_all_reduce(sources)
    if not place or manifest.tf1:
        return Shape()
    problems, changes = [], dict[str, Any]()
    reads = ("program", "style", "tf1")
    if manifest.style == "coordinator":
        rule = f"{ALL_REDUCE} ({place}) waits until every worker runs the program as well"
        problems.append(Problem("style", '"coordinator"', rule, ("write ", ALL_TASKS), reads))
    if (count := manifest.count(PS.name)) > 0:
        if _chosen(PS.name, loaded):
            rule, none = (
                f"{ALL_REDUCE} ({place}) waits for ever if there are ps",
                Setting(PS.name, 0),
            )
            problems.append(Problem(PS.name, str(count), rule, ("write ", none), reads))
        changes[PS.name] = 0
    if manifest.style == "auto" and manifest.count(CHIEF.name) > 0:
        chosen = _chosen(CHIEF.name, loaded)
        changes |= {"style": ALL_TASKS.value} if chosen else {CHIEF.name: 0}
    if problems or not changes:
        return Shape(problems=tuple(problems))
    settings = " and ".join(IN_FILE.setting(Setting(*change), "") for change in changes.items())
    what = f"{ALL_REDUCE}: every worker runs the program, and there is no ps ({settings})"
    return Shape(changes, (Hint(place, what),))


def _chosen(key: str, loaded: Loaded) -> bool:
    """Whether someone gave this key for this program."""
    given = loaded.command_line.keys
    return key in given or ("program" not in given and key in loaded.manifest.model_fields_set)


def check(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields all-reduce in a cluster where TensorFlow would wait for ever if it is used."""
    constructions = list(_constructions(sources))
    names = {name for _, _, name in constructions}
    coordinated = style_of(manifest) == "coordinator"
    if names != {ALL_REDUCE} or not (coordinated or manifest.count(PS.name)) or manifest.tf1:
        return
    source, node, _ = constructions[0]
    if coordinated:
        what, rule = "only the chief runs the program", "it waits until every worker runs it, too"
    else:
        what, rule = "there are ps", "it waits for ever if the cluster spec has a ps"
    yield Hint(
        source.place(node),
        f"{ALL_REDUCE}, but {what}",
        rule,
        'write `style = "all-tasks"` and `ps = 0` (make: STYLE=all-tasks N_PS=0)',
    )


def _certain_all_reduce(sources: list[Source]) -> str:
    """The place where a program makes the all-reduce strategy on every way through it; else "".

    It must make no other strategy, find its cluster in TF_CONFIG, and leave that as it is.
    """
    calls = [(source, node) for source in sources for node in source.nodes]
    for source, node in calls:
        if writes_tf_config(node):
            return ""
        if isinstance(node, ast.Call):
            lasts = {name.rpartition(".")[2] for name in source.meanings(node.func)}
            other = {name for name in lasts if name.endswith("Strategy")} - ALL_REDUCE_NAMES
            resolvers = {name for name in lasts if name.endswith("ClusterResolver")}
            if other or resolvers - {"TFConfigClusterResolver"}:
                return ""
    for source, call, name in _constructions(sources):
        if name == ALL_REDUCE and call not in _conditional(source):
            return source.place(call)
    return ""


def _conditional(source: Source) -> set[ast.AST]:
    """All nodes that only some ways through a file reach; `if __name__ == …` counts as reached."""
    found: set[ast.AST] = set()
    for node in source.nodes:
        if isinstance(node, ast.If) and _names_main(node.test):
            parts: list[ast.AST] = list(node.orelse)
        elif isinstance(node, ast.If | ast.IfExp | ast.Match | ast.BoolOp | ast.ExceptHandler):
            parts = [node]
        else:
            continue
        found.update(inner for part in parts for inner in ast.walk(part))
    return found


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def _constructions(sources: list[Source]) -> Iterator[tuple[Source, ast.Call, str]]:
    """Yields each call that makes a strategy, with its file and the strategy's usual name."""
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call):
                for name in source.meanings(node.func):
                    last = name.rpartition(".")[2]
                    if name.startswith("tensorflow.") and last in NAMES:
                        yield source, node, NAMES[last]
