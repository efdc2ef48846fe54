"""Tests side by side: who has a subnet that two clusters want; and a signal that ends a test."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from cluster_kit.api import HostError, Job
from cluster_kit.util import locks

WAIT_S = 3600.0


class Turns:
    """Whose turn it is with a subnet that a manifest states. Other subnets are chosen freely."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    @contextlib.contextmanager
    def of(self, job: Job) -> Iterator[None]:
        """A block in which no other test has a cluster in the job's subnet.

        A second cluster of the same test is not kept waiting: the kit refuses it.

        Raises:
            HostError: another test keeps it for WAIT_S.
        """
        subnet = job.fixed_subnet
        name = f"cluster-kit-subnet-{re.sub('[^0-9]', '-', subnet)}.lock"
        if not subnet or name in self._held:
            yield
            return
        with contextlib.ExitStack() as held:
            try:
                file = locks.own_directory() / name
                held.enter_context(locks.lock(file, f"the cluster {job.name}", WAIT_S))
            except (locks.Locked, OSError) as error:
                raise HostError(
                    f'subnet = "{subnet}" is taken by another test: {error}',
                    'write subnet = "auto" in the manifest',
                ) from None
            self._held.add(name)
            held.callback(self._held.discard, name)
            yield


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """A block that SIGTERM interrupts like Ctrl-C, so that clusters are removed.

    A handler of somebody else's stays.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
