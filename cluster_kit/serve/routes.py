"""All that can be asked: one line for each; a room of the kit adds its own here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cluster_kit.serve import pages
from cluster_kit.serve.metrics import Scraped
from cluster_kit.serve.overview import Overview, overview
from cluster_kit.serve.server import stream
from cluster_kit.serve.site import Site
from cluster_kit.serve.web import Request, Response, Route, as_json


def routes_of(site: Site) -> Sequence[Route]:
    """The routes of a server; every one takes the token (see `door`)."""
    scraped = Scraped(site)
    return (
        Route("GET", "/", lambda _request, _parts: pages.overview_page(overview(site))),
        Route("GET", "/overview.json", lambda _request, _parts: as_json(overview(site))),
        Route("GET", "/overview.events", partial(_listen_to_overview, site)),
        Route("GET", "/metrics", lambda _request, _parts: scraped.response()),
    )


def _listen_to_overview(site: Site, _request: Request, _parts: object) -> Response:
    return stream(site.channel("", lambda: Overview(site)).listen())
