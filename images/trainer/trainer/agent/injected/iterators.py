"""Ends iterators of data sets in threads, so that a program does not wait a minute for one.

The thread `tf_data_model` of an iterator tunes its input pipeline, at first every 10 ms, later once
a minute. When the iterator is deleted, TensorFlow wakes this thread, and only then marks the
iterator as cancelled (`CancellationManager::StartCancel`). If the thread looks before that, it
sleeps until its period is over. The program that deletes the iterator, usually at the end of `fit`,
waits for it: up to 60 seconds, and as long again for the second iterator of a strategy. On a busy
machine this happened to one iterator in five (measured with TensorFlow 2.21).

Patched, an iterator is deleted in a thread, for which the program waits at most PATIENCE_S. What a
program can notice of the end, such as closed files and freed buffers, comes before TensorFlow's
wait.

A coordinator deletes an iterator of each server, and all that it asks that server for after that
waits in the same way, where no thread of this process can help: up to a minute, 9 of 15 times after
a `fit`. So the data set of an iterator on a server is not tuned: `num_parallel_calls=AUTOTUNE` then
means one call for each thread, and a prefetch buffer still grows when it runs empty.

This file is loaded by its path (on_path/), so it imports nothing of this package.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 1.0
"""The maximum seconds that a program waits for the end of an iterator."""
LOOK_S = 1.0
"""The seconds between two looks at the resources that are still used."""


def end_in_threads() -> bool:
    """Delete iterators in threads; returns False if this TensorFlow does not have the classes."""
    try:
        from tensorflow.python.data.ops.iterator_ops import OwnedIterator
        from tensorflow.python.data.ops.multi_device_iterator_ops import OwnedMultiDeviceIterator
        from tensorflow.python.eager import context
        from tensorflow.python.framework.ops import EagerTensor
    except ImportError:
        return False

    def is_here(resource: object) -> bool | None:
        """Whether a resource is in this process, not on a server; None if it is no eager tensor."""
        if not isinstance(resource, EagerTensor):
            return None
        return resource.device.startswith(context.context().host_address_space())

    used = StillUsed()
    for kind, name in (
        (OwnedIterator, "_iterator_resource"),
        (OwnedMultiDeviceIterator, "_multi_device_iterator_resource"),
    ):
        kind.__init__ = beginning(kind.__init__, is_here)
        kind.__del__ = ending(name, is_here, used)
    return True


def beginning(
    original: Callable[..., None], is_here: Callable[[object], bool | None]
) -> Callable[..., None]:
    """Return an `__init__` that does not tune a data set on a server."""

    @functools.wraps(original)
    def __init__(self: object, dataset: object = None, *args: object, **options: object) -> None:
        with contextlib.suppress(Exception):
            if dataset is not None and is_here(dataset._variant_tensor) is False:
                dataset = untuned(dataset)
        original(self, dataset, *args, **options)

    return __init__


def untuned(dataset: Any) -> Any:
    """Return the data set without autotuning.

    Autotuning would have added a prefetch to a pipeline that ends without one; so does this.
    """
    from tensorflow.python.data.ops.options import Options
    from tensorflow.python.framework.ops import colocate_with

    options = Options()
    options.autotune.enabled = False
    with colocate_with(dataset._variant_tensor):
        fetched = dataset if "Prefetch" in type(dataset).__name__ else dataset.prefetch(1)
        return fetched.with_options(options)


def ending(
    name: str, is_here: Callable[[object], bool | None], used: StillUsed
) -> Callable[[object], None]:
    """Return a `__del__` that deletes the attribute `name` in a thread, if it is in this process.

    It can run at any moment, also while this thread holds locks of `threading`: it takes none.
    """

    def __del__(self: object) -> None:
        with contextlib.suppress(Exception):
            if sys.is_finalizing() or not is_here(vars(self).get(name)):
                return
            resources = [vars(self).pop(name)]
            if is_only_owner(resources):
                end(resources)
            else:
                used.keep(resources.pop())

    return __del__


def is_only_owner(resources: list[object]) -> bool:
    """Whether nothing but this list refers to its only element."""
    return sys.getrefcount(resources[0]) <= _ALONE


_one = [object()]
_ALONE = sys.getrefcount(_one[0])


def end(resources: list[object]) -> None:
    """Delete the elements in a thread; return when that is done, or after PATIENCE_S."""
    over = _thread.allocate_lock()
    over.acquire()

    def clear() -> None:
        try:
            resources.clear()
        finally:
            over.release()

    _thread.start_new_thread(clear, ())
    over.acquire(timeout=PATIENCE_S)


class StillUsed:
    """Keeps resources to which something else refers, such as a function that Python's garbage
    collector has not found yet; each is ended when nothing else refers to it any more."""

    def __init__(self) -> None:
        self._kept: dict[int, object] = {}
        self._process = 0
        self._has_some = _thread.allocate_lock()

    def keep(self, resource: object) -> None:
        """Keep a resource; from then on a thread looks at it once in LOOK_S.

        The garbage collector can call this at any moment, also while this runs, so it waits for
        no lock.
        """
        self._kept[id(resource)] = resource
        if self._process != os.getpid():
            self._has_some = _thread.allocate_lock()
            _thread.start_new_thread(self._follow, (self._has_some,))
            self._process = os.getpid()  # a start that fails is tried again
        else:
            with contextlib.suppress(RuntimeError):  # it is released already
                self._has_some.release()

    def _follow(self, has_some: _thread.LockType) -> None:
        """Look at what is kept; while nothing is, wait until `has_some` is released."""
        while has_some.acquire():
            while self._kept and not sys.is_finalizing():
                time.sleep(LOOK_S)
                with contextlib.suppress(Exception):
                    self.look()

    def look(self) -> None:
        """End the resources that nothing else refers to."""
        for key in list(self._kept):
            resources = [self._kept.pop(key)]
            if is_only_owner(resources):
                end(resources)
            else:
                self._kept[key] = resources.pop()
