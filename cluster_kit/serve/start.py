"""Starts the server of the live page, and ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import quote

from cluster_kit.cluster import LOOPBACK
from cluster_kit.serve.routes import routes_of
from cluster_kit.serve.server import bound, event, listening
from cluster_kit.serve.site import Site
from cluster_kit.serve.token import new_token


@contextlib.contextmanager
def serving(
    site: Site, name: str = "", *, address: str = LOOPBACK, port: int = 0, token: str = ""
) -> Iterator[str]:
    """The pages are there while the `with` block lasts; the URL to open, token included.

    Args:
        name: the cluster whose page it is; the page of all clusters without one.
        port: 0 for one that is free.
        token: a random one without it.
    Raises:
        HostError: it cannot listen there.
    """
    token = token or new_token()
    server = bound(address, port, token, routes_of(site))
    with listening(server) as url:
        try:
            yield f"{url}/{f'cluster/{quote(name)}' if name else ''}?token={token}"
        finally:
            site.close(event("end", "{}"))
