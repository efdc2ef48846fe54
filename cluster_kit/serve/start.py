"""Starts the server of the live page, and ends it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from cluster_kit.errors import HostError, UsageError
from cluster_kit.resolved import LOOPBACK
from cluster_kit.serve import control, pages
from cluster_kit.serve.logs import Logs
from cluster_kit.serve.metrics import Scraped
from cluster_kit.serve.pages import Feed, Overview, overview
from cluster_kit.serve.server import (
    TEXT,
    Request,
    Response,
    Route,
    as_json,
    bound,
    event,
    listening,
    stream,
)
from cluster_kit.serve.site import Site
from cluster_kit.workspace import write_atomically


def routes_of(site: Site) -> Sequence[Route]:
    """The routes of a server; every one takes the token (see `door`)."""
    logs, scraped = Logs(site), Scraped(site)
    return (
        _get("/", lambda: pages.overview_page(overview(site))),
        _get("/overview.json", lambda: as_json(overview(site))),
        _get("/overview.events", lambda: stream(site.channel("", lambda: Overview(site)).listen())),
        _get("/cluster/{name}", lambda name: pages.cluster_page(site, name)),
        _get(
            "/cluster/{name}/events",
            lambda name: stream(site.channel(name, lambda: Feed(site, name)).listen()),
        ),
        _get("/run/{cluster}/{run}", lambda cluster, run: pages.run_page(site, cluster, run)),
        Route("GET", "/log/{cluster}", lambda request, parts: _log(logs, request, **parts)),
        _get("/metrics", scraped.response),
        *(_control(site) if site.control else ()),
    )


def _get(path: str, answer: Callable[..., Response]) -> Route:
    return Route("GET", path, lambda _request, parts: answer(**parts))


def _log(logs: Logs, request: Request, cluster: str) -> Response:
    run, task, after, words = (request.query.get(key, "") for key in ("run", "task", "after", "q"))
    return as_json(logs.read(cluster, run, task, after, words))


def _control(site: Site) -> Sequence[Route]:
    """Without `--allow-control` these are not there."""
    return (
        _post(
            "/control/{cluster}/{task}/{verb}",
            lambda cluster, task, verb: control.to_task(
                site.host, site.engine(), cluster, task, verb
            ),
        ),
        _post(
            "/control/{cluster}/{verb}",
            lambda cluster, verb: control.to_cluster(site.host, site.engine(), cluster, verb),
        ),
    )


def _post(path: str, do: Callable[..., str]) -> Route:
    return Route("POST", path, lambda _request, parts: Response(do(**parts).encode(), TEXT))


LONGEST = 4096
ANOTHER = "name a file of your own: --token-file token"
VALID = re.compile(r"[A-Za-z0-9_-]{16,200}")


def new_token() -> str:
    """One that nobody can guess, and that a URL takes as it is."""
    return secrets.token_urlsafe(24)


def token_in(file: Path) -> str:
    """The token in a file. A file that is missing is written with a new token, mode 0600.

    Raises:
        UsageError: the file holds no token.
        HostError: it cannot be read or written, or others can use it.
    """
    try:
        try:
            token = _read(file)
        except FileNotFoundError:
            token = new_token()
            write_atomically(file, f"{token}\n", mode=0o600)
    except OSError as error:
        hint = "name a file that you may read, or one that can be written: --token-file token"
        raise _unusable(file, str(error.strerror), hint) from error
    if not VALID.fullmatch(token):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 characters of A-Z, a-z, 0-9, - and _",
            "remove it, and a new one is written",
        )
    return token


def _read(file: Path) -> str:
    """The text of a regular file that only this user can use; a FIFO or device never blocks.

    Raises:
        HostError: it is something else, or another user owns it or can use it.
        OSError: it cannot be opened.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        mode = stat.S_IMODE(about.st_mode)
        if not stat.S_ISREG(about.st_mode):
            raise _unusable(file, "it is not a regular file", ANOTHER)
        if about.st_uid != os.geteuid():
            raise _unusable(file, f"it belongs to another user (uid {about.st_uid})", ANOTHER)
        if mode & 0o077:
            raise _unusable(
                file,
                f"other users can use it: its mode is {mode:04o}, and must be 0600",
                f"`chmod 600 {file}`; remove it if somebody may have read it, and a new one is "
                "written",
            )
        return os.read(descriptor, LONGEST).decode(errors="replace").strip()
    finally:
        os.close(descriptor)


def _unusable(file: Path, why: str, hint: str) -> HostError:
    return HostError(f"the token file {file} cannot be used: {why}", hint)


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
