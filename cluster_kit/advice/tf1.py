"""Rules for programs for TensorFlow 1: they need the key `tf1`, and arguments for their flags;
names that are gone and Python 2 are reported."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cluster_kit.advice.sources import Hint, Source, executed
from cluster_kit.errors import Problem, Setting
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.tasks import NAMES, TRAINING, names_in
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.packages import PYTHON_2_MODULES
from cluster_kit.programs.style import (
    ALL_TASKS,
    LAST_WITH_ESTIMATORS,
    NIGHTLY,
    OWN_VERSION,
    has_estimators,
    style_of,
)
from cluster_kit.roles import CHIEF
from cluster_kit.util.paths import IMAGE
from cluster_kit.util.toml_text import to_toml

TABLE = IMAGE / "trainer" / "agent" / "injected" / "tf1" / "names.json"
TOP = "tensorflow."
MOST_NAMED = 3
ESTIMATORS = re.compile(r"((compat\.v[12]|python)\.)?estimator|(compat\.v[12]\.)?keras\.estimator")


def check_tf1(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields hints on TensorFlow 1's names: if `tf1` is set, only on those that do not exist with
    it.
    """
    uses = [use for source in sources for use in _uses(source)]
    yield from _estimators(uses, manifest)
    if manifest.tf1:
        yield from _gone(uses, manifest.tensorflow)
    elif not any(map(_chooses, sources)):
        yield from _without_key(uses)


def _estimators(uses: list[Use], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on the first Estimator, if the TensorFlow version has no Estimators."""
    if not lacks_estimators(manifest):
        return
    for source, node, path in uses:
        name = next((name for name in _paths(path) if ESTIMATORS.fullmatch(name)), "")
        if name and not (manifest.tf1 and name == "estimator"):  # `_gone` reports the replacement
            yield source.hint(node, f"`tf.{name}`", _no_estimators(manifest), ("write ", LAST))
            return


LAST = Setting("tensorflow", ".".join(map(str, LAST_WITH_ESTIMATORS)))
FAILS = re.compile(r"(compat\.v[12]\.)?estimator|python\.estimator")
"""The names of Estimators whose use alone fails without them; `keras.estimator` fails later."""


def lacks_estimators(manifest: Manifest) -> bool:
    """Whether the manifest's TensorFlow certainly has no Estimators."""
    known = not manifest.runs_in_kits_image or has_estimators(manifest.tensorflow)
    return not known and manifest.tensorflow != NIGHTLY


def _no_estimators(manifest: Manifest) -> str:
    """The rule that the use of an Estimator breaks."""
    return (
        f"TensorFlow {manifest.tensorflow or OWN_VERSION} has no Estimators: the last version with "
        f"them is {LAST.value}"
    )


def refuse_estimators(
    program: Path | None, sources: list[Source], manifest: Manifest
) -> Iterator[Problem]:
    """Yields the first Estimator that a program certainly uses, if its TensorFlow has none."""
    if program is None or not lacks_estimators(manifest) or any(map(_brings_estimators, sources)):
        return
    for source, node in executed(program.name, sources):
        for path in _below_tensorflow(source, node):
            name = next((name for name in _paths(path) if FAILS.fullmatch(name)), "")
            if name:
                rule = f"`tf.{name}`: {_no_estimators(manifest)}"
                reads = ("tensorflow", "image", "tf1")
                hint = ("write ", LAST)
                yield Problem("program", "", rule, hint, reads, source.location(node))
                return


def _brings_estimators(source: Source) -> bool:
    """Whether a file may give TensorFlow an `estimator`, or replace TensorFlow."""
    if source.module.partition(".")[0] == TOP.rstrip("."):
        return True
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            if node.attr == "estimator":
                return True
        elif isinstance(node, ast.Constant) and re.fullmatch(r"[\w.]*estimator", str(node.value)):
            return True  # an argument of setattr or hasattr, or a key of sys.modules
    return False


Use = tuple[Source, ast.AST, str]
"""A use of a name: its node and its path below `tensorflow`."""


def is_for_tf1(sources: list[Source]) -> bool:
    """Whether a program is certainly written only for TensorFlow 1."""
    uses = [use for source in sources for use in _uses(source)]
    return bool(_old(uses)) and not any(map(_chooses, sources))


def _old(uses: list[Use]) -> list[Use]:
    """The uses of names that only TensorFlow 1 has."""
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
    yield source.hint(
        node,
        f"{', '.join(f'`{name}`' for name in names[:MOST_NAMED])}{more}: code for TensorFlow 1",
        "`import tensorflow` is TensorFlow 2, which does not have them",
        ("write ", Setting("tf1", True), ": the program then runs unchanged"),
    )


def _gone(uses: list[Use], version: str) -> Iterator[Hint]:
    """Yields a hint on the first use of each removed name."""
    table, reported = _table(), set[str]()
    if has_estimators(version):
        reported.add("estimator")
    for source, node, path in uses:
        for part in _paths(path):
            reason = _reason(table, part)
            if reason and part not in reported:
                reported.add(part)
                rule = "TensorFlow 2 has no drop-in replacement for it"
                yield source.hint(node, f"`tf.{part}`", rule, reason)
                break


def _reason(table: dict[str, Any], path: str) -> str:
    """What to use instead of a name below `tensorflow`; "" if the name exists or is unknown."""
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
    """The table of TensorFlow 1's names, which the image uses, too."""
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def _uses(source: Source) -> Iterator[Use]:
    """All uses of names that are certainly below `tensorflow`, in the order of lines."""
    tried = inside_of_try(source)
    uses: list[Use] = []
    for node in source.nodes:
        if node in tried:
            continue
        uses += [(source, node, path) for path in _below_tensorflow(source, node)]
    return iter(sorted(uses, key=lambda use: getattr(use[1], "lineno", 1)))


def _below_tensorflow(source: Source, node: ast.AST) -> list[str]:
    """The paths below `tensorflow` that an import or an attribute certainly names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        meanings = source.meanings(node) if isinstance(node, ast.Attribute) else frozenset()
        names = list(meanings) if len(meanings) == 1 else []
    return [name.removeprefix(TOP) for name in names if name.startswith(TOP)]


def inside_of_try(source: Source) -> set[ast.AST]:
    """All nodes inside a `try`: the program has an alternative if they fail."""
    return {
        inner
        for node in source.nodes
        if isinstance(node, ast.Try)
        for statement in (*node.body, *(s for handler in node.handlers for s in handler.body))
        for inner in ast.walk(statement)
    }


def _chooses(source: Source) -> bool:
    """Whether a program supports both versions: it names compat.v1, or checks the version."""
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
    """The shortest part of a path that identifies it: `contrib.slim` of `contrib.slim.conv2d`."""
    first = next(part for part in _paths(path) if part in known)
    return ".".join(path.split(".")[:2]) if first in ("app", "contrib", "layers") else first


PYTHON_2_NAMES = {
    "basestring": "str",
    "execfile": "exec(open(file).read())",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
"""Built-in names of Python 2, and their replacements."""
METHODS = {"iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
BINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Found = tuple[ast.AST, str, str]
"""A construct of Python 2: its location, its code, and its replacement."""


def check_python2(sources: list[Source]) -> Iterator[Hint]:
    """Yields a hint on each kind of Python 2 code once per file, with all its lines."""
    own_modules = {source.module.partition(".")[0] for source in sources}
    for source in sources:
        locations: dict[tuple[str, str], list[int]] = {}
        for node, code, instead in _found(source, own_modules):
            locations.setdefault((code, instead), []).append(getattr(node, "lineno", 1))
        for (code, instead), lines in locations.items():
            first, *further = sorted(set(lines))
            also = f" (also in {', '.join(map(str, further))})" if further else ""
            yield Hint(
                "program",
                f"`{code}`{also}",
                "this is Python 2; the image has Python 3 and does not convert programs",
                f"write `{instead}`",
                f"{source.file}:{first}",
            )


def _found(source: Source, own_modules: set[str]) -> Iterator[Found]:
    bound, tried = _bound(source), _inside_of_guard(source)
    for node in source.nodes:
        if node in tried:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in PYTHON_2_NAMES and name not in bound:
                yield node, name, PYTHON_2_NAMES[name]
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]) if name in METHODS:
                if name not in bound:
                    yield node, f".{name}()", f".{METHODS[name]}()"
            case ast.Call(func=ast.Name(id="range"), args=[*_, ast.BinOp(op=ast.Div())]):
                if "range" not in bound:
                    yield node, "range(… / …)", "range(… // …)"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name in PYTHON_2_MODULES and alias.name not in own_modules:
                        yield node, f"import {alias.name}", f"import {PYTHON_2_MODULES[alias.name]}"
            case ast.ImportFrom(module=str(module), level=0) if module in PYTHON_2_MODULES:
                if module not in own_modules:
                    yield node, f"from {module} import", f"from {PYTHON_2_MODULES[module]} import"


def _bound(source: Source) -> set[str]:
    """The names that a file defines itself; all names if it has a star import."""
    bound = set(source.names)
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            star = any(alias.name == "*" for alias in node.names)
            bound |= {*PYTHON_2_NAMES, *METHODS, "range"} if star else {a.name for a in node.names}
        elif isinstance(node, BINDS):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound


def _inside_of_guard(source: Source) -> set[ast.AST]:
    """All nodes inside a `try`: the program has an alternative if they fail."""
    return {
        inner
        for node in source.nodes
        if isinstance(node, ast.Try) and _catches_names(node)
        for statement in (*node.body, *(s for handler in node.handlers for s in handler.body))
        for inner in ast.walk(statement)
    }


def _catches_names(node: ast.Try) -> bool:
    """Whether a handler catches the error of a missing name or module."""
    caught = [ast.unparse(handler.type) if handler.type else "" for handler in node.handlers]
    missing = ("NameError", "ImportError", "ModuleNotFoundError", "AttributeError", "Exception")
    return any(not text or any(name in text for name in missing) for text in caught)


NO_CHIEF = Setting(CHIEF.name, 0)


TWO_WORDS = re.compile(r"--?[A-Za-z][\w-]* +[^\s{]+")
"""A flag and its value."""
SINGLE_BRACES = re.compile(r"(?:--?[A-Za-z][\w-]*=)?(\{ *(\w+) *\})")
"""A flag, or none, and a name as its value."""


def check_arguments(manifest: Manifest) -> Iterator[Hint]:
    """Yields hints on two words that are one argument, on a name in single braces, and on address
    arguments that do not fit the tasks that run the program."""
    joined = next(filter(TWO_WORDS.fullmatch, manifest.args), "")
    if joined and manifest.program not in PROGRAMS:
        yield Hint(
            "args",
            f'"{joined}" is one argument, with a blank in it',
            "a program takes a flag and its value as two, or joined by =",
            "write `{}`".format(", ".join(f'"{word}"' for word in joined.split(maxsplit=1))),
        )
    braced = filter(None, map(SINGLE_BRACES.fullmatch, manifest.args))
    if known := next((match for match in braced if match[2] in NAMES), None):
        yield Hint(
            "args",
            f'"{known[0]}" is given to every task as it is written',
            "names in double braces are filled for each task",
            f"write `{{{{ {known[2]} }}}}`",
        )
    names = names_in(manifest.args)
    describe_cluster = {"role", "worker_hosts"} <= names
    if not describe_cluster or manifest.program in PROGRAMS or manifest.count(CHIEF.name) != 1:
        return
    if style_of(manifest) == "coordinator":
        yield Hint(
            "args",
            "they give each task its role and index, but only the chief runs the program",
            "under a coordinator, ps and workers are servers",
            ("write ", ALL_TASKS, ", and ", NO_CHIEF, " if worker 0 is the program's chief"),
        )
    elif "chief_hosts" not in names:
        yield Hint(
            "args",
            f"chief-0 has the role `{manifest.chief_job}`, but no argument has its address",
            "every task's job needs its addresses",
            (
                "write ",
                NO_CHIEF,
                " if worker 0 is the program's chief, or pass {{ chief_hosts }}, too",
            ),
        )


PLACES = {
    "job_name": "{{ role }}",
    "task_index": "{{ index }}",
    "task_id": "{{ index }}",
    "type": "{{ role }}",
    "index": "{{ index }}",
    "ps_hosts": "{{ ps_hosts }}",
    "worker_hosts": "{{ worker_hosts }}",
    "chief_hosts": "{{ chief_hosts }}",
    "master": "{{ master }}",
    "task": "{{ index }}",
    "ps_tasks": "{{ num_ps }}",
    "num_ps_tasks": "{{ num_ps }}",
    "worker_replicas": "{{ num_replicas }}",
}
"""Flags of programs older than TF_CONFIG, and the templates with their values."""
SURE = ({"ps_hosts", "worker_hosts"}, {"master", "task", "worker_replicas"})
"""Sets of flags: a program that defines all flags of a set is older than TF_CONFIG."""
LIKELY = ({"job_name", "task_index"}, {"job_name", "task_id"})
"""The same, if its cluster's addresses come from elsewhere: not certain."""
NOT_TOLD = "no argument sets them, so no task knows its role and index"
SIMILAR = 0.8
"""How similar a misspelled flag is to the right one, from 0 to 1."""
HOSTS, SERVER = {"type", "index"}, {"master", "task"}
"""Flags that show this only together with the first set, or with the second."""


def check_flags(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on the first of these flags if no argument sets any; this can be intended."""
    flags = _missing(sources, manifest)
    if flags and not _certain(flags, sources, manifest):
        fix = _problem(flags, sources, manifest).hint
        yield Hint("program", _takes(flags), NOT_TOLD, fix, flags[0].location)


def check_spelling(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on each argument that is spelled like a flag of the program; like one that no
    other argument sets, unless argparse reads it, which refuses every unknown flag.

    TensorFlow 1's `tf.app.run` ignores flags that the program does not define. An argument that
    argparse takes for the beginning of a flag is left alone.
    """
    defined = {flag.name: flag for source in sources for flag in _flags(source)}
    single = (one for one in manifest.args if not TWO_WORDS.fullmatch(one))
    given = {argument: _flag_name(argument) for argument in single}
    set_flags = set(given.values())
    likely = [flag.name for flag in defined.values()
              if flag.argparse or flag.name not in set_flags]  # fmt: skip
    for name in given.values():
        begun = any(flag.argparse and flag.name.startswith(name) for flag in defined.values())
        negated = (name.removeprefix("no"), name.removeprefix("no-"))
        if not name or name in defined or begun or not defined.keys().isdisjoint(negated):
            continue
        for near in difflib.get_close_matches(name, likely, 1, SIMILAR):
            location = defined[near].location
            instead = "without it" if near in set_flags else "with that flag's default"
            rule = f"a program that ignores unknown flags would train {instead}"
            yield Hint(
                "args", f"no flag `--{name}`", rule, f"did you mean `--{near}` ({location})?"
            )


def _flag_name(argument: str) -> str:
    """The name in `--name` or `--name=value`; "" for a value."""
    return argument[2:].partition("=")[0] if argument.startswith("--") else ""


def refuse(sources: list[Source], manifest: Manifest) -> Iterator[Problem]:
    """Yields a problem if the program cannot find its cluster without arguments."""
    flags = _missing(sources, manifest)
    if flags and _certain(flags, sources, manifest):
        yield _problem(flags, sources, manifest)


@dataclass(frozen=True)
class _Flag:
    """A flag that a program defines, its location, whether its default is a literal, and whether
    argparse reads it.
    """

    name: str
    location: str
    constant: bool
    argparse: bool


def _missing(sources: list[Source], manifest: Manifest) -> list[_Flag]:
    """The flags for the task and its cluster, if no argument sets any of them."""
    if any(_names_tf_config(source) for source in sources):
        return []
    defined = {flag.name: flag for source in sources for flag in _flags(source)}
    given_flags = {argument.lstrip("-").partition("=")[0] for argument in manifest.args}
    known = [name for name in PLACES if name in defined]
    if given_flags.intersection(known):
        return []
    if any(sure <= defined.keys() for sure in SURE):
        unneeded = SERVER if defined.keys() >= SURE[0] else HOSTS
    elif any(likely <= defined.keys() for likely in LIKELY):
        unneeded = SERVER | HOSTS
    else:
        return []
    return [defined[name] for name in known if name not in unneeded]


def _certain(flags: list[_Flag], sources: list[Source], manifest: Manifest) -> bool:
    """Whether several tasks run a program that cannot find the others in another way."""
    if sum(manifest.count(role.name) for role in TRAINING) < 2:
        return False
    names = {flag.name for flag in flags}
    if not all(flag.constant for flag in flags) or not any(sure <= names for sure in SURE):
        return False
    return not any(
        name.endswith(("Strategy", "ClusterResolver"))
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.Call)
        for name in source.meanings(node.func)
    )


def _takes(flags: list[_Flag]) -> str:
    return f"the program takes {', '.join(f'--{flag.name}' for flag in flags)}"


def _problem(flags: list[_Flag], sources: list[Source], manifest: Manifest) -> Problem:
    """The problem of these flags, with the settings by which the program finds its cluster."""
    added = (f"--{flag.name}={PLACES[flag.name]}" for flag in flags)
    settings = [Setting("args", (*manifest.args, *added))]
    if not manifest.tf1 and is_for_tf1(sources):
        settings.append(Setting("tf1", True))
        manifest = manifest.model_copy(update={"tf1": True})
    if style_of(manifest) == "coordinator":
        settings.append(ALL_TASKS)
    names = {flag.name for flag in flags}
    worker_0_is_chief = "chief_hosts" not in names and not SURE[1] <= names
    if manifest.count(CHIEF.name) and worker_0_is_chief:
        settings.append(NO_CHIEF)
    hint = [part for setting in settings for part in (" and ", setting)][1:]
    rule = f"{_takes(flags)} ({flags[0].location}), and {NOT_TOLD}"
    reads = (CHIEF.name, "style", "program", "tf1")
    value = to_toml(manifest.args) if manifest.args else ""
    return Problem("args", value, rule, ("write ", *hint), reads)


def _flags(source: Source) -> Iterator[_Flag]:
    """The flags that a file defines."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        absl = node.func.attr.startswith("DEFINE_")
        given = [one.value if isinstance(one, ast.Constant) else None for one in node.args]
        names = [name for name in given[: 1 if absl else None] if isinstance(name, str)]
        if node.func.attr == "add_argument":  # `"-b", "--batch"`, or several spellings of one
            names = [name for name in names if name.startswith("--")]
        elif not absl:
            continue
        defaults = [keyword.value for keyword in node.keywords if keyword.arg == "default"]
        defaults += node.args[1:2] if absl else []
        constant = all(isinstance(default, ast.Constant) for default in defaults)
        for name in names:
            yield _Flag(name.removeprefix("--"), source.location(node), constant, not absl)


def _names_tf_config(source: Source) -> bool:
    return any(
        isinstance(node, ast.Constant) and node.value == "TF_CONFIG" for node in source.nodes
    )
