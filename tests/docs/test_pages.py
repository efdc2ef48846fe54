"""README is short and links to every page, all links work, and pages show only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import HTML, README, SPAN, Link, Page, all_pages
from tests.make import ROOT

MOST_WORDS = 1500
PAGES = list(all_pages().values())
USERS = [page for page in PAGES if page.name == "README.md" or page.name.startswith("docs/")]


def target(page: Page, link: Link) -> tuple[Path, str]:
    """Returns the file to which a link points, and the anchor in it."""
    name, _, anchor = link.target.partition("#")
    return ((page.path.parent / name).resolve() if name else page.path), anchor


def is_outside(link: Link) -> bool:
    return link.target.startswith(("https://", "http://"))


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, to_read = set(), [Page(README)]
    while to_read:
        page = to_read.pop()
        reached.add(page.name)
        files = {target(page, link)[0] for link in page.links if not is_outside(link)}
        next_pages = [Page(file) for file in files if file.suffix == ".md"]
        to_read += [found for found in next_pages if found.name not in reached]
    assert all_pages().keys() - reached == set()


def test_every_link_has_a_target(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page.name):
            for link in page.links:
                if is_outside(link):
                    continue
                file, anchor = target(page, link)
                assert file.exists(), f"{page.name}: {link.target}"
                assert file.is_relative_to(ROOT), (
                    f"{page.name}: {link.target} leads out of the clone"
                )
                if anchor:
                    assert anchor in Page(file).anchors, f"{page.name}: {link.target}"


def test_every_picture_has_a_text(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page.name):
            assert all(link.text for link in page.links if link.is_picture)


def test_no_prose_looks_like_html(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page.name):
            prose = re.sub(r"<!--.*?-->", "", page.prose, flags=re.DOTALL)
            assert not HTML.findall(SPAN.sub("code", prose))


def test_every_fence_is_closed_at_the_beginning_of_a_line(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page.name):
            assert page.prose.count("```") == 0


def test_every_block_has_a_language(subtests: pytest.Subtests) -> None:
    for page in USERS:
        with subtests.test(page=page.name):
            assert all(block.info for block in page.blocks), "give it a language, or `text`"


def test_the_pictures_of_the_readme_exist_and_are_drawn() -> None:
    pictures = (ROOT / link.target for link in Page(README).links if link.is_picture)
    table, report, predicted = pictures
    assert "<svg" in table.read_text(encoding="utf-8")[:200]
    for picture in (report, predicted):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_manifest_in_the_readme_equals_the_file() -> None:
    text = (ROOT / "compose" / "smoke.toml").read_text(encoding="utf-8")
    assert f"```toml\n{text}```\n" in README.read_text(encoding="utf-8")


def test_manifests_on_pages_equal_their_files() -> None:
    shown = [
        (page.name, name[1], block.text)
        for page in PAGES
        for block in page.blocks
        if block.info.startswith("toml")
        and (name := re.search(r'^name = "([\w-]+)"$', block.text, re.MULTILINE))
        and (ROOT / "compose" / f"{name[1]}.toml").exists()
    ]
    assert shown
    for page, name, text in shown:
        file = ROOT / "compose" / f"{name}.toml"
        assert text.encode() == file.read_bytes(), f"{page} shows another {name}.toml"
