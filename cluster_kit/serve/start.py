"""Starts and ends the server of the live page; defines its `/metrics` and its actions on tasks."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.host import Host
from cluster_kit.metrics.prometheus import CONTENT_TYPE, PREFIX, Value, text
from cluster_kit.observe import user_requests
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import SIDECAR, Container, Engine, reaching
from cluster_kit.resolved import LOOPBACK
from cluster_kit.run import lifecycle
from cluster_kit.run.known_secrets import Known, known_of
from cluster_kit.run.run_report import RunMetrics, masked_labels
from cluster_kit.run.task_exec import CRASH, refuse_idle, task_of
from cluster_kit.serve import pages
from cluster_kit.serve.logs import Logs
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
from cluster_kit.util.nearest import proposal
from cluster_kit.util.untrusted import files
from cluster_kit.workspace import RunDirectory, write_atomically


def _stop(host: Host, engine: Engine, container: Container) -> str:
    _note(host, container, user_requests.END)
    engine.end(container.id)
    if container.leader:
        return "stopped, and with it the job: `up --resume` continues it"
    return "stopped: `restart` starts it again"


def _kill(host: Host, engine: Engine, container: Container) -> str:
    refuse_idle(container)
    _note(host, container, user_requests.KILL)
    reaching(engine).execute(container.id, CRASH)
    return "killed, as if it had crashed"


def _freeze(host: Host, engine: Engine, container: Container) -> str:
    if container.state != State.RUNNING:
        raise HostError(f"{container.name} is {container.state}: only a running task can be frozen")
    _note(host, container, user_requests.FREEZE)
    reaching(engine).freeze(container.id)
    return "frozen: `thaw` lets it continue"


def _thaw(host: Host, engine: Engine, container: Container) -> str:
    if container.state != State.PAUSED:
        raise HostError(f"{container.name} is not frozen")
    _note(host, container, user_requests.THAW)
    reaching(engine).thaw(container.id)
    return "continues"


def _note(host: Host, container: Container, what: str) -> None:
    """Record an action before it is done, so that the report shows that a user did it."""
    if container.output:  # a sidecar has no task name
        lifecycle.note(host, [container], what, [container.name], from_page=True)


def _restart(host: Host, engine: Engine, container: Container) -> str:
    tasks = lifecycle.restart(host, engine, container, from_page=True)
    others = [name for name in tasks if name != container.name]
    return f"restarted, and with it {', '.join(others)}" if others else "restarted"


OF_TASK: Mapping[str, Callable[[Host, Engine, Container], str]]
OF_TASK = {"stop": _stop, "kill": _kill, "freeze": _freeze, "thaw": _thaw, "restart": _restart}
OF_CLUSTER: Mapping[str, Callable[[Host, Engine, str], bool]]
OF_CLUSTER = {"stop": partial(lifecycle.stop, from_page=True), "start": lifecycle.start}
_DONE = {"stop": "stopped: `start` continues it", "start": "started again"}


def to_task(host: Host, engine: Engine, cluster: str, task: str, verb: str) -> str:
    """Run an action on a task; returns a sentence about what was done.

    Raises:
        UsageError: the action or the task does not exist.
        HostError: the task's state does not allow the action.
        EngineError: the engine refuses, or does not answer.
    """
    if verb not in OF_TASK:
        raise UsageError(f"{verb} was not found", proposal(verb, list(OF_TASK)))
    return f"{task}: {OF_TASK[verb](host, engine, task_of(engine, cluster, task))}"


def to_cluster(host: Host, engine: Engine, cluster: str, verb: str) -> str:
    """Run an action on all tasks of a cluster; see `to_task`."""
    if verb not in OF_CLUSTER:
        raise UsageError(f"{verb} was not found", proposal(verb, list(OF_CLUSTER)))
    done = OF_CLUSTER[verb](host, engine, cluster)
    return f"{cluster}: {_DONE[verb] if done else 'nothing to do'}"


LATELY_S = 600.0
"""Seconds that an ended run stays in `/metrics`, so that its verdict is scraped, too."""


class Scraped:
    """Answers scrapes; each reads only the new parts of the files."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._known: dict[Path, RunMetrics] = {}
        self._secrets: dict[Path, Known] = {}
        self._lock = threading.Lock()

    def response(self) -> Response:
        with self._lock:
            return Response(text(self._values()).encode(), CONTENT_TYPE)

    def _values(self) -> Iterator[Value]:
        runs = self._runs()
        yield Value(f"{PREFIX}engine_up", {}, not self._site.trouble)
        self._known = {
            path: self._known.get(path) or RunMetrics(RunDirectory(path)) for path in sorted(runs)
        }
        for path, metrics in self._known.items():
            try:
                yield from masked_labels(metrics.values(runs[path]), self._secrets_of(path))
            except UsageError:
                continue  # it is about to begin, or was just removed

    def _secrets_of(self, path: Path) -> Known:
        """The secrets of a run, read until all are known, while its containers still exist."""
        if not (path in self._secrets and self._secrets[path].are_all):
            self._secrets[path] = known_of(RunDirectory(path), self._engine)
        return self._secrets[path]

    def _engine(self) -> Engine | None:
        try:
            return self._site.engine()
        except (EngineError, HostError):
            return None

    def _runs(self) -> dict[Path, Mapping[str, State]]:
        """The containers' states by run directory and task."""
        runs: dict[Path, dict[str, State]] = {}
        for one in self._site.glance():
            if one.output and one.role != SIDECAR:
                path = Path(one.output).parent
                runs.setdefault(path, {})[one.name] = State.of_engine(one.state)
        ended: dict[Path, dict[str, State]] = {
            path.resolve(): {}
            for path in self._site.workspace.latest_runs().values()
            if time.time() - _last_word(path) < LATELY_S
        }
        return {**ended, **runs}


def _last_word(run: Path) -> float:
    """Unix seconds of the newest outcome, record or usage file of a run; 0 if it has none."""
    kit_files = files(run, matches=lambda name: name.endswith(".json"), deepest=0)
    task_files = files(
        run / "output",
        "progress",
        matches=lambda name: name.endswith((".usage", ".beat")),
        deepest=0,
    )
    return max((file.changed for file in chain(kit_files, task_files)), default=0.0)


def routes_of(site: Site) -> Sequence[Route]:
    """The routes of a server; every route requires the token."""
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
    """The routes of actions; without `--allow-control` they do not exist."""
    return (
        _post(
            "/control/{cluster}/{task}/{verb}",
            lambda cluster, task, verb: to_task(site.host, site.engine(), cluster, task, verb),
        ),
        _post(
            "/control/{cluster}/{verb}",
            lambda cluster, verb: to_cluster(site.host, site.engine(), cluster, verb),
        ),
    )


def _post(path: str, do: Callable[..., str]) -> Route:
    return Route("POST", path, lambda _request, parts: Response(do(**parts).encode(), TEXT))


LONGEST = 4096
ANOTHER = "name another file: --token-file token"
VALID = re.compile(r"[A-Za-z0-9_-]{16,200}")


def new_token() -> str:
    """A random token that needs no quoting in a URL."""
    return secrets.token_urlsafe(24)


def token_in(file: Path) -> str:
    """The token in a file. If the file does not exist, it is created with a new token, mode 0600.

    Raises:
        UsageError: the file holds no token.
        HostError: the file cannot be read or written, or other users can use it.
    """
    try:
        try:
            token = _read(file)
        except FileNotFoundError:
            token = new_token()
            write_atomically(file, f"{token}\n", mode=0o600)
    except OSError as error:
        hint = "name a file that you can read, or one that can be created: --token-file token"
        raise _unusable(file, str(error.strerror), hint) from error
    if not VALID.fullmatch(token):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 characters of A-Z, a-z, 0-9, - and _",
            "remove the file: the next start creates a new one",
        )
    return token


def _read(file: Path) -> str:
    """The text of a regular file that only this user can access; a FIFO or device does not block.

    Raises:
        HostError: it is not a regular file, or another user owns it or can access it.
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
                f"`chmod 600 {file}`; if somebody may have read it, remove it: the next start "
                "creates a new one",
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
    """Serve the pages during the `with` block, whose value is the URL to open, with the token.

    Args:
        name: the cluster that the URL shows; "" for the page of all clusters.
        port: 0 chooses a free one.
        token: "" makes a random one.
    Raises:
        HostError: the server cannot listen there.
    """
    token = token or new_token()
    server = bound(address, port, token, routes_of(site))
    with listening(server) as url:
        try:
            yield f"{url}/{f'cluster/{quote(name)}' if name else ''}?token={token}"
        finally:
            site.close(event("end", "{}"))
