"""The port of this task: free, and on an address of this machine."""

from __future__ import annotations

import socket

from trainer.agent.errors import ServerError
from trainer.agent.task import Address


def check_port(address: Address) -> None:
    """Raise ServerError if TensorFlow could not listen on `address`; it would only log that.

    TensorFlow listens on all addresses, so an IP that is not this machine's would go unnoticed.
    A name may stand for a virtual address (swarm, Kubernetes), so only its port is tried.
    """
    is_name = any(letter.isalpha() for letter in address.host) and ":" not in address.host
    host = "0.0.0.0" if is_name else address.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, address.port), family=family).close()
    except OSError as problem:
        raise ServerError(
            f"cannot listen on {address}: {problem.strerror}; the address must be this container's"
            " own (TF_CONFIG) and its port free"
        ) from problem
