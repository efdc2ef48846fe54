"""Rules: a program's strategy, data set and TF_CONFIG fit the cluster's style."""

from __future__ import annotations

import ast
import contextlib
import json
import posixpath
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from cluster_kit.advice.sources import MOST_FILES, Hint, Source, executed
from cluster_kit.advice.tf1 import NO_CHIEF, lacks_estimators
from cluster_kit.errors import TOML_STYLE, Problem, Setting
from cluster_kit.manifest.load import Loaded
from cluster_kit.manifest.schema import Manifest
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.style import ALL_TASKS, ONE_CHIEF, ONE_PS, style_of
from cluster_kit.roles import CHIEF, PS, ROLES, WORKER

_JOBS = {job: role for role in ROLES.values() for job in (role.job, *role.jobs)}
ADDRESSES = (ast.List, ast.ListComp)
MAYBE_ADDRESSES = (*ADDRESSES, ast.Name, ast.Call, ast.Attribute, ast.Subscript)
"""Values below the key "cluster"; elsewhere, a name can also mean a number of tasks."""


def check_tf_config(sources: list[Source]) -> Iterator[Hint]:
    """Yields hints on cluster specs that contain both an evaluator and training tasks.

    Only for a program that assigns TF_CONFIG.
    """
    if not any(writes_tf_config(node) for s in sources for node in s.nodes):
        return
    for source in sources:
        for node in _mixed_specs(source):
            yield source.hint(
                node,
                "an evaluator among the training tasks, in a TF_CONFIG that the program writes",
                "the strategy would wait for it forever",
                "do not change TF_CONFIG, or give the evaluator a separate spec: {'cluster': "
                "{'evaluator': [...]}, ...}",
            )


HOST_AND_PORT = re.compile(r"[\w.-]+:\d+")
LOCAL = re.compile(r"(localhost|127\.[\d.]+):\d+")
STARTERS = (
    "subprocess.", "multiprocessing.", "threading.", "concurrent.futures.", "joblib.", "ray.",
    "asyncio.create_subprocess", "os.fork", "os.popen", "os.posix_spawn", "os.spawn", "os.system",
)  # fmt: skip
"""Names with which a program starts its own tasks."""


KEEP_TF_CONFIG = (
    "do not set TF_CONFIG: each task has the one of this cluster "
    '(`if "TF_CONFIG" not in os.environ:` keeps yours for runs without a cluster)'
)


@dataclass(frozen=True)
class OwnCluster:
    """A TF_CONFIG that a program always writes, although its task has one.

    `hangs` is whether it is certain that TensorFlow then waits for tasks that do not exist.
    """

    location: str
    what: str
    hangs: bool


def own_cluster(sources: list[Source], manifest: Manifest) -> OwnCluster | None:
    """The TF_CONFIG that a program with a strategy sets to literal addresses, in place of its own.

    With a `subnet` of the manifest, the program can know the cluster's addresses.
    """
    if not any(strategies(sources)) or manifest.subnet != "auto":
        return None
    for source in sources:
        writes = [node for node in always(source) if writes_tf_config(node)]
        addresses = _literal_addresses(source) if writes else ()
        if addresses:
            names = {name for s in sources for node in s.nodes for name in s.meanings(node)}
            starts = any(name.startswith(STARTERS) or name.endswith(".Server") for name in names)
            local = len(addresses) > 1 and all(map(LOCAL.fullmatch, addresses))
            shown = _some(addresses)
            replaced = f"the program replaces TF_CONFIG with addresses of its own ({shown})"
            return OwnCluster(source.location(writes[0]), replaced, local and not starts)
    return None


def always(source: Source) -> list[ast.AST]:
    """The nodes outside of functions, classes and conditions."""
    inside = _conditional(source) | _guarded(source)
    for node in source.nodes:
        if isinstance(node, Function | ast.ClassDef):
            inside.update(ast.walk(node))
    return [node for node in source.nodes if node not in inside]


def _literal_addresses(source: Source) -> tuple[str, ...]:
    """The addresses of a `{"cluster": {job: ["host:port", …]}}`, a dictionary or JSON, in which all
    are literal."""
    return next((found for n in source.nodes for s in _specs(n) if (found := _addresses(s))), ())


def _addresses(spec: object) -> tuple[str, ...]:
    """The addresses of a cluster spec; () if not all are literal."""
    jobs = spec.values() if isinstance(spec, dict) else ()
    addresses = [address for job in jobs if isinstance(job, list) for address in job]
    literal = all(isinstance(a, str) and HOST_AND_PORT.fullmatch(a) for a in addresses)
    return tuple(addresses) if literal else ()


def _specs(node: ast.AST) -> Iterator[object]:
    """Yields the literal values of a key "cluster": of a dictionary, or of the JSON in a text."""
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(node, ast.Dict):
            for value in (value for key, value in _items(node) if key == "cluster"):
                yield ast.literal_eval(value)
        elif isinstance(node, ast.Constant) and '"cluster"' in str(node.value):
            yield json.loads(str(node.value))["cluster"]


def refuse_own_cluster(sources: list[Source], manifest: Manifest) -> Iterator[Problem]:
    """Yields the TF_CONFIG of a program that TensorFlow would wait for forever."""
    fixed = own_cluster(sources, manifest)
    if fixed is not None and fixed.hangs:
        rule = (
            f"{fixed.what}: TensorFlow waits for these forever, each task is a container of its own"
        )
        yield Problem("program", "", rule, KEEP_TF_CONFIG, line=fixed.location)


def check_own_cluster(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields the TF_CONFIG of a program that does not name this cluster's tasks."""
    fixed = own_cluster(sources, manifest)
    if fixed is not None and not fixed.hangs:
        rule = "the tasks of this cluster have others"
        yield Hint("program", fixed.what, rule, KEEP_TF_CONFIG, fixed.location)


def check_removed_tf_config(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields the statement with which a program always removes TF_CONFIG, as notebooks begin,
    unless the program has read it before, or writes one."""
    if manifest.tf1 or not any(strategies(sources)):
        return
    nodes = [node for source in sources for node in source.nodes]
    removals = [
        (source, node)
        for source in sources
        for node in always(source)
        if isinstance(node, ast.Expr | ast.Delete) and _removes_tf_config(node)
    ]
    removing = {inner for _, node in removals for inner in ast.walk(node)}
    used = any(
        writes_tf_config(node) or (isinstance(node, ast.expr) and _reads_tf_config(node))
        for node in nodes
        if node not in removing
    )
    if removals and not used and not any(map(_reads_another_cluster, sources)):
        source, node = removals[0]
        yield source.hint(
            node,
            "the program removes TF_CONFIG",
            "a strategy then knows of no other task: each task that runs the program trains alone",
            "leave it: each task has the one of this cluster",
        )


def check_cluster_specs(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields hints on a ClusterSpec that does not name this cluster's tasks, and on servers that a
    program starts as a cluster of its own.

    A program that names TF_CONFIG may use them only without it.
    """
    if manifest.program in PROGRAMS or manifest.subnet != "auto":
        return
    if any(_reads_this_cluster(node) for source in sources for node in source.nodes):
        return
    for source in sources:
        loops = (node for node in source.nodes if isinstance(node, _LOOPS))
        repeated = {inner for loop in loops for inner in ast.walk(loop)}
        for node in source.nodes:
            names = source.meanings(node.func) if isinstance(node, ast.Call) else ()
            if node in repeated and any(map(_SERVER.fullmatch, names)):
                yield source.hint(
                    node,
                    "the program starts the servers of a cluster of its own, in its process",
                    "the tasks of this cluster then get no work",
                    "in place of its resolver, write "
                    "`tf.distribute.cluster_resolver.TFConfigClusterResolver()`",
                )
                return
            if any(map(_CLUSTER_SPEC.fullmatch, names)):
                spec = next(iter(getattr(node, "args", ())), None)
                addresses = _addresses(_value(spec, source)) if spec is not None else ()
                if len(addresses) > 1 and not any(map(_OF_TASK.match, addresses)):
                    yield source.hint(
                        node,
                        f"the program's ClusterSpec has addresses of its own ({_some(addresses)})",
                        "the tasks of this cluster have others",
                        ("take them as flags, and write ", _HOSTS),
                    )
                    return


_LOOPS = (ast.For, ast.While, ast.ListComp)
_SERVER = re.compile(r"tensorflow\.(compat\.v[12]\.)?(train|distribute)\.Server")
_CLUSTER_SPEC = re.compile(r"tensorflow\.(compat\.v[12]\.)?train\.ClusterSpec")
_OF_TASK = re.compile(rf"({'|'.join(ROLES)})-\d+:")
"""An address by a task's name, which every task can resolve."""
_HOSTS = Setting("args", ("--ps_hosts={{ ps_hosts }}", "--worker_hosts={{ worker_hosts }}"))


def _reads_this_cluster(node: ast.AST) -> bool:
    text = node.value if isinstance(node, ast.Constant) else last_name(node)
    return text in ("TF_CONFIG", "TFConfigClusterResolver")


def _value(node: ast.expr, source: Source) -> object:
    """The literal value of an expression, None if it is not certain: a variable has one if it is
    assigned once."""
    if isinstance(node, ast.Dict):
        return {key: _value(value, source) for key, value in _items(node)}
    if isinstance(node, ast.Name):
        assigned = _assigned(node.id, source)
        return None if assigned is None else _value(assigned, source)
    with contextlib.suppress(ValueError, RecursionError):
        return ast.literal_eval(node)
    return None


def _assigned(name: str, source: Source) -> ast.expr | None:
    """What a variable is assigned, None unless that is done once."""
    values = [
        node.value
        for node in source.nodes
        if isinstance(node, ast.Assign) and name in map(last_name, node.targets)
    ]
    bound = [node for node in source.nodes if _binds(node, name)]
    return values[0] if len(values) == len(bound) == 1 else None


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node gives a variable or a parameter of this name a value."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.arg) and node.arg == name


def _some(addresses: tuple[str, ...]) -> str:
    return ", ".join(addresses[:2]) + (", …" if len(addresses) > 2 else "")


def _guarded(source: Source) -> set[ast.AST]:
    """All nodes that run only if there is no TF_CONFIG, so never in a cluster's task."""
    nodes: set[ast.AST] = set()
    values = set(_values_of_tf_config(source))
    for node in source.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) == "setdefault":
            nodes.add(node)
        for block in _blocks(node):
            for place, statement in enumerate(block):
                if isinstance(statement, ast.If):
                    parts = _parts_without(statement, block[place + 1 :], values)
                    nodes.update(inner for part in parts for inner in ast.walk(part))
    return nodes


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yields the lists of statements that a node has."""
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            yield block


def _parts_without(condition: ast.If, rest: list[ast.stmt], values: set[str]) -> Iterator[ast.stmt]:
    """Yields the statements that run only without TF_CONFIG: in a condition, and after it."""
    if_true, if_false = _shows_absence(condition.test, values)
    if if_true:
        yield from condition.body
    if if_false:
        yield from condition.orelse
    if (if_true and _leaves(condition.orelse)) or (if_false and _leaves(condition.body)):
        yield from rest


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise)


def _values_of_tf_config(source: Source) -> Iterator[str]:
    """Yields variables with the value of TF_CONFIG: `config = os.environ.get("TF_CONFIG")`."""
    for node in source.nodes:
        if isinstance(node, ast.Assign) and _reads_tf_config(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _shows_absence(test: ast.expr, values: set[str]) -> tuple[bool, bool]:
    """Whether there is certainly no TF_CONFIG if a condition is true, and if it is false.

    Args:
        values: variables that have its value.
    """
    match test:
        case ast.BoolOp(op=op, values=operands):
            if_true, if_false = zip(*(_shows_absence(one, values) for one in operands), strict=True)
            both = isinstance(op, ast.And)
            return (any if both else all)(if_true), (all if both else any)(if_false)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _shows_absence(operand, values)[::-1]
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if isinstance(op, ast.In | ast.NotIn):
                about = _is_tf_config(left)
            else:
                about = _is_nothing(right) and _has_tf_config(left, values)
            absent = isinstance(op, ast.NotIn | ast.Is | ast.Eq)
            return about and absent, about and not absent
        case _:
            return False, _has_tf_config(test, values)


def _has_tf_config(node: ast.expr, values: set[str]) -> bool:
    return node.id in values if isinstance(node, ast.Name) else _reads_tf_config(node)


def _reads_tf_config(node: ast.expr) -> bool:
    """Whether an expression is TF_CONFIG's value: `os.environ["TF_CONFIG"]`, `json.loads(…)`."""
    match node:
        case ast.Subscript(slice=index):
            return _is_tf_config(index)
        case ast.Call(func=function, args=[first, *_]):
            parsed = last_name(function) == "loads" and any(map(_is_tf_config, ast.walk(first)))
            return parsed or _is_tf_config(first)
    return False


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def writes_tf_config(node: ast.AST) -> bool:
    """Whether a node is `os.environ["TF_CONFIG"] = …`, or sets it by `setdefault`, `update`,
    `putenv`.
    """
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return _is_tf_config(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        first = node.args[0] if node.args else None
        if node.func.attr in ("setdefault", "putenv"):
            return first is not None and _is_tf_config(first)
        if node.func.attr == "update":
            return any(keyword.arg == "TF_CONFIG" for keyword in node.keywords) or (
                isinstance(first, ast.Dict) and any(k and _is_tf_config(k) for k in first.keys)
            )
    return False


def _removes_tf_config(node: ast.Expr | ast.Delete) -> bool:
    """Whether this is `del os.environ["TF_CONFIG"]`, or a `pop` whose value is not used."""
    match node:
        case ast.Delete(targets=targets):
            return any(isinstance(t, ast.Subscript) and _is_tf_config(t.slice) for t in targets)
        case ast.Expr(value=ast.Call(func=function, args=[first, *_])):
            return last_name(function) in ("pop", "unsetenv") and _is_tf_config(first)
    return False


def _is_tf_config(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "TF_CONFIG"


def _mixed_specs(source: Source) -> list[ast.expr]:
    """Dictionaries with addresses of both an evaluator and training tasks, each once."""
    specs: list[ast.expr] = []
    for node in source.nodes:
        if not isinstance(node, ast.Dict):
            continue
        if _is_mixed(node, ADDRESSES):
            specs.append(node)
        # In {"cluster": {…}}, names and calls also mean addresses.
        inner_specs = (inner for key, inner in _items(node) if key == "cluster")
        specs += [inner for inner in inner_specs if _is_mixed(inner, MAYBE_ADDRESSES)]
    return list(dict.fromkeys(specs))


def _is_mixed(node: ast.AST, kinds: tuple[type[ast.expr], ...]) -> bool:
    """Whether a dictionary has addresses (nodes of these types) of evaluator and training tasks."""
    if not isinstance(node, ast.Dict):
        return False
    jobs = {key for key, value in _items(node) if isinstance(value, kinds)}
    training = {job for job, role in _JOBS.items() if role.trains}
    return bool(jobs & (_JOBS.keys() - training)) and bool(jobs & training)


def _items(node: ast.Dict) -> Iterator[tuple[object, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            yield key.value, value


PARAMETER_SERVER, ALL_REDUCE = "ParameterServerStrategy", "MultiWorkerMirroredStrategy"
NAMES = {
    "ParameterServerStrategy": PARAMETER_SERVER,
    "ParameterServerStrategyV2": PARAMETER_SERVER,
    "MultiWorkerMirroredStrategy": ALL_REDUCE,
    "CollectiveAllReduceStrategy": ALL_REDUCE,
}
TRAINS_ESTIMATOR = "trains an Estimator in every task"
OF_ALL = {
    re.compile(rf"tensorflow\.(compat\.v[12]\.)?{name}"): does
    for name, does in (
        (r"(train|distribute)\.Server", "starts its task's server"),
        (r"estimator\.train_and_evaluate", TRAINS_ESTIMATOR),
    )
}
"""Functions that a program calls in every task, and what they do."""
SERVER = re.compile(r"tensorflow\.(compat\.v[12]\.)?(train|distribute)\.Server")


def strategies(sources: list[Source]) -> Iterator[str]:
    """Yields the usual name of each strategy that the program makes."""
    yield from (name for _, _, name in _constructions(sources))


@dataclass(frozen=True)
class Shape:
    """What a program's strategy requires of its cluster.

    It has the changed keys, the hints about them, and problems if the user has set these keys.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    hints: tuple[Hint, ...] = ()
    problems: tuple[Problem, ...] = ()


def shape(sources: list[Source], loaded: Loaded) -> Shape:
    """Returns the cluster's shape for a program that certainly trains by all-reduce alone, or that
    is for TensorFlow 1.

    Every task must run such a program, and by all-reduce TensorFlow waits forever if the cluster
    spec has a ps. A key is changed if the manifest does not set it, or was written for another
    program.
    """
    manifest, location = loaded.manifest, _certain(sources, ALL_REDUCE)
    of_another = manifest.style == "coordinator" and not _chosen("style", loaded)
    if manifest.tf1 and of_another:
        message = (
            f"every task runs a program for TensorFlow 1 ({TOML_STYLE.setting(ALL_TASKS, '')})"
        )
        return Shape({"style": ALL_TASKS.value}, (Hint("tf1", message),))
    if not location or manifest.tf1:
        return Shape()
    problems, changes = [], dict[str, Any]()
    reads = ("program", "style", "tf1")
    if of_another:
        changes["style"] = ALL_TASKS.value
    elif manifest.style == "coordinator":
        rule = f"{ALL_REDUCE} ({location}) waits until every worker runs the program as well"
        problems.append(Problem("style", '"coordinator"', rule, ("write ", ALL_TASKS), reads))
    if (count := manifest.count(PS.name)) > 0:
        if _chosen(PS.name, loaded):
            rule, none = (
                f"{ALL_REDUCE} ({location}) waits forever if there are ps",
                Setting(PS.name, 0),
            )
            problems.append(Problem(PS.name, str(count), rule, ("write ", none), reads))
        changes[PS.name] = 0
    if (
        (manifest.style == "auto" or of_another)
        and manifest.count(CHIEF.name) > 0
        and not _chosen(CHIEF.name, loaded)
    ):
        changes[CHIEF.name] = 0
    if problems or not changes:
        return Shape(problems=tuple(problems))
    settings = " and ".join(TOML_STYLE.setting(Setting(*change), "") for change in changes.items())
    message = f"{ALL_REDUCE}: every worker runs the program, and there is no ps ({settings})"
    return Shape(changes, (Hint("program", message, line=location),))


def _chosen(key: str, loaded: Loaded) -> bool:
    """Whether the user set this key for this program."""
    keys = loaded.command_line.keys
    return key in keys or ("program" not in keys and key in loaded.manifest.model_fields_set)


def check_servers(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields hints on servers and Estimators, if only the chief runs the program.

    They need the program in every task. A program that may make a strategy can be a coordinator
    whose other tasks start a server.
    """
    if style_of(manifest) != "coordinator" or manifest.program in PROGRAMS:
        return
    if any(map(_may_coordinate, sources)):
        return
    starts: list[tuple[Source, ast.Call, str]] = []
    for source in sources:
        guarded = _guarded(source)
        for node in source.nodes:
            if isinstance(node, ast.Call) and node not in guarded and not _is_local(node):
                names = source.meanings(node.func)
                does = [
                    does
                    for name in names
                    for pattern, does in OF_ALL.items()
                    if pattern.fullmatch(name)
                    and not (does == TRAINS_ESTIMATOR and lacks_estimators(manifest))
                ]
                if does and len(does) == len(names):
                    starts.append((source, node, does[0]))
    if starts:
        source, node, action = starts[0]
        yield source.hint(
            node,
            f"the program {action}, but only the chief runs it",
            "workers and ps are servers already, and wait for a coordinator's work",
            ("write ", ALL_TASKS, " if each task runs the program"),
        )


COORDINATES = re.compile(r"(?i:.*strategy.*)|ClusterCoordinator|experimental_connect_to_cluster")
"""Names whose use shows that a program may be a coordinator."""


def _may_coordinate(source: Source) -> bool:
    """Whether a file may make a strategy, or else connect to servers of other tasks."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and re.fullmatch(r"\w+Strategy", str(node.value)):
            return True
        if isinstance(node, ast.Attribute | ast.Name):
            lasts = (name.rpartition(".")[2] for name in source.meanings(node))
            if any(map(COORDINATES.fullmatch, lasts)):
                return True
    return False


DISTRIBUTES = re.compile(
    r"(?i:.*dtensor.*)|\w*ClusterResolver|ClusterSpec|ClusterCoordinator|RunConfig|\w*Server|\w*Session"
    r"|experimental_connect_to_\w+|train_and_evaluate|distributed?_\w+|\w+_distributed?"
)
"""Names whose use shows that a program may train in several tasks, in any module."""
ONE_TASK = {"MirroredStrategy", "OneDeviceStrategy", "get_strategy", "has_strategy"}
"""Names of strategies that train in one task."""
LIBRARIES = {
    "tensorflow", "keras", "tf_keras", "numpy", "scipy", "pandas", "matplotlib", "sklearn", "absl",
    "PIL", "yaml", "h5py", "tqdm", "tensorflow_datasets",
}  # fmt: skip
"""Modules that train in several tasks only through the names above, or never."""
STARTS_OTHERS = ("importlib.", "runpy.", "socket.", *STARTERS)


def check_alone(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on a TensorFlow program that certainly does not train in several tasks."""
    workers, ps = manifest.count(WORKER.name), manifest.count(PS.name)
    coordinated = style_of(manifest) == "coordinator"
    trainers = workers + manifest.count(CHIEF.name)
    if not sources or manifest.tf1 or len(sources) >= MOST_FILES or workers + ps < 2:
        return
    nodes = [node for source in sources for node in source.nodes]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    reads = coordinated and any(map(_is_tf_config, nodes)) and not any(map(writes_tf_config, nodes))
    if any(_may_distribute(source, own, reads=reads) for source in sources):
        return
    if not _imports_only_known(sources):
        return
    if not coordinated and (trainers < 2 or _tells_tasks_apart(sources, manifest)):
        return
    if coordinated:
        what = "the chief trains alone"
        counts = {WORKER: workers, PS: ps}
        tasks = " and ".join(
            f"{count} {role.name if count == 1 else role.plural}"
            for role, count in counts.items()
            if count
        )
        idle = f"its {tasks} would have nothing to do"
    else:
        what, idle = "each task trains a model of its own", "no task would use another's work"
    train = f"train under tf.distribute's {PARAMETER_SERVER} or {ALL_REDUCE}"
    parts = (", or, if each worker does a part, write ", ALL_TASKS, " and ", NO_CHIEF)
    yield Hint(
        "program",
        f"no strategy for several tasks: {what}",
        idle,
        (train, *parts) if reads else train,
        sources[0].file,
    )


def _tells_tasks_apart(sources: list[Source], manifest: Manifest) -> bool:
    """Whether each task may do something else, by its arguments or its environment."""
    reads = {"os.environ", "os.getenv"}
    nodes = ((source, node) for source in sources for node in source.nodes)
    return any("{{" in argument for argument in manifest.args) or any(
        reads & source.meanings(node) for source, node in nodes
    )


def _imports_only_known(sources: list[Source]) -> bool:
    """Whether TensorFlow or Keras is imported, and otherwise only what trains in one task."""
    own = {source.module.partition(".")[0] for source in sources}
    roots: set[str] = set()
    for node in (node for source in sources for node in source.nodes):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            roots.add(node.module.partition(".")[0])
    return bool(roots & {"tensorflow", "keras"}) and roots <= (
        own | LIBRARIES | sys.stdlib_module_names
    )


def _may_distribute(source: Source, own: Set[str], *, reads: bool) -> bool:
    """Whether a file may train in several tasks.

    Args:
        own: the names of the program's functions, which say nothing: their statements do.
        reads: the program only reads TF_CONFIG, which says nothing either: where only the chief
            runs it, that gives no work to the others.
    """
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value == "TF_CONFIG" and not reads:
                return True
            if re.fullmatch(r"\w*Strategy|grpc:.*", node.value):
                return True
        elif isinstance(node, ast.Attribute | ast.Name):
            names = source.meanings(node)
            lasts = {name.rpartition(".")[2] for name in names} - ONE_TASK
            is_own = isinstance(node, ast.Name) and node.id in own
            distributes = not is_own and DISTRIBUTES.fullmatch(last_name(node))
            if distributes or any(map(COORDINATES.fullmatch, lasts)):
                return True
            if any(name.startswith(STARTS_OTHERS) for name in names):
                return True
    return False


def _is_local(server: ast.Call) -> bool:
    """Whether a server is alone, on this machine: its cluster is `{"local": ["localhost:0"]}`."""
    spec = server.args[0] if server.args else _keyword(server, "server_or_cluster_def")
    if isinstance(spec, ast.Call) and last_name(spec.func) == "ClusterSpec" and spec.args:
        spec = spec.args[0]
    with contextlib.suppress(ValueError, RecursionError):
        addresses = _addresses(ast.literal_eval(spec)) if isinstance(spec, ast.Dict) else ()
        return len(addresses) == 1 and LOCAL.fullmatch(addresses[0]) is not None
    return False


def check_strategies(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields hints on all-reduce in a cluster in which TensorFlow would wait forever."""
    guarded = {node for source in sources for node in _guarded(source)}
    constructions = [made for made in _constructions(sources) if made[1] not in guarded]
    names = {name for _, _, name in constructions}
    coordinated = style_of(manifest) == "coordinator"
    if names != {ALL_REDUCE} or not (coordinated or manifest.count(PS.name)) or manifest.tf1:
        return
    if own_cluster(sources, manifest) or any(map(_reads_another_cluster, sources)):
        return
    if _in_graph_mode(sources):
        return
    source, node, _ = constructions[0]
    if coordinated:
        state, rule = "only the chief runs the program", "it waits until every worker runs it, too"
    else:
        state, rule = "there are ps", "it waits forever if the cluster spec has a ps"
    yield source.hint(
        node,
        f"{ALL_REDUCE}, but {state}",
        rule,
        ("write ", ALL_TASKS, " and ", Setting(PS.name, 0)),
    )


def check_coordinator(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on a coordinator that every task runs, though none starts a server."""
    location = _certain(sources, PARAMETER_SERVER)
    if not location or manifest.tf1 or style_of(manifest) == "coordinator":
        return
    if any(SERVER.fullmatch(name) for source in sources for name in _called(source)):
        return
    settings = [one for one in (ONE_CHIEF, ONE_PS) if not manifest.count(one.key)]
    if manifest.style != "auto":
        settings.append(Setting("style", "coordinator"))
    parts = [part for setting in settings for part in (" and ", setting)]
    yield Hint(
        "program",
        f"{PARAMETER_SERVER}, but every task runs the program",
        "a coordinator waits for workers and ps that are servers, and here they are not",
        ("write ", *parts[1:]),
        location,
    )


READ_ONLY = {"num_replicas_in_sync", "cluster_resolver"}
"""Attributes of a strategy that a program may read without training under it."""
TRAINS = {"fit", "train_on_batch", "apply_gradients", "minimize"}


def check_scope(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on a program that trains, but certainly not under the strategy it makes."""
    if manifest.tf1 or len(sources) >= MOST_FILES:
        return
    if not any(last_name(node) in TRAINS for source in sources for node in source.nodes):
        return
    made = [one for one in _constructions(sources) if one[2] in (PARAMETER_SERVER, ALL_REDUCE)]
    if len(made) != 1 or made[0][0] is not sources[0] or not _certain(sources, made[0][2]):
        return
    source, call, strategy = made[0]
    targets = [n.targets for n in source.nodes if isinstance(n, ast.Assign) and n.value is call]
    match targets:
        case [[ast.Name(id=name)]] if not _is_used(name, sources):
            alone = (
                "the chief trains" if style_of(manifest) == "coordinator" else "each task trains"
            )
            yield source.hint(
                call,
                f"{strategy}, but nothing is made in its scope: {alone} alone",
                "a strategy distributes only the model and the variables of its scope",
                f"make the model, its optimizer and its metrics inside `with {name}.scope():`",
            )


def has_own(names: Set[str], sources: list[Source]) -> bool:
    """Whether a class of the program has a method of one of these names, so that a call may not be
    of Keras's."""
    classes = (n for s in sources for n in s.nodes if isinstance(n, ast.ClassDef))
    members = (member for of_class in classes for member in of_class.body)
    return any(isinstance(one, ast.FunctionDef) and one.name in names for one in members)


SAVES = {"save", "save_weights", "export"}
SAVED_MODEL = re.compile(r"tensorflow\.(compat\.v[12]\.)?saved_model\.save")
MANAGER = re.compile(r"tensorflow\.(compat\.v[12]\.)?train\.CheckpointManager")
OF_KERAS = (".keras", ".h5", ".hdf5")


def check_saves(sources: list[Source], manifest: Manifest) -> Iterator[Hint]:
    """Yields a hint on a model or checkpoints that every task of an all-reduce certainly saves to
    one path, or on a model that one task saves alone."""
    if not _certain(sources, ALL_REDUCE) or manifest.tf1:
        return
    if manifest.count(CHIEF.name) + manifest.count(WORKER.name) < 2:
        return
    if any(name == "os.chdir" for source in sources for name in _called(source)):
        return
    if has_own(SAVES, sources):
        return
    is_chief = f"task_type == {manifest.chief_job!r}"
    first = is_chief if manifest.count(CHIEF.name) else "task_id == 0"
    first = f"{_name_of_strategy(sources)}.cluster_resolver.{first}"
    flags = _texts_of_flags(sources, manifest.args)
    for source, node in executed(sources[0].file, sources):
        path = _saved_to(node, source, flags) if isinstance(node, ast.Call) else ""
        if path and not path.startswith("/tmp/"):
            yield source.hint(
                node,
                f"every task saves its model to {path}, at the same time",
                "/output is one directory for all tasks: what two write at once can be unreadable",
                _fix_of_save(path, first),
            )
            return
    for source, call, path in _managed(sources):
        yield source.hint(
            call,
            f"every task saves its checkpoints to {path}, at the same time",
            "/output is one directory for all tasks: what two write at once can be unreadable",
            f"{_fix_of_save(path, first)}, and let all restore "
            f"`tf.train.latest_checkpoint({path!r})`",
        )
        return
    fitted = any(last_name(node) == "fit" for source in sources for node in source.nodes)
    alone = [(source, call) for source in sources for call in _saved_alone(source)]
    if fitted and len(alone) == 1:  # without `fit` it may have no metrics, and be saved alone
        source, call = alone[0]
        yield source.hint(
            call,
            "one task saves its model alone",
            "saving reads sums over all tasks: it fails, or waits, if the others do not save, too",
            _fix_of_save(_saved_to(call, source, flags) or "model.keras", first),
        )


def _managed(sources: list[Source]) -> Iterator[tuple[Source, ast.Call, str]]:
    """Yields each CheckpointManager that certainly saves in every task, with its file and its
    literal directory; nothing if the program may tell its tasks apart."""
    if any(_tells_tasks(node) for source in sources for node in source.nodes):
        return
    for source, call in executed(sources[0].file, sources):
        names = source.meanings(call.func) if isinstance(call, ast.Call) else ()
        if not isinstance(call, ast.Call) or not any(map(MANAGER.fullmatch, names)):
            continue
        given = call.args[1] if len(call.args) > 1 else _keyword(call, "directory")
        path = _value(given, source) if given is not None else None
        if isinstance(path, str) and not path.startswith("/tmp/") and _saves(call, source):
            yield source, call, path


def _saves(manager: ast.Call, source: Source) -> bool:
    """Whether a file calls `save` of the variable that gets what this call makes."""
    assigned = (n for n in source.nodes if isinstance(n, ast.Assign) and n.value is manager)
    names = {last_name(target) for node in assigned for target in node.targets}
    return any(
        isinstance(n, ast.Attribute) and n.attr == "save" and last_name(n.value) in names
        for n in source.nodes
    )


def _name_of_strategy(sources: list[Source]) -> str:
    """The variable that has the program's only strategy; `strategy` if that is not certain."""
    calls = [call for _, call, _ in _constructions(sources)]
    nodes = (node for source in sources for node in source.nodes)
    targets = [n.targets for n in nodes if isinstance(n, ast.Assign) and n.value in calls]
    match targets:
        case [[ast.Name(id=name)]]:
            return name
    return "strategy"


def _fix_of_save(path: str, first: str) -> str:
    other = f"/tmp/{path.strip('/').rpartition('/')[2]}"
    return (
        "let each task save, and the others than the first below /tmp: "
        f"`{path!r} if {first} else {other!r}`"
    )


_TELLS_TASKS = re.compile(r"(is_|_is_)?chief|(task|worker)_(id|index|type)|(task_)?index|rank")
"""Names with which a program tells its tasks apart."""


def _saved_alone(source: Source) -> Iterator[ast.Call]:
    """Yields each call that saves a whole model, in a branch of a condition on the task, if the
    other branch saves none."""
    for node in source.nodes:
        if isinstance(node, ast.If) and any(map(_tells_tasks, ast.walk(node.test))):
            saved = [
                [inner for one in branch for inner in ast.walk(one) if _saves_model(inner, source)]
                for branch in (node.body, node.orelse)
            ]
            if all(saved) or not any(saved):
                continue
            yield from (one for branch in saved for one in branch if isinstance(one, ast.Call))


def _tells_tasks(node: ast.AST) -> bool:
    name = node.value if isinstance(node, ast.Constant) else last_name(node)
    return isinstance(name, str) and _TELLS_TASKS.fullmatch(name) is not None


def _saves_model(node: ast.AST, source: Source) -> bool:
    """Whether a node is a call that saves a model, not only its weights."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "save":
        return False
    model, path = _save(node, source)
    literal = path.value if isinstance(path, ast.Constant) else ""
    return model or str(literal).endswith(OF_KERAS)


def _save(call: ast.Call, source: Source) -> tuple[bool, ast.expr | None]:
    """Whether a call certainly saves a model, and the path if it may save one."""
    arguments = call.args
    if any(map(SAVED_MODEL.fullmatch, source.meanings(call.func))):
        arguments, model = call.args[1:], True
    elif isinstance(call.func, ast.Attribute) and call.func.attr in SAVES:
        name = last_name(call.func.value)
        model = name == "model" or name.endswith("_model")
    else:
        return False, None
    return model, arguments[0] if arguments else _keyword(call, "filepath")


def _saved_to(call: ast.Call, source: Source, flags: Mapping[str, str]) -> str:
    """The path that a call saves a model to in every task; "" if it saves none, or it is not
    certain."""
    model, given = _save(call, source)
    with contextlib.suppress(RecursionError):
        path = _text(given, source, flags) if given is not None else None
        return path if path is not None and (model or path.endswith(OF_KERAS)) else ""
    return ""


def _text(node: ast.expr, source: Source, flags: Mapping[str, str]) -> str | None:
    """The text of an expression in every task, None if it is not certain: it can be made of others,
    and of flags (`args.out`)."""
    match node:
        case ast.JoinedStr(values=parts):
            return _joined(parts, "".join, source, flags)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([left, right], "".join, source, flags)
        case ast.Call(args=parts, keywords=[]) if "os.path.join" in source.meanings(node.func):
            return _joined(parts, lambda texts: posixpath.join(*texts), source, flags)
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            return _text(inner, source, flags)
        case ast.Attribute(value=ast.Name(id=name), attr=flag):
            parsed = _assigned(name, source)
            is_parsed = isinstance(parsed, ast.Call) and last_name(parsed.func) == "parse_args"
            return flags.get(flag) if is_parsed else None
        case ast.Name(id=name):
            assigned = _assigned(name, source)
            return None if assigned is None else _text(assigned, source, flags)
        case ast.Constant(value=str(text)):
            return text
        case _:
            return None


def _joined(
    parts: list[ast.expr],
    join: Callable[[list[str]], str],
    source: Source,
    flags: Mapping[str, str],
) -> str | None:
    texts = [text for part in parts if (text := _text(part, source, flags)) is not None]
    return join(texts) if len(texts) == len(parts) > 0 else None


def _texts_of_flags(sources: list[Source], args: list[str]) -> dict[str, str]:
    """The values of argparse's flags that are texts, by attribute, without those that the program
    sets itself; none if an argument may differ between tasks."""
    if any("{{" in arg for arg in args):
        return {}
    nodes = [node for source in sources for node in source.nodes]
    set_later = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    defined: dict[str, list[str | None]] = {}
    for call in nodes:
        if isinstance(call, ast.Call) and last_name(call.func) == "add_argument":
            names = [one.value for one in call.args if isinstance(one, ast.Constant)]
            flag = next((str(name) for name in names if str(name).startswith("--")), "")
            default = _text_default(call)
            value = None if default is None else _last_given(flag, args, default)
            defined.setdefault(flag[2:].replace("-", "_"), []).append(value)
    return {
        name: values[0]
        for name, values in defined.items()
        if len(values) == 1 and values[0] is not None and name not in set_later
    }


def _text_default(call: ast.Call) -> str | None:
    """The default of an argparse argument that is a plain text; None for any other."""
    match _keyword(call, "default"):
        case ast.Constant(value=str(text)):
            others = any(_keyword(call, key) for key in ("dest", "action", "nargs"))
            return None if others else text
        case _:
            return None


def _last_given(flag: str, args: list[str], default: str) -> str:
    """The value of a flag on the command line, else its default."""
    value = default
    for word, following in zip(args, (*args[1:], ""), strict=False):
        if word == flag:
            value = following
        elif word.startswith(f"{flag}="):
            value = word.removeprefix(f"{flag}=")
    return value


def _is_used(name: str, sources: list[Source]) -> bool:
    """Whether a program may do more with this variable than set it and read figures from it."""
    nodes = [node for source in sources for node in source.nodes]
    only_read = {
        node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in READ_ONLY
    }
    for node in nodes:
        if isinstance(node, ast.alias) and node.name == name:
            return True
        if isinstance(node, ast.Attribute | ast.Name) and node not in only_read:
            loaded = isinstance(node.ctx, ast.Load)
            if loaded and last_name(node) in (name, "device"):  # or placed by hand
                return True
    return False


def _called(source: Source) -> Iterator[str]:
    """Yields the dotted names that the calls of a file may mean."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            yield from source.meanings(node.func)


def _certain(sources: list[Source], strategy: str) -> str:
    """The location at which a program always makes this strategy; "" if not certain.

    The program must make no other strategy, not train in graph mode either, and use the TF_CONFIG
    that it finds.
    """
    if _in_graph_mode(sources):
        return ""
    guarded = {node for source in sources for node in _guarded(source)}
    calls = [(source, node) for source in sources for node in source.nodes]
    for source, node in calls:
        if writes_tf_config(node) and node not in guarded:
            return ""
        if isinstance(node, ast.Call):
            lasts = {name.rpartition(".")[2] for name in source.meanings(node.func)}
            if any(name.endswith("Strategy") and NAMES.get(name) != strategy for name in lasts):
                return ""
    if any(map(_reads_another_cluster, sources)):
        return ""
    for source, call, name in _constructions(sources):
        if name == strategy and call not in _conditional(source) | guarded:
            return source.location(call)
    return ""


_OF_GRAPH_MODE = {"replica_device_setter", "MonitoredTrainingSession", "Supervisor"}


def _in_graph_mode(sources: list[Source]) -> bool:
    """Whether a program may train without a strategy, with ps or without."""
    return any(
        name.startswith("tensorflow.") and name.rpartition(".")[2] in _OF_GRAPH_MODE
        for source in sources
        for name in _called(source)
    )


def _reads_another_cluster(source: Source) -> bool:
    """Whether a file makes a cluster resolver that does not read TF_CONFIG."""
    lasts = {name.rpartition(".")[2] for name in _called(source)}
    return any(name.endswith("ClusterResolver") for name in lasts - {"TFConfigClusterResolver"})


def _conditional(source: Source) -> set[ast.AST]:
    """All nodes that run only under a condition; the body of `if __name__ == …` always runs."""
    nodes: set[ast.AST] = set()
    for node in source.nodes:
        if isinstance(node, ast.If) and _names_main(node.test):
            parts: list[ast.AST] = list(node.orelse)
        elif isinstance(node, ast.If | ast.IfExp | ast.Match | ast.BoolOp | ast.ExceptHandler):
            parts = [node]
        else:
            continue
        nodes.update(inner for part in parts for inner in ast.walk(part))
    return nodes


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


STRATEGY = "ParameterServerStrategy"
OTHERS = {"MultiWorkerMirroredStrategy", "MirroredStrategy", "TPUStrategy"}
"""A program that also uses one of these might shard only in that case."""


def check_sharding(sources: list[Source]) -> Iterator[Hint]:
    """Yields hints on `shard` with `input_pipeline_id` if ParameterServerStrategy is the only
    strategy.
    """
    if not _only_coordinates(sources):
        return
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and last_name(node.func) == "shard" and _by_id(node):
                yield source.hint(
                    node,
                    "a dataset is sharded by `input_pipeline_id`",
                    f"{STRATEGY} tells every worker that it is number 0 of 1, so each gets all of "
                    "the data",
                    "write `from cluster_kit_input import shard`, and `shard(dataset)`",
                )


def check_class_weights(sources: list[Source]) -> Iterator[Hint]:
    """Yields hints on `fit` with `class_weight` if ParameterServerStrategy is the only strategy."""
    if not _only_coordinates(sources) or has_own({"fit"}, sources):
        return
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or last_name(node.func) != "fit":
                continue
            weights = _keyword(node, "class_weight")
            if weights and not (isinstance(weights, ast.Constant) and weights.value is None):
                gets = "may get" if isinstance(weights, ast.IfExp) else "gets"
                yield source.hint(
                    node,
                    f"`fit` {gets} `class_weight`",
                    f"under {STRATEGY} Keras ignores it without a word",
                    "let the dataset have the weights, as the third part of each example: "
                    "`dataset.map(lambda x, y: (x, y, tf.where(y > 0.5, 3.0, 1.0)))`",
                )


def _only_coordinates(sources: list[Source]) -> bool:
    """Whether ParameterServerStrategy is the only strategy."""
    names = {last_name(node) for source in sources for node in source.nodes}
    return STRATEGY in names and not names & OTHERS


def _by_id(call: ast.Call) -> bool:
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(
        last_name(part) == "input_pipeline_id"
        for argument in arguments
        for part in ast.walk(argument)
    )


def last_name(node: ast.AST) -> str:
    """The last name in an expression, `shard` in `data.shard`; "" if it has none."""
    return getattr(node, "attr", "") or getattr(node, "id", "")


DATASET_FN_TAKERS = {"DatasetCreator", "create_per_worker_dataset"}
GENERATORS = {
    "from_generator", "ImageDataGenerator", "flow_from_directory", "flow_from_dataframe"
}  # fmt: skip
WRAPPERS = {"partial", "function"}
"""For functools.partial and tf.function, the inner function counts."""
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def check_generators(sources: list[Source]) -> Iterator[Hint]:
    """Yields hints on generators in a dataset function, or in functions that it calls."""
    for source, call, taker in _for_workers(DATASET_FN_TAKERS, _is_generator, sources):
        yield source.hint(
            call,
            f"`{last_name(call.func)}` inside a function that {taker} gets",
            "a Python generator would run in the chief, for all workers, and the chief could "
            "hang at the end",
            "read files there (list_files, TFRecordDataset, tf.io, tf.image), or make tensors of "
            "the data",
        )


def _is_generator(call: ast.Call, source: Source) -> bool:
    return last_name(call.func) in GENERATORS


PYTHON_OP = re.compile(r"tensorflow\.(compat\.v[12]\.)?(numpy_function|py_func|py_function)")


def check_python_ops(sources: list[Source]) -> Iterator[Hint]:
    """Yields a hint on the first Python function in what workers run, if ParameterServerStrategy is
    the only strategy."""
    if not _only_coordinates(sources):
        return
    takers = {*DATASET_FN_TAKERS, "schedule"}
    for source, call, taker in _for_workers(takers, _is_python_op, sources):
        lost = ", and what comes of it cannot be fetched" if taker == "schedule" else ""
        yield source.hint(
            call,
            f"`{last_name(call.func)}` inside a function that {taker} gets",
            f"its Python function runs in the chief, for all workers{lost}",
            "write it with TensorFlow's operations, which workers run",
        )
        return


def _is_python_op(call: ast.Call, source: Source) -> bool:
    names = source.meanings(call.func)
    return bool(names) and all(map(PYTHON_OP.fullmatch, names))


def _for_workers(
    takers: Set[str], wanted: Callable[[ast.Call, Source], bool], sources: list[Source]
) -> Iterator[tuple[Source, ast.Call, str]]:
    """Yields wanted calls in the functions that these takers get, each once: with its file and the
    taker's name."""
    reported: set[str] = set()
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or last_name(node.func) not in takers:
                continue
            given = node.args[0] if node.args else _keyword(node, "dataset_fn")
            for home, function in _functions(given or _keyword(node, "fn"), source, sources):
                for file, call in _calls(function, home, sources, set(), wanted):
                    if file.location(call) not in reported:
                        reported.add(file.location(call))
                        yield file, call, last_name(node.func)


def _functions(
    node: ast.expr | None, source: Source, sources: list[Source]
) -> Iterator[tuple[Source, Function]]:
    """Yields the function that an expression names, with its file; nothing if not certain."""
    if isinstance(node, ast.Lambda):
        yield source, node
    elif isinstance(node, ast.Call) and last_name(node.func) in WRAPPERS and node.args:
        yield from _functions(node.args[0], source, sources)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = last_name(node)
        functions = _defined(name, source) if _is_own(node) else []
        for meaning in source.meanings(node):
            module, _, last = meaning.rpartition(".")
            functions += [
                d
                for other_source in sources
                if other_source.module == module
                for d in _defined(last, other_source)
            ]
        if len(functions) == 1:
            yield functions[0]


def _is_own(node: ast.Name | ast.Attribute) -> bool:
    """Whether the expression is a plain name, or an attribute of `self` or `cls`."""
    return isinstance(node, ast.Name) or (
        isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    )


def _defined(name: str, source: Source) -> list[tuple[Source, Function]]:
    return [
        (source, node)
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]


def _calls(
    function: Function,
    source: Source,
    sources: list[Source],
    seen: set[Function],
    wanted: Callable[[ast.Call, Source], bool],
) -> Iterator[tuple[Source, ast.Call]]:
    """Yields wanted calls in a function and in functions that it names, with their files."""
    if function in seen:
        return
    seen.add(function)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Call) and wanted(node, source):
            yield source, node
        elif isinstance(node, ast.Call):
            for named in (node.func, *node.args):
                for home, called in _functions(named, source, sources):
                    yield from _calls(called, home, sources, seen, wanted)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)
