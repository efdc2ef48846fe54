"""The generated parts of the documentation are replaced between their markers, and are up to
date."""

from __future__ import annotations

import pytest

from docs import generate
from docs.blocks.table import table

BLOCKS = {"one": lambda: "1\n2\n", "other": lambda: "3"}


def test_only_the_text_between_the_markers_is_replaced() -> None:
    before = "a\n<!-- begin: one -->\nold\n<!-- end: one -->\nb\n"
    assert generate.filled(before, BLOCKS) == "a\n<!-- begin: one -->\n1\n2\n<!-- end: one -->\nb\n"


def test_generating_twice_changes_nothing() -> None:
    once = generate.filled("<!-- begin: other -->\n<!-- end: other -->\n", BLOCKS)
    assert generate.filled(once, BLOCKS) == once


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("<!-- begin: two -->\n<!-- end: two -->\n", "unknown block two"),
        ("<!-- begin: one -->\n", "marker is missing: one"),
        ("<!-- end: one -->\n", "marker is missing: one"),
    ],
)
def test_a_wrong_marker_is_named(text: str, names: str) -> None:
    with pytest.raises(generate.MarkerError, match=names):
        generate.filled(text, BLOCKS)


def test_a_bar_in_a_cell_is_escaped() -> None:
    assert table(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |"


def test_a_stale_page_is_named_with_the_command(tmp_path, monkeypatch, capsys) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("<!-- begin: contract-commands -->\nold\n<!-- end: contract-commands -->\n")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "pages", lambda: [page])
    assert generate.main(["--check"]) == 1
    assert "docs/page.md is stale: run `make docs`" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_every_block_is_used_on_a_page() -> None:
    markers = {n for page in generate.pages() for n in generate.MARKER.findall(page.read_text())}
    assert markers == set(generate.BLOCKS)


def test_no_page_is_stale(capsys) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().err
