"""Who may come in: whoever has the token, by an address of this machine. Pure."""

from __future__ import annotations

import ipaddress
import secrets

from cluster_kit.serve.web import Refused, Request

LOOPBACK_NAMES = ("localhost",)


def refuse(request: Request, token: str, address: str, machine: str = "") -> None:
    """Raise Refused (403) for a request that is not let in.

    The token stands in the URL (`?token=…`) or in the header `Authorization: Bearer …`; what
    changes something takes it in the header only, which no other site can make a browser send.

    Args:
        address: what the server listens on, as it was named.
        machine: the name of this machine, by which others may come if `address` lets them.
    """
    host = request.headers.get("host", "")
    if not _is_own(host, address, machine):
        raise Refused(
            403,
            f"`Host: {host}` is no address of this server, as if another site had sent you here: "
            "open the URL that was printed on the terminal",
        )
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    bearer = given.strip() if scheme.lower() == "bearer" else ""
    if request.method not in ("GET", "HEAD"):
        if not _same(bearer, token):
            raise Refused(403, f"{request.method} takes the token: `Authorization: Bearer TOKEN`")
    elif not _same(bearer or request.query.get("token", ""), token):
        raise Refused(
            403,
            "this page takes a token, and that in the URL is "
            f"{'another one' if request.query.get('token') else 'missing'}: "
            "open the URL that was printed on the terminal",
        )


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _is_own(host: str, address: str, machine: str) -> bool:
    """Whether a Host header names this server by an IP address, as localhost, or by its own name.

    A site that lets its own name point at this machine (DNS rebinding) sends its name here.
    """
    name, only_here = _without_port(host).lower(), is_loopback(address)
    if name in (*LOOPBACK_NAMES, address.lower(), *([] if only_here else [machine.lower()])):
        return bool(name)
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return False
    return found.is_loopback or not only_here


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches a server that listens on an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() in LOOPBACK_NAMES
