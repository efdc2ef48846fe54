"""Limits the bandwidth of a network for a while, and then restores the previous limit.

`python3 -m trainer.agent.network.reshape ADDRESS BITS_PER_SECOND USUAL SECONDS`, as root with
NET_ADMIN in the task's network namespace. USUAL is the present limit (`-`: none), SECONDS the
duration (`-`: for good). Prints `ready` as soon as the limit is in force, or the reason why it
cannot be. Ends after its time, at SIGTERM, or when the interface is gone.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence

from trainer.agent.network.bandwidth import (
    MIRROR,
    Bucket,
    CannotShape,
    attempt,
    interface_of,
    shape,
)

AT_ROOT, AT_INGRESS = 0xFFFFFFFF, 0xFFFFFFF1
LOOK_S = 0.2
NONE = "-"


def limit(address: str, speed: int, usual: int | None) -> None:
    """Limit the network to this many bits per second in both directions; raises CannotShape."""
    if usual is None:
        shape(address, Bucket.of(speed))
    else:
        change(address, Bucket.of(speed))


def undo(address: str, usual: int | None) -> None:
    """Restore the state before `limit`; raises CannotShape."""
    if usual is not None:
        change(address, Bucket.of(usual))
        return
    from pyroute2 import IPRoute

    with IPRoute() as ip:
        index = interface_of(ip, address)
        for parent in (AT_ROOT, AT_INGRESS):
            ip.tc("del", index=index, parent=parent)
        for mirror in ip.link_lookup(ifname=MIRROR):
            ip.link("del", index=mirror)


def change(address: str, bucket: Bucket) -> None:
    """Set another rate for both existing token buckets."""
    from pyroute2 import IPRoute

    limits = {"rate": bucket.rate, "burst": bucket.burst, "limit": bucket.limit, "mtu": 0}
    with IPRoute() as ip:
        for index in (interface_of(ip, address), *ip.link_lookup(ifname=MIRROR)):
            _change(lambda at=index: ip.tc("change", "tbf", at, handle=0x10000, **limits))


def _change(step: Callable[[], None]) -> None:
    attempt("changing the queueing discipline tbf", step)


def is_there(address: str) -> bool:
    from pyroute2 import IPRoute

    try:
        with IPRoute() as ip:
            return bool(interface_of(ip, address))
    except CannotShape:
        return False


def main(arguments: Sequence[str]) -> None:
    address, speed, usual_text, seconds = arguments
    usual = None if usual_text == NONE else int(usual_text)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    limit(address, int(speed), usual)
    print("ready", flush=True)
    if seconds == NONE:
        return
    end = time.monotonic() + float(seconds)
    while not stopped and time.monotonic() < end and is_there(address):
        time.sleep(LOOK_S)
    if is_there(address):
        undo(address, usual)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except CannotShape as problem:
        print(problem, flush=True)
