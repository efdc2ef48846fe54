"""Refuses calls that do not work under TensorFlow's strategies, before the program hangs.

Each message names the problem, the rule, and what to do. Sources: keras-team/keras#18624 (Keras 3
knows neither ParameterServerStrategy nor MultiWorkerMirroredStrategy), tensorflow/tensorflow#46169
(an evaluator in the cluster spec is waited for, for ever); a generator in a dataset function runs
in the coordinator, which then never ends (measured with TensorFlow 2.21); an Estimator's `train`
waits for a server that only `train_and_evaluate` starts (measured with TensorFlow 2.15).
"""

from __future__ import annotations

import functools
import json
import os
import re
import socket
import threading
from collections.abc import Callable
from types import ModuleType
from typing import NoReturn

EVALUATOR_IN_SPEC = (
    "the cluster spec has an evaluator among the training tasks: {strategy} would wait for it"
    " forever. Do not change TF_CONFIG, or give the evaluator a separate spec"
)
PS_UNDER_ALL_REDUCE = (
    "the cluster spec has {ps} ps: MultiWorkerMirroredStrategy would wait forever. Run it without"
    ' ps and on every task: style "all-tasks", ps 0'
)
PS_ON_A_WORKER = (
    "ParameterServerStrategy in {task}: only the chief makes it, and would wait forever for the"
    ' workers\' servers. Run the program on the chief alone: style "coordinator"'
)
GENERATOR = (
    "a Python generator inside a dataset function: it would run in the coordinator, for all"
    " workers, and the coordinator could hang at its end. Read files there (list_files,"
    " TFRecordDataset, tf.io, tf.image), or make tensors of the data"
)
KERAS_3_FIT = (
    "Keras 3 cannot {method} under {strategy}. Use tf_keras, which is Keras 2 (`import tf_keras as"
    " keras`; an image of your own may need `pip install tf_keras`), or a training loop of your own"
)
TRAIN_WITHOUT_SERVER = (
    "no server answers on {address}: Estimator.train starts none in a cluster, and would wait"
    " forever. Call tf.estimator.train_and_evaluate, which starts it, or create a"
    " tf.distribute.Server first"
)
CONNECT_S = 2.0
Refuse = Callable[[str], NoReturn]
_in_dataset_function = threading.local()


def prepare(leave_last_words: Callable[[str], None]) -> None:
    """Called once, right after `import tensorflow`. Parts that this TensorFlow does not have are
    skipped.

    AutoGraph adds its own frames to errors inside a dataset function, so the message also goes to
    the supervisor.
    """
    try:
        from tensorflow.python.data.ops import dataset_ops
        from tensorflow.python.distribute import collective_all_reduce_strategy as all_reduce
        from tensorflow.python.distribute import parameter_server_strategy_v2 as parameter_server
        from tensorflow.python.distribute.coordinator import cluster_coordinator
    except ImportError:
        return

    refuse = with_last_words(leave_last_words)
    for strategy in (
        all_reduce.CollectiveAllReduceStrategy,
        all_reduce.CollectiveAllReduceStrategyV1,
    ):
        strategy.__init__ = without_ps(strategy.__init__, refuse)
    coordinated = parameter_server.ParameterServerStrategyV2
    coordinated.__init__ = on_the_chief(coordinated.__init__, refuse)
    for strategy in (
        coordinated,
        all_reduce.CollectiveAllReduceStrategy,
        all_reduce.CollectiveAllReduceStrategyV1,
    ):
        strategy.__init__ = without_evaluator(strategy.__init__, strategy.__name__, refuse)
    coordinator = cluster_coordinator.ClusterCoordinator
    coordinator.create_per_worker_dataset = marked(coordinator.create_per_worker_dataset)
    dataset_ops.DatasetV2.from_generator = staticmethod(
        not_while_marked(dataset_ops.DatasetV2.from_generator, refuse)
    )


def with_last_words(leave_last_words: Callable[[str], None]) -> Refuse:
    """Returns a function that raises ValueError with a message, and tells it the supervisor."""

    def refuse(message: str) -> NoReturn:
        leave_last_words(message)
        raise ValueError(message)

    return refuse


def without_evaluator(init: Callable, name: str, refuse: Refuse) -> Callable:
    """A strategy's `init` that first checks its cluster spec for an evaluator."""

    @functools.wraps(init)
    def checked(self: object, *arguments: object, **keys: object) -> None:
        jobs = jobs_of(resolver_in(arguments, keys))
        if "evaluator" in jobs and len(jobs) > 1:
            refuse(EVALUATOR_IN_SPEC.format(strategy=public(name)))
        init(self, *arguments, **keys)

    return checked


def without_ps(init: Callable, refuse: Refuse) -> Callable:
    """The all-reduce strategy's `init` that first checks its cluster spec for ps.

    In graph mode, as under an Estimator, TensorFlow does not wait for them.
    """

    @functools.wraps(init)
    def checked(self: object, *arguments: object, **keys: object) -> None:
        from tensorflow.python.eager import context

        resolver = resolver_in(arguments, keys)
        jobs = jobs_of(resolver)
        if evaluates(jobs):
            arguments = tuple(given for given in arguments if given is not resolver)
            keys["cluster_resolver"] = alone()
        elif jobs.get("ps") and context.executing_eagerly():
            refuse(PS_UNDER_ALL_REDUCE.format(ps=jobs["ps"]))
        init(self, *arguments, **keys)

    return checked


def on_the_chief(init: Callable, refuse: Refuse) -> Callable:
    """ParameterServerStrategy's `init` that first checks that its resolver is not a worker's.

    It also marks a strategy whose servers the program has started itself, for `closures` and
    `placement`: their names are not those of this cluster's tasks.
    """

    @functools.wraps(init)
    def checked(self: object, *arguments: object, **keys: object) -> None:
        resolver = resolver_in(arguments, keys)
        job = getattr(resolver, "task_type", None)
        if job in ("worker", "ps"):
            refuse(PS_ON_A_WORKER.format(task=f"{job}-{resolver.task_id or 0}"))
        self.cluster_kit_elsewhere = is_elsewhere(resolver)
        init(self, *arguments, **keys)

    return checked


LOOPBACK = re.compile(r"(\w+://)?(localhost|127\.[\d.]+|\[::1\]):\d+")


def is_elsewhere(resolver: object) -> bool:
    """Whether all servers of a resolver are in this task's container, and its cluster's are not."""
    if resolver is None:
        return False
    own = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    if any(LOOPBACK.fullmatch(address) for job in own.values() for address in job):
        return False
    jobs = getattr(resolver.cluster_spec(), "as_dict", dict)()
    addresses = [address for job in jobs.values() for address in job]
    return bool(addresses) and all(map(LOOPBACK.fullmatch, map(str, addresses)))


def evaluates(jobs: dict[str, int]) -> bool:
    """Whether this task is an evaluator that is not in its own cluster spec, as with an Estimator:
    TensorFlow's strategies would search it there."""
    task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {})
    return task.get("type") == "evaluator" and bool(jobs) and "evaluator" not in jobs


def alone() -> object:
    """A resolver without a cluster, so that the strategy uses the devices of this process."""
    from tensorflow.python.distribute.cluster_resolver import cluster_resolver
    from tensorflow.python.training import server_lib

    return cluster_resolver.SimpleClusterResolver(server_lib.ClusterSpec({}))


def resolver_in(arguments: tuple[object, ...], keys: dict[str, object]) -> object:
    """The cluster resolver among a strategy's arguments, None without one."""
    first = arguments[0] if arguments else None
    resolver = keys.get("cluster_resolver", first)
    return resolver if hasattr(resolver, "cluster_spec") else None


def jobs_of(resolver: object) -> dict[str, int]:
    """The number of tasks of each job in a resolver's cluster spec; without a resolver, in
    TF_CONFIG, which the strategies then use."""
    if resolver is None:
        from tensorflow.python.distribute.cluster_resolver import tfconfig_cluster_resolver

        resolver = tfconfig_cluster_resolver.TFConfigClusterResolver()
    spec = resolver.cluster_spec()
    return {job: spec.num_tasks(job) for job in getattr(spec, "jobs", [])}


def marked(create: Callable) -> Callable:
    """A `create_per_worker_dataset` that forbids generators in its dataset function."""

    @functools.wraps(create)
    def creating(self: object, dataset_fn: object, *arguments: object, **keys: object) -> object:
        if not callable(dataset_fn) or hasattr(dataset_fn, "function_spec"):
            return create(self, dataset_fn, *arguments, **keys)

        @functools.wraps(dataset_fn)
        def making(*given: object, **named: object) -> object:
            _in_dataset_function.now = True
            try:
                return dataset_fn(*given, **named)
            finally:
                _in_dataset_function.now = False

        return create(self, making, *arguments, **keys)

    return creating


def not_while_marked(from_generator: Callable, refuse: Refuse) -> Callable:
    """`from_generator`, refused inside a dataset function of a coordinator."""

    @functools.wraps(from_generator)
    def checked(*arguments: object, **keys: object) -> object:
        if getattr(_in_dataset_function, "now", False):
            refuse(GENERATOR)
        return from_generator(*arguments, **keys)

    return checked


def for_estimators(leave_last_words: Callable[[str], None]) -> Callable[[ModuleType], None]:
    """Returns what is to be called right after the import of the module of Estimators."""
    refuse = with_last_words(leave_last_words)

    def prepare(estimators: ModuleType) -> None:
        for name in ("Estimator", "EstimatorV2"):
            estimator = getattr(estimators, name, None)
            if estimator is not None and "train" in vars(estimator):
                estimator.train = with_server(estimator.train, refuse)

    return prepare


def with_server(train: Callable, refuse: Refuse) -> Callable:
    """An Estimator's `train` that first looks for the server of its own task, if it needs one."""

    @functools.wraps(train)
    def checked(self: object, *arguments: object, **keys: object) -> object:
        config = self.config
        _, grpc, address = config.master.rpartition("grpc://")
        spec = config.cluster_spec.as_dict().get(config.task_type, [])
        if grpc and address in spec and config.train_distribute is None and not answers(address):
            refuse(TRAIN_WITHOUT_SERVER.format(address=address))
        return train(self, *arguments, **keys)

    return checked


def answers(address: str) -> bool:
    """Whether anything accepts connections on HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError:
        return False
    return True


def prepare_keras(keras: ModuleType) -> None:
    """Called once, right after `import keras` if that is Keras 3."""
    if not str(getattr(keras, "__version__", "")).startswith("3."):
        return
    for method in ("fit", "evaluate", "predict"):
        original = getattr(keras.Model, method, None)
        if original is not None:
            setattr(keras.Model, method, not_distributed(original, method))


def not_distributed(original: Callable, method: str) -> Callable:
    """A method of Keras 3's Model that refuses the strategies that Keras 3 does not support."""

    @functools.wraps(original)
    def checked(self: object, *arguments: object, **keys: object) -> object:
        from tensorflow.python.distribute import distribute_lib

        models_strategy = getattr(self, "distribute_strategy", None)
        for strategy in (models_strategy, distribute_lib.get_strategy()):
            name = type(strategy).__name__
            if name in ("ParameterServerStrategyV2", "CollectiveAllReduceStrategy"):
                raise ValueError(KERAS_3_FIT.format(method=method, strategy=public(name)))
        return original(self, *arguments, **keys)

    return checked


def public(name: str) -> str:
    """The strategy's public name."""
    return {
        "ParameterServerStrategyV2": "ParameterServerStrategy",
        "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
        "CollectiveAllReduceStrategyV1": "MultiWorkerMirroredStrategy",
    }.get(name, name)
