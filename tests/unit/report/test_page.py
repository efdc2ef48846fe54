"""The page is one file, and text of a program cannot become HTML in it."""

from __future__ import annotations

import json
import re

from cluster_kit.report.facts import facts_of
from cluster_kit.report.page import page
from tests.unit.report.runs import changed, told, trained

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def facts_in(text: str) -> dict:
    (found,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', text, re.S)
    return json.loads(found)


def test_the_page_has_the_facts_of_each_run() -> None:
    one, two = facts_of(trained()), facts_of(changed(name="20261122-101600"))
    text = page([one, two])
    assert facts_in(text) == {"runs": [one, two]}
    assert "<title>demo 20261122-101500, demo 20261122-101600</title>" in text


def test_the_page_makes_no_requests() -> None:
    text = page([facts_of(trained())])
    assert "default-src 'none'" in text
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", text)
    assert "@import" not in text and "fetch(" not in text
    assert "uPlot" in text and "MIT" in text, "the licence stays with the library"


def test_text_of_a_program_stays_text() -> None:
    entries = [
        told(1, "chief-0", "phase", name=f"{EVIL}\u2028"),
        told(2, "chief-0", "step", loss=1.0),
    ]
    outcome = {"success": False, "message": EVIL, "last_words": EVIL}
    text = page([facts_of(changed(entries=entries, outcome=outcome, manifest=EVIL, name=EVIL))])
    assert "alert" in text
    assert "<script>alert" not in text and "<img" not in text and "\u2028" not in text
    assert facts_in(text)["runs"][0]["verdict"]["message"] == EVIL
