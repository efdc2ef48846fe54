"""The page: one file that holds all it needs, and asks no other for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from cluster_kit.util.paths import TEMPLATES
from cluster_kit.util.templating import kit_template

FOLDER = TEMPLATES / "report"
DRAWS = ("dom.js", "zoom.js", "lanes.js", "charts.js", "network.js", "profiles.js", "main.js")
SCRIPTS = (*DRAWS, "report.js")
STYLES = ("uPlot.min.css", "report.css")


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The HTML of these runs' facts (see `facts_of`), side by side."""
    names = sorted({f"{run['cluster']} {run['run']}" for run in runs})
    return document(", ".join(names), {"runs": list(runs)}, SCRIPTS)


def document(
    title: str, facts: Mapping[str, Any], scripts: Sequence[str], *, live: bool = False
) -> str:
    """The HTML of a page that these scripts of templates/report/ draw from its facts.

    Args:
        live: it may ask the server that it comes from for more, and nobody else.
    """
    return kit_template("report/page.html.j2").render(
        title=_text(title),
        facts=embedded(facts),
        connect="connect-src 'self'; " if live else "",
        style="\n".join(_file(name) for name in STYLES),
        script="\n".join(_file(name) for name in scripts),
        library=_file("uPlot.iife.min.js"),
        licence=_file("uPlot.LICENSE"),
    )


def embedded(facts: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it can end that."""
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _text(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;")
