"""Patches of TensorFlow for programs of several tasks: join, sessions, and remote functions.

`tf.distribute.Server.join()` never returns. Programs that run on every task call it last in workers
and ps, and would have to be stopped after their grace. Patched, it ends its program with the job.

`MonitoredTrainingSession` and `Supervisor` look every 30 seconds whether the chief has initialised
the model. A worker that looks a moment too early sleeps while the others train, and may miss all
steps of a short job. Patched, they look as soon as the chief has initialised it. At their end they
wait 120 seconds for threads. The chief's thread of `SyncReplicasOptimizer` then waits for gradients
that no task sends any more, so it always takes the full time. Patched, they wait 5 seconds.

A replica that shares variables on a ps trains as soon as it is ready: the first one trains alone,
and a short job could end before a late one starts. Patched, the leader's program begins when those
of the other tasks have built their graphs, too.

A session without device filters needs every task of the cluster, also after a restart. With filters
it needs the ps and its own task.

When Python deletes a `tf.function`, TensorFlow removes it from every server, one after the other,
and holds the interpreter's lock while it waits (`Context.remove_function`). At the end of `fit`
there are hundreds of functions: this took 4 to 40 seconds, or hung. The servers end with the job,
so the functions need not be removed.

An Estimator's evaluator sleeps before its first evaluation and after each one, the last one as
well: 120 and 600 seconds, if its EvalSpec does not say otherwise. Patched, it sleeps until the job
has ended, and then scores the last checkpoint. Another one that takes its checkpoints from
`checkpoints_iterator`, as Keras's SidecarEvaluator does, waits for the next one forever. Patched,
the iterator ends after the last checkpoint.

Also loaded by its path (on_path/): imports nothing of this package.
"""

from __future__ import annotations

import functools
import json
import math
import signal
import time
from collections.abc import Callable, Iterator
from types import ModuleType


def keep_remote_functions() -> bool:
    """Make removals do nothing; returns False if this TensorFlow does not have the method any
    more."""
    try:
        from tensorflow.python.eager import context
    except ModuleNotFoundError:
        return False
    if not hasattr(context.Context, "remove_function"):
        return False
    context.Context.remove_function = lambda self, name: None
    return True


JOIN_LOOK_S = 0.05


def end_join_with_job(mailbox: ModuleType) -> bool:
    """Make `join` watch the mailbox; returns False if this TensorFlow does not have the class any
    more."""
    try:
        from tensorflow.python.training import server_lib
    except ModuleNotFoundError:
        return False

    def join(self: object) -> None:
        """Block until the job has ended; then end the program, whose next lines expect never to be
        run, as the training that follows `if job == "ps": server.join()`."""
        mailbox.has_built()
        while not mailbox.job_has_ended():
            time.sleep(JOIN_LOOK_S)
        raise SystemExit(0)

    server_lib.Server.join = join
    return True


SESSION_LOOK_S, SESSION_LONGEST_S = 1.0, 30.0
"""The least and the most seconds between two looks whether the chief has initialised the model, if
it does not say so."""
LOOK_SHARE = 5
"""A worker waits at least this many times as long as it has looked: each look makes a session and
asks every ps, and dozens of workers that look all the time keep a small machine from starting."""
USUAL_GRACE_S = 120
GRACE_S = 5


class Time:
    """Replaces the module `time` in one of TensorFlow's modules; a subclass changes `sleep`."""

    def __init__(self, mailbox: ModuleType) -> None:
        self._mailbox = mailbox

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


class UntilInitialized(Time):
    """`sleep` ends when a chief has initialised the model."""

    def __init__(self, mailbox: ModuleType) -> None:
        super().__init__(mailbox)
        self._known = mailbox.initialized_at()
        self._woke_at = math.inf

    def sleep(self, seconds: float) -> None:
        """Sleep until a chief has initialised the model since the last call, at most `seconds`, or
        longer if it has taken long to look."""
        looked_s = max(0.0, time.monotonic() - self._woke_at)
        until = time.monotonic() + max(seconds, min(LOOK_SHARE * looked_s, SESSION_LONGEST_S))
        while (left := until - time.monotonic()) > 0:
            if self._mailbox.initialized_at() != self._known:
                break
            time.sleep(min(left, JOIN_LOOK_S))
        self._known, self._woke_at = self._mailbox.initialized_at(), time.monotonic()


def shorten_session_waits(mailbox: ModuleType) -> bool:
    """Make sessions look as soon as the model is initialised, and wait GRACE_S at their end unless
    the program sets a time; returns False if this TensorFlow does not have the classes any more."""
    try:
        from tensorflow.python.training import coordinator, session_manager
    except ImportError:
        return False
    plain = session_manager.SessionManager.__init__
    prepare = session_manager.SessionManager.prepare_session

    @functools.wraps(plain)
    def looking_often(self: object, *arguments: object, **keys: object) -> None:
        plain(self, *arguments, **keys)
        self._recovery_wait_secs = min(self._recovery_wait_secs, SESSION_LOOK_S)

    @functools.wraps(prepare)
    def telling(*arguments: object, **keys: object) -> object:
        session = prepare(*arguments, **keys)
        mailbox.has_initialized()
        return session

    session_manager.SessionManager.__init__ = looking_often
    session_manager.SessionManager.prepare_session = telling
    session_manager.time = UntilInitialized(mailbox)
    coordinator.Coordinator.join = less_patient(coordinator.Coordinator.join)
    return True


def begin_together(meet: Callable[[], None]) -> bool:
    """Call `meet` before the program's first step: when it has built its graph and is about to use
    other tasks. A chief has then initialised the model.

    Returns False if this TensorFlow does not have the classes any more.
    """
    try:
        from tensorflow.python.client import session
        from tensorflow.python.eager import context
        from tensorflow.python.training import session_manager
    except ImportError:
        return False
    create = session.BaseSession.__init__
    prepare = session_manager.SessionManager.prepare_session
    connect = context.Context.set_server_def
    initialises = []

    @functools.wraps(create)
    def created(self: object, target: str, *arguments: object, **keys: object) -> None:
        if str(target).startswith("grpc") and not initialises:
            meet()
        create(self, target, *arguments, **keys)

    @functools.wraps(prepare)
    def prepared(*arguments: object, **keys: object) -> object:
        initialises.append(True)
        try:
            ready = prepare(*arguments, **keys)
        finally:
            initialises.pop()
        meet()
        return ready

    @functools.wraps(connect)
    def connected(*arguments: object, **keys: object) -> None:
        meet()
        connect(*arguments, **keys)

    session.BaseSession.__init__ = created
    session_manager.SessionManager.prepare_session = prepared
    context.Context.set_server_def = connected
    return True


def less_patient(plain: Callable) -> Callable:
    """`Coordinator.join`, which waits GRACE_S for threads that it may leave running."""

    @functools.wraps(plain)
    def join(
        self: object,
        threads: object = None,
        stop_grace_period_secs: float = USUAL_GRACE_S,
        ignore_live_threads: bool = False,
    ) -> None:
        usual = ignore_live_threads and stop_grace_period_secs == USUAL_GRACE_S
        plain(self, threads, GRACE_S if usual else stop_grace_period_secs, ignore_live_threads)

    return join


def filter_sessions(tf_config: str) -> bool:
    """Give sessions of this task's servers the device filters of `own_filters`, unless the program
    sets some; returns False if this TensorFlow does not have the class any more."""
    try:
        from tensorflow.python.client import session
    except ImportError:
        return False
    filters = own_filters(tf_config)
    plain = session.BaseSession.__init__

    @functools.wraps(plain)
    def filtered(self: object, target: str, graph: object = None, config: object = None) -> None:
        if filters and str(target).startswith("grpc"):
            full = session.config_pb2.ConfigProto()
            if config is not None:
                full.CopyFrom(config)
            if not full.device_filters:
                full.device_filters.extend(filters)
            config = full
        plain(self, target, graph, config=config)

    session.BaseSession.__init__ = filtered
    return True


def own_filters(tf_config: str) -> list[str]:
    """The devices that a task of this TF_CONFIG needs, as Estimators choose them: those of the ps
    and its own; [] if it names no task."""
    task = json.loads(tf_config or "{}").get("task")
    return ["/job:ps", f"/job:{task['type']}/task:{task['index']}"] if task else []


AFTER_JOB_S = 1
"""The maximum seconds for which a sleep of an evaluator continues after the end of the job; it then
looks for a checkpoint again."""


CHECKPOINT_LOOK_S = 1.0


class UntilJobsEnd(Time):
    """`sleep` ends at most AFTER_JOB_S after the end of the job."""

    def sleep(self, seconds: float) -> None:
        """Sleep for these seconds, or until the job has ended."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._mailbox.job_has_ended():
                time.sleep(min(left, AFTER_JOB_S))
                return
            time.sleep(min(left, JOIN_LOOK_S))


def end_sleeps_with_job(training: ModuleType, mailbox: ModuleType) -> None:
    """Make an Estimator's `training` module sleep no longer than the job lasts."""
    training.time = UntilJobsEnd(mailbox)


def end_checkpoints_with_job(tensorflow: ModuleType, mailbox: ModuleType) -> bool:
    """Make `checkpoints_iterator` end when the job has ended, if it has found a checkpoint; returns
    False if this TensorFlow does not have the function any more.

    Without any checkpoint, an evaluator may look in the wrong directory: it must not end well.
    """
    plain = getattr(getattr(tensorflow, "train", None), "checkpoints_iterator", None)
    if plain is None:
        return False

    @functools.wraps(plain)
    def until_jobs_end(
        checkpoint_dir: str,
        min_interval_secs: float = 0,
        timeout: float | None = None,
        timeout_fn: Callable[[], bool] | None = None,
    ) -> Iterator[str]:
        last, wait_s = None, math.inf if timeout is None else timeout
        until = time.monotonic() + wait_s
        while True:
            last_look = last is not None and mailbox.job_has_ended()
            found = tensorflow.train.latest_checkpoint(checkpoint_dir)
            now = time.monotonic()
            if found not in (None, last):
                last = found
                yield found
                while time.monotonic() < now + min_interval_secs and not mailbox.job_has_ended():
                    time.sleep(JOIN_LOOK_S)
                if timeout_fn is not None and timeout_fn():
                    return
                until = time.monotonic() + wait_s
            elif last_look:
                return
            elif now + CHECKPOINT_LOOK_S <= until:
                time.sleep(CHECKPOINT_LOOK_S)
            elif timeout_fn is None or timeout_fn():
                return
            else:
                until = now + wait_s

    old = getattr(getattr(tensorflow, "compat", None), "v1", None)
    for api in filter(None, (tensorflow, old)):
        api.train.checkpoints_iterator = until_jobs_end
    return True


def keep_sigterm_handler() -> bool:
    """Let the program's handler for SIGTERM run, too, after TensorFlow has set its own; returns
    False if this TensorFlow does not have the functions any more."""
    try:
        from tensorflow.python.eager import context
    except ModuleNotFoundError:
        return False
    functions = context.pywrap_tfe
    if not hasattr(functions, "TFE_EnableCollectiveOps"):
        return False
    functions.TFE_EnableCollectiveOps = keeping_sigterm(functions.TFE_EnableCollectiveOps)
    return True


def keeping_sigterm(plain: Callable) -> Callable:
    """A function that may replace the handler of SIGTERM outside Python; the program's own handler,
    if it has one, then calls the new one first."""

    @functools.wraps(plain)
    def keeping(*arguments: object, **keys: object) -> object:
        program = signal.getsignal(signal.SIGTERM)
        if not callable(program):
            return plain(*arguments, **keys)
        import ctypes

        sigaction = ctypes.CDLL(None).sigaction
        # Larger than C's `struct sigaction`, whose first member is the handler.
        before, after = (ctypes.c_void_p * 64)(), (ctypes.c_void_p * 64)()
        sigaction(signal.SIGTERM, None, before)
        try:
            return plain(*arguments, **keys)
        finally:
            sigaction(signal.SIGTERM, None, after)
            if after[0] and after[0] != before[0]:
                replacement = ctypes.CFUNCTYPE(None, ctypes.c_int)(after[0])

                def both(number: int, frame: object) -> None:
                    replacement(number)
                    program(number, frame)

                try:
                    signal.signal(signal.SIGTERM, both)
                except ValueError:  # not in the main thread: only the program's handler runs
                    sigaction(signal.SIGTERM, before, None)

    return keeping
