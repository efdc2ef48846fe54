"""Checks a user's program by reading its source before any container starts.

Most findings are warnings, not errors: source code can be misread, and the image refuses the same
mistakes when they happen. A rule that is not certain gives no warning. Only what certainly fails is
a problem of the manifest, and only what is certain about a program changes its cluster.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster_kit.advice.sources import Hint, Source, read
from cluster_kit.advice.strategies import (
    always,
    check_alone,
    check_class_weights,
    check_cluster_specs,
    check_coordinator,
    check_generators,
    check_own_cluster,
    check_python_ops,
    check_removed_tf_config,
    check_saves,
    check_scope,
    check_servers,
    check_sharding,
    check_strategies,
    check_tf_config,
    has_own,
    refuse_own_cluster,
    shape,
    strategies,
)
from cluster_kit.advice.tf1 import (
    check_arguments,
    check_flags,
    check_python2,
    check_spelling,
    check_tf1,
    inside_of_try,
    refuse,
    refuse_estimators,
)
from cluster_kit.errors import TOML_STYLE, Problem
from cluster_kit.facts import HostFacts
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.gpus import devices, in_use
from cluster_kit.programs.resolve import IN_CONTAINER, in_package, module_of
from cluster_kit.programs.style import has_keras_3
from cluster_kit.resolved import Cluster
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.paths import seen_from

MAKERS = {"Model", "Sequential", "Functional", "load_model", "clone_model", "model_from_json"}
Assignment = ast.Assign | ast.AnnAssign | ast.NamedExpr
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Names:
    """Names of variables, attributes, functions and classes: the last part of dotted names.

    `models` are models, or functions and classes that make models; `others` come from other
    libraries; `modules` are the program's modules.
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
    """The names in all sources, found through assignments, returns and base classes."""
    known = Names(frozenset(source.module for source in sources))
    foreign = frozenset(name for s in sources for name in _assigned_others(s, known))
    known = replace(known, others=foreign)
    while more := {name for s in sources for name in _model_names(s, known)} - known.models:
        known = replace(known, models=known.models | more)
    return known


def _assigned_others(source: Source, known: Names) -> Iterator[str]:
    """Yields names to which an object of another library is assigned."""
    for node in source.nodes:
        if isinstance(node, Assignment) and node.value and known.other(node.value, source):
            yield from _targets(node)


def _model_names(source: Source, known: Names) -> Iterator[str]:
    """Yields names of models, of their subclasses, and of functions that return models."""
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
"""Arguments that only Keras's `fit` has, not the `fit` of other libraries."""


def check_keras3(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields hints on calls of `fit` if all models are made with Keras 3."""
    if not has_keras_3(manifest) or has_own({"fit"}, sources):
        return
    strategy = next(strategies(sources), "")
    kinds = {kind for source in sources for kind in _kinds_of_models(source)}
    if not strategy or kinds != {"keras"}:
        return
    known = names(sources)
    for source in sources:
        for node in source.nodes:
            if _is_fit(node, source, known):
                yield source.hint(
                    node,
                    f"`fit` of Keras 3 in a program that uses {strategy}",
                    "Keras 3 supports neither ParameterServerStrategy nor "
                    "MultiWorkerMirroredStrategy: there `fit` fails",
                    "write `import tf_keras as keras` (tf.keras is the same in the image), "
                    "or write the training loop yourself",
                )


def _kinds_of_models(source: Source) -> Iterator[str]:
    """Yields `keras` for each part of a model that certainly belongs to Keras 3, else `other`."""
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


GPU_HINT = (
    "install the NVIDIA Container Toolkit, run `nvidia-ctk runtime configure --runtime=docker`, "
    "and restart the engine"
)


def gpus_in_use(manifest: Manifest, cluster: Cluster, facts: HostFacts) -> list[Hint]:
    """Hints on GPUs that other programs use: skipped, or used because the manifest names them."""
    if manifest.gpus == "none" and not any(task.gpus for task in cluster.tasks):
        return []
    hints = []
    for device, user in in_use(facts).items():
        by = [t.name for t in cluster.tasks if any(device.known_as(id_) for id_ in t.gpus)]
        if by:
            did = f"GPU {device.short} goes to {', '.join(by)}, though it is in use"
            hint = 'end that program, name another GPU, or write `gpus = "auto"`, which skips it'
        elif isinstance(manifest.gpus, str) and manifest.gpus != "none":
            did, hint = f"GPU {device.short} is skipped", "end that program, or list GPUs"
        else:
            continue
        hints.append(Hint("gpus", did, f"used by {user}", hint))
    return hints


def refused_gpus(manifest: Manifest, facts: HostFacts) -> list[Hint]:
    """The warning about `gpus = "auto"` if the engine refuses the host's GPUs."""
    if manifest.gpus != "auto" or not facts.gpu_refusal:
        return []
    names = ", ".join(device.short for device in devices(facts.gpus))
    return [
        Hint(
            "gpus",
            f'"auto" on a host with GPUs ({names}), but the workers train on the CPU',
            f"the engine refuses them: {facts.gpu_refusal}",
            f"`cluster-kit doctor` shows what is missing; usually: {GPU_HINT}. "
            '`gpus = "require"` never trains on the CPU, `gpus = "none"` is quiet about it',
        )
    ]


def portable_hints(manifest: Manifest, cluster: Cluster) -> list[Hint]:
    """Warnings about a portable file: `gpus = "auto"`, and directories that each host must have."""
    hints = []
    if manifest.gpus == "auto":
        hints.append(
            Hint(
                "gpus",
                '"auto" in a portable file: the workers train on the CPU',
                "a host's GPUs are known only on that host",
                'list indexes, e.g. `gpus = ["0", "1"]`, or render on that host without --portable',
            )
        )
    sidecar_mounts = (mount for sidecar in cluster.sidecars for mount in sidecar.mounts)
    hints += [
        Hint(
            "data" if mount.target == IN_CONTAINER else "mount",
            f"{mount.source} is an absolute path",
            "every host that runs the file must have it",
            "move the data into the folder of the project",
        )
        for mount in (*cluster.all_mounts, *sidecar_mounts)
        if mount.source.startswith("/")
    ]
    return hints


def check_environment(manifest: Manifest) -> list[Hint]:
    """Warnings about values in `environment` that are meant to come from the shell, or whose names
    look like secrets."""
    hints = []
    for table, limits in manifest.limits_by_table():
        for key, value in limits.environment.items():
            if value in (f"${key}", f"${{{key}}}"):
                what, rule = f"`{value}` stays as it is", "no shell reads the manifest"
            elif looks_secret(key):
                what = "its name looks like a secret's"
                rule = "its value is readable in the manifest"
            else:
                continue
            fix = f'write `secrets = ["{key}"]` there instead, and export the variable'
            hints.append(Hint(f"{table}.environment.{key}", what, rule, fix))
    return hints


def check_secret_roles(program: Path | None, manifest: Manifest, folder: Path) -> list[Hint]:
    """Warnings about secrets of some roles that every task can read in the program's directory.

    Args:
        folder: the manifest's directory, to which paths are relative.
    """
    return [
        Hint(
            f"secret.{name}.roles",
            f"{secret.file} is in the program's directory, which every task sees as /program",
            f"the secret is not restricted to {', '.join(secret.roles)}",
            "move it to another directory",
        )
        for name, secret in manifest.secret.items()
        if program and secret.roles and secret.file
        if seen_from(folder, secret.file).is_relative_to(program.resolve().parent)
    ]


def refuse_relative_import(program: Path | None, sources: list[Source]) -> Iterator[Problem]:
    """Yields the first relative import of the program's own file, which always fails.

    Python runs it as a file, not as a module of its package.
    """
    program_source = next(
        (source for source in sources if program and source.file == program.name), None
    )
    if program is None or program_source is None:
        return
    tried = inside_of_try(program_source)
    for node in always(program_source):
        if isinstance(node, ast.ImportFrom) and node.level and node not in tried:
            yield Problem(
                "program",
                "",
                "a relative import, in the program itself: Python runs it as a file, without its "
                "package",
                in_package(module_of(program.resolve())),
                line=program_source.location(node),
            )
            return


__all__ = ["Fitted", "Hint", "advise", "fit"]


@dataclass(frozen=True)
class Fitted:
    """A manifest whose cluster fits its program, hints on both, and the problems of both."""

    loaded: Loaded
    hints: tuple[Hint, ...]
    problems: tuple[Problem, ...]


def fit(program: Path | None, loaded: Loaded) -> Fitted:
    """Returns the manifest adapted to the program (None for a built-in one)."""
    sources, unread = read(program) if program is not None else ([], [])
    fitting = shape(sources, loaded)
    fitted = loaded.manifest.model_copy(update=fitting.changes)
    loaded = replace(loaded, manifest=fitted, values={**loaded.values, **fitting.changes})
    roles = check_secret_roles(program, loaded.manifest, loaded.path.parent)
    hints = (*fitting.hints, *_hints(sources, unread, loaded.manifest), *roles)
    rules = (refuse_own_cluster, refuse)
    refused = [problem for rule in rules for problem in rule(sources, loaded.manifest)]
    refused += refuse_relative_import(program, sources)
    refused += refuse_estimators(program, sources, loaded.manifest)
    worded = tuple(hint.told_by(loaded.command_line) for hint in hints)
    return Fitted(loaded, worded, (*fitting.problems, *refused))


def advise(program: Path | None, manifest: Manifest) -> tuple[Hint, ...]:
    """Returns hints on the program (None for a built-in one) and on its arguments."""
    sources, unread = read(program) if program is not None else ([], [])
    return tuple(hint.told_by(TOML_STYLE) for hint in _hints(sources, unread, manifest))


def _hints(sources: list[Source], unread: list[Hint], manifest: Manifest) -> tuple[Hint, ...]:
    hints = [*check_arguments(manifest), *check_environment(manifest), *unread]
    for rule in (
        check_own_cluster,
        check_removed_tf_config,
        check_cluster_specs,
        check_strategies,
        check_coordinator,
        check_servers,
        check_alone,
        check_scope,
        check_saves,
        check_tf1,
        check_flags,
        check_spelling,
        check_keras3,
    ):
        hints += rule(sources, manifest)
    for rule_of_text in (
        check_generators,
        check_python_ops,
        check_tf_config,
        check_sharding,
        check_class_weights,
        check_python2,
    ):
        hints += rule_of_text(sources)
    return tuple(hints)
