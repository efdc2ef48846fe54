"""Limits this container's bandwidth in both directions by the kernel, then drops the privileges.

    eth0 ──egress──►  tbf                        what this task sends
    eth0 ──ingress──► mirred ──► ifb ──► tbf     what it receives

The container starts as root with the few necessary capabilities. Then the process is restarted as
its normal user, without capabilities.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from trainer.agent.beacon import client, handshake
from trainer.agent.beacon.messages import Report
from trainer.agent.errors import ContractError, TrainerError
from trainer.agent.network import privileges
from trainer.agent.outcome import because
from trainer.agent.progress_file import Progress
from trainer.agent.start_anew import start_anew
from trainer.agent.task import read_task
from trainer.agent.usage import SHAPED
from trainer.contract.endings import CANNOT_SHAPE, EXIT_CANNOT_SHAPE

if TYPE_CHECKING:
    from pyroute2 import IPRoute

REFUSED = "cannot shape its bandwidth: "
BANDWIDTH = "CLUSTER_KIT_BANDWIDTH_BPS"
USER = "CLUSTER_KIT_USER"

MIRROR = "shaped0"
ALL_PROTOCOLS = 0x0003
INGRESS = 0xFFFF0000
BURST_S = 0.005
LEAST_BURST = 10 << 10
QUEUE_S = 0.05
LEAST_QUEUE = 64 << 10
"""Bytes: the network stack may pass on a packet of this size."""


class CannotShape(TrainerError):
    """The kernel or this container's capabilities do not suffice."""

    exit_code = EXIT_CANNOT_SHAPE


@dataclass(frozen=True)
class Bucket:
    """A token bucket: bytes per second, bytes at once, bytes that may wait."""

    rate: int
    burst: int
    limit: int

    @classmethod
    def of(cls, bits_per_second: int) -> Bucket:
        rate = bits_per_second // 8
        burst = max(LEAST_BURST, int(rate * BURST_S))
        return cls(rate, burst, burst + max(LEAST_QUEUE, int(rate * QUEUE_S)))


def bits_per_second(text: str) -> int:
    """The number in BANDWIDTH; ContractError if it is not a number of 8 or more."""
    if not (text.isascii() and text.isdigit() and int(text) >= 8):
        raise ContractError(f"{BANDWIDTH} = {text!r}: must be bits per second, 8 or more")
    return int(text)


def start_anew_shaped(speed: str, arguments: Sequence[str]) -> NoReturn:
    """Set the limit, drop all privileges, and execute `python3 -m trainer ARGUMENTS…` again.

    Raises:
        CannotShape: the limit cannot be set. This is also recorded as the task's end, and the
            privileges are dropped.
    """
    bucket = Bucket.of(bits_per_second(speed))
    task = read_task()
    user = privileges.parse_user(os.environ.get(USER, ""), USER, task.output)
    try:
        shape(address_of(task.address.host), bucket)
    except CannotShape as problem:
        become(user)
        message = f"{task.name} {REFUSED}{problem}"
        because(CANNOT_SHAPE, message, (task.name,)).record(Progress(task.progress_file))
        if task.beacon and not task.is_leader:
            secret = partial(handshake.read_secret, task)
            client.send_report(task.beacon, secret, Report(CANNOT_SHAPE, task.name, message))
        raise CannotShape(message) from problem
    become(user)
    environment = {k: v for k, v in os.environ.items() if k not in (BANDWIDTH, USER)}
    environment[SHAPED] = speed
    # A new process, because the kernel hides /proc/self of a process that has changed its user.
    start_anew(arguments, environment)


def become(user: tuple[int, int]) -> None:
    """Drop root; raises CannotShape if that is not allowed."""
    try:
        privileges.drop(user)
    except PermissionError as problem:
        raise CannotShape(
            f"{REFUSED}this container cannot drop root ({problem.strerror}): it lacks SETUID,"
            " SETGID or SETPCAP; render its compose file anew"
        ) from problem


def address_of(host: str) -> str:
    """The IPv4 address of this task's name or address."""
    try:
        return socket.gethostbyname(host)
    except OSError as problem:
        raise CannotShape(f"no address for {host} ({problem})") from problem


def shape(address: str, bucket: Bucket) -> None:
    """Shape the interface that has `address`, both ways, in this network namespace."""
    from pyroute2 import IPRoute

    with IPRoute() as ip:
        index = interface_of(ip, address)
        mirror = made_mirror(ip)
        limits = {"rate": bucket.rate, "burst": bucket.burst, "limit": bucket.limit, "mtu": 0}
        into = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": mirror}

        def out() -> None:
            ip.tc("add", "tbf", index, handle=0x10000, **limits)

        def ingress() -> None:
            ip.tc("add", "ingress", index)

        def redirect() -> None:
            ip.tc("add-filter", "u32", index, parent=INGRESS, protocol=ALL_PROTOCOLS,
                  prio=1, target=0x10000, keys=["0x0/0x0+0"], action=into)  # fmt: skip

        def back() -> None:
            ip.tc("add", "tbf", mirror, handle=0x10000, **limits)

        attempt("the queueing discipline tbf (sch_tbf)", out)
        attempt("the queueing discipline ingress (sch_ingress)", ingress)
        attempt("the filter u32 with the action mirred (cls_u32, act_mirred)", redirect)
        attempt("the queueing discipline tbf (sch_tbf)", back)


def interface_of(ip: IPRoute, address: str) -> int:
    """The index of the interface with `address`, which is not eth0 after a reconnect."""
    for entry in ip.get_addr(family=socket.AF_INET):
        if entry.get_attr("IFA_LOCAL") == address:
            return int(entry["index"])
    raise CannotShape(f"no interface of this container has the address {address}")


def made_mirror(ip: IPRoute) -> int:
    """The index of an ifb device, created and up; incoming packets pass through it."""

    def make() -> None:
        ip.link("add", ifname=MIRROR, kind="ifb")

    indices = ip.link_lookup(ifname=MIRROR)
    if not indices:
        attempt("the device ifb (module ifb)", make)
        indices = ip.link_lookup(ifname=MIRROR)
    ip.link("set", index=indices[0], state="up")
    return int(indices[0])


def attempt(needs: str, step: Callable[[], None]) -> None:
    """Send a request to the kernel; if it is refused, raises CannotShape, which names what it
    `needs`.

    Objects that already exist are kept: a container that Docker restarts keeps its network.
    """
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        step()
    except NetlinkError as problem:
        if problem.code == errno.EEXIST:
            return
        if problem.code in (errno.EPERM, errno.EACCES):
            why = "this container lacks the capability NET_ADMIN; render its Compose file again"
        else:
            why = (
                f"this kernel lacks {needs}: {os.strerror(problem.code)}; load the module on the"
                " host, or take `bandwidth` out of the manifest"
            )
        raise CannotShape(why) from problem
