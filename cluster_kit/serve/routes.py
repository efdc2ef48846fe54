"""All that can be asked: one line for each; a room of the kit adds its own here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster_kit.serve import control, pages
from cluster_kit.serve.feed import Feed
from cluster_kit.serve.logs import Logs
from cluster_kit.serve.metrics import Scraped
from cluster_kit.serve.overview import Overview, overview
from cluster_kit.serve.server import stream
from cluster_kit.serve.site import Site
from cluster_kit.serve.web import TEXT, Request, Response, Route, as_json


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
            lambda cluster, task, verb: control.to_task(site.engine(), cluster, task, verb),
        ),
        _post(
            "/control/{cluster}/{verb}",
            lambda cluster, verb: control.to_cluster(site.engine(), cluster, verb),
        ),
    )


def _post(path: str, do: Callable[..., str]) -> Route:
    return Route("POST", path, lambda _request, parts: Response(do(**parts).encode(), TEXT))
