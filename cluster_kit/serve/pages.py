"""The HTML of pages: the report's own, with scripts that keep it up to date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_kit.report.page import DRAWS, document
from cluster_kit.run.keeping.report import saved_report
from cluster_kit.serve.site import Site
from cluster_kit.serve.web import Response

LIVE = "live/stream.js"
OF_RUN = (*DRAWS, LIVE, "live/logs.js")


def overview_page(facts: Mapping[str, Any]) -> Response:
    """The page of all clusters, and of past runs."""
    return _page("cluster-kit", facts, (*DRAWS, LIVE, "live/overview.js"))


def cluster_page(site: Site, name: str) -> Response:
    """The page of a cluster: of its newest run, whichever that is while the page is open."""
    scripts = (*OF_RUN, "live/now.js", "live/grow.js", "live/cluster.js")
    return _page(name, {"cluster": name, "control": site.control}, scripts)


def run_page(site: Site, cluster: str, run: str) -> Response:
    """The page of a run that has ended; raises UsageError."""
    facts = saved_report(site.run(cluster, run))
    return _page(f"{cluster} {run}", {"run": facts}, (*OF_RUN, "live/run.js"))


def _page(title: str, facts: Mapping[str, Any], scripts: tuple[str, ...]) -> Response:
    return Response(document(title, facts, scripts, live=True).encode())
