"""The HTML of pages: the report's own, with scripts that keep it up to date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_kit.report.page import document
from cluster_kit.serve.web import Response


def overview_page(facts: Mapping[str, Any]) -> Response:
    """The page of all clusters."""
    scripts = ("dom.js", "live/stream.js", "live/overview.js")
    return Response(document("cluster-kit", facts, scripts, live=True).encode())
