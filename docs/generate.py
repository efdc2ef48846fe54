"""Write the parts of the documentation that are made from code and data.

    python3 -m docs.generate            write them (`make docs`)
    python3 -m docs.generate --check    exit with 1 if a page is stale (`make check`)

A generated part stands in a Markdown file between two markers, and only there:

    <!-- begin: NAME -->
    <!-- end: NAME -->

NAME is a key of docs.blocks.BLOCKS; its value returns the Markdown to put in between. Whole files
are the JSON Schemas in docs/schemas/ (docs/json_schemas.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs import completion_table, json_schemas
from docs.blocks import BLOCKS

ROOT = Path(__file__).parent.parent
PAGES = ("*.md", "docs/**/*.md", "images/**/*.md")
BLOCK = re.compile(r"(<!-- begin: (?P<name>[\w-]+) -->\n).*?(<!-- end: (?P=name) -->)", re.DOTALL)
MARKER = re.compile(r"<!-- (?:begin|end): ([\w-]+) -->")


class MarkerError(Exception):
    """A page with a marker that is unknown, or lacks its counterpart."""


def pages(root: Path = ROOT) -> list[Path]:
    """The Markdown files that may hold generated parts, sorted."""
    return sorted({page for pattern in PAGES for page in root.glob(pattern)})


def filled(text: str, blocks: Mapping[str, Callable[[], str]] = BLOCKS) -> str:
    """`text` with every generated part replaced by what its maker returns.

    Raises:
        MarkerError: a marker's name has no maker, or a marker lacks its counterpart.
    """
    if unknown := sorted(set(MARKER.findall(text)) - set(blocks)):
        raise MarkerError(f"unknown block {', '.join(unknown)}; the blocks: {', '.join(blocks)}")
    if unpaired := MARKER.findall(BLOCK.sub("", text)):
        raise MarkerError(f"a begin or end marker is missing: {', '.join(unpaired)}")
    return BLOCK.sub(lambda found: f"{found[1]}{blocks[found['name']]().strip()}\n{found[3]}", text)


def main(arguments: list[str]) -> int:
    """Write or check every page; 1 if `--check` finds a stale one or a marker is wrong."""
    stale = []
    for page in pages():
        before = page.read_text(encoding="utf-8")
        try:
            after = filled(before)
        except MarkerError as problem:
            print(f"{page.relative_to(ROOT)}: {problem}", file=sys.stderr)
            return 1
        if after != before:
            stale.append(page)
            if "--check" not in arguments:
                page.write_text(after, encoding="utf-8")
    for name, text in {**json_schemas.texts(), **completion_table.texts()}.items():
        file = ROOT / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(file)
            if "--check" not in arguments:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    verb = "is stale: run `make docs`" if "--check" in arguments else "written"
    for page in stale:
        print(f"{page.relative_to(ROOT)} {verb}", file=sys.stderr)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
