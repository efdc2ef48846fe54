"""Parses the pages of the documentation: fenced blocks, code spans, links, headings."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from docs.generate import pages
from tests.make import ROOT

README = ROOT / "README.md"
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
HTML = re.compile(r"</?[a-z]\w*[ >]|<\w+>")


@dataclass(frozen=True)
class Block:
    """The text between two fences; `info` is the text after the first fence."""

    page: str
    info: str
    text: str


@dataclass(frozen=True)
class Link:
    """A link; `target` as it is written; the `text` of a picture is shown if it cannot be drawn."""

    is_picture: bool
    text: str
    target: str


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """Its path, relative to the root."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(self.name, info, text) for info, text in FENCE.findall(self.text)]

    @cached_property
    def prose(self) -> str:
        """All text outside of fenced blocks."""
        return FENCE.sub("", self.text)

    @cached_property
    def spans(self) -> list[str]:
        """The texts in backquotes within the prose."""
        return SPAN.findall(self.prose)

    @cached_property
    def links(self) -> list[Link]:
        found = LINK.findall(SPAN.sub("code", self.prose))
        return [Link(bool(mark), text, target) for mark, text, target in found]

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of its headings, as GitHub makes them: repeated names get a number."""
        seen: Counter[str] = Counter()
        found = set()
        for heading in HEADING.findall(self.prose):
            name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
        return found


@cache
def all_pages() -> dict[str, Page]:
    """Returns every page by its name."""
    return {page.name: page for page in map(Page, pages())}
