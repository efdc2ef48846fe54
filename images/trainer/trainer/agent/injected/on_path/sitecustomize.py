"""Runs code at a program's start, and as soon as it has imported TensorFlow.

Python runs this file at its start, since child.py put its directory on PYTHONPATH.
CLUSTER_KIT_STACKS names the file into which the program writes its stacks on request.
CLUSTER_KIT_AFTER_IMPORT names the steps after the import: `devices` (check assigned GPUs, limit
memory, simulate devices), `connections` (end dead connections), `iterators` (delete iterators in
threads), `tf1` (give the program TensorFlow 1's API), `closures` (count the closures that each
worker has finished), `placement` (record the ps of each variable), `refuse` (refuse calls that
would hang; also after the import of Keras and of Estimators), `join` (end a server's `join` with
the job), `filters` (give sessions device filters), `estimator` (end the sleeps of an Estimator's
evaluator with the job), `checkpoints` (end an evaluator's wait for the next checkpoint with the
job), `own-server` (start a server in this process, for a program that only connects to one),
`imported` and `built` (notify the leader), `peers` (let the leader wait for that), `sessions` (let
old-style sessions begin when their chief has), `sigterm` (keep the program's handler of SIGTERM
when TensorFlow sets its own), `steps` and `epochs` (report Keras's steps and epochs; after `import
keras` and `import tf_keras`), `servers` (wait until every server answers: a strategy must not ask
them earlier). No module of the trainer is imported under its own name, since users' packages are
often called `trainer`, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH120, PTH100 - pathlib costs 5 ms here
STACKS = os.environ.get("CLUSTER_KIT_STACKS")
CUDA_VISIBLE_DEVICES = os.environ.get("CUDA_VISIBLE_DEVICES")
ESTIMATORS = "tensorflow_estimator.python.estimator.estimator"
ESTIMATORS_LOOP = "tensorflow_estimator.python.estimator.training"


class AfterImport:
    """Finds a module as usual, and calls `prepare` with it at the end of its import."""

    def __init__(self, name: str, prepare: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._prepare = prepare

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(name, path, target) for finder in after)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_prepare(module: ModuleType) -> None:
            with load_file("imports.py").made_faster():
                load(module)
            sys.meta_path.remove(self)
            self._prepare(module)

        spec.loader.exec_module = load_and_prepare
        return spec


def after_tensorflow(tensorflow: ModuleType) -> None:
    """Run the steps that AFTER_IMPORT names, right after the import."""
    wanted = what_is_wanted()
    mailbox = load_file("mailbox.py")
    if "devices" in wanted:
        load_file("tensorflow_devices.py").prepare(
            tensorflow,
            load_file("gpu_promises.py"),
            mailbox,
            hidden=os.environ.get("CUDA_VISIBLE_DEVICES") != CUDA_VISIBLE_DEVICES,
        )
    if "connections" in wanted:
        silent_s = float(os.environ["CLUSTER_KIT_SILENT_S"])
        load_file("dead_connections.py").limit(silent_s, os.environ.get("TF_CONFIG", ""))
    if "iterators" in wanted:
        load_file("iterators.py").end_in_threads()
    if "tf1" in wanted:
        load_file("tf1/api.py").start(tensorflow, load_file)
    if "closures" in wanted:
        load_file("closures.py").count(mailbox)
    if "placement" in wanted:
        load_file("placement.py").note()
    if "refuse" in wanted:
        hook = refuse()
        hook.prepare(mailbox.leave_last_words)
        estimators = AfterImport(ESTIMATORS, hook.for_estimators(mailbox.leave_last_words))
        sys.meta_path.insert(0, estimators)
    if "join" in wanted:
        load_file("tensorflow_patches.py").end_join_with_job(mailbox)
    if "filters" in wanted:
        load_file("tensorflow_patches.py").filter_sessions(os.environ.get("TF_CONFIG", ""))
    if "own-server" in wanted:
        load_file("tf1/own_server.py").start()
    if "estimator" in wanted:
        until_jobs_end = load_file("tensorflow_patches.py").end_sleeps_with_job
        prepare = AfterImport(ESTIMATORS_LOOP, lambda training: until_jobs_end(training, mailbox))
        sys.meta_path.insert(0, prepare)
    if "checkpoints" in wanted:
        load_file("tensorflow_patches.py").end_checkpoints_with_job(tensorflow, mailbox)
    if "imported" in wanted:
        mailbox.has_imported()
    if "sessions" in wanted:
        load_file("tensorflow_patches.py").shorten_session_waits(mailbox)
    if "peers" in wanted:
        load_file("tensorflow_patches.py").begin_together(mailbox.wait_for_peers)
    if "built" in wanted:
        load_file("tensorflow_patches.py").begin_together(mailbox.has_built)
    if "sigterm" in wanted:
        load_file("tensorflow_patches.py").keep_sigterm_handler()
    if "servers" in wanted:
        load_file("tensorflow_patches.py").keep_remote_functions()
        mailbox.wait_for_servers()


def after_keras(keras: ModuleType) -> None:
    """Let Keras 3 refuse strategies that it does not support, and any Keras tell of its steps."""
    wanted = what_is_wanted()
    if "refuse" in wanted and keras.__name__ == "keras":
        refuse().prepare_keras(keras)
    if "steps" in wanted or "epochs" in wanted:
        steps().prepare(keras, wanted)


def steps() -> ModuleType:
    """injected/steps.py as a module, one for all Kerases of this process."""
    if not _steps:
        _steps.append(load_file("steps.py"))
    return _steps[0]


_steps: list[ModuleType] = []


def refuse() -> ModuleType:
    """injected/refuse.py as a module."""
    return load_file("refuse.py")


def what_is_wanted() -> list[str]:
    """The names in CLUSTER_KIT_AFTER_IMPORT."""
    return os.environ.get("CLUSTER_KIT_AFTER_IMPORT", "").split(",")


def load_file(file: str) -> ModuleType:
    """Load a file of injected/ as a module with a unique name."""
    from importlib.util import module_from_spec, spec_from_file_location

    name = "_cluster_kit_" + file.removesuffix(".py").replace("/", "_")
    spec = spec_from_file_location(name, os.path.join(os.path.dirname(HERE), file))  # noqa: PTH118, PTH120
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_the_next_one() -> None:
    """Run the sitecustomize that this one hides: the user's, or the distribution's."""
    ours = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as problem:
        if problem.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, ours)


if __name__ == "sitecustomize":
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    if STACKS:
        load_file("stacks.py").arm(STACKS)
    if what_is_wanted() != [""]:
        sys.meta_path.insert(0, AfterImport("tensorflow", after_tensorflow))
    if "tf1" in what_is_wanted() and PathFinder.find_spec("tf_keras"):
        os.environ.setdefault(
            "TF_USE_LEGACY_KERAS", "1"
        )  # Keras 3 does not have TensorFlow 1's API
    tells = not {"steps", "epochs"}.isdisjoint(what_is_wanted())
    if tells or "refuse" in what_is_wanted():
        sys.meta_path.insert(0, AfterImport("keras", after_keras))
    if tells:
        sys.meta_path.insert(0, AfterImport("tf_keras", after_keras))
    run_the_next_one()
