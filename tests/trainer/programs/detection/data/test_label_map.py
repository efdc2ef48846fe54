"""Label maps, and the text format in which they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.agent.errors import ContractError
from trainer.programs.detection import text_format
from trainer.programs.detection.data import label_map
from trainer.programs.detection.text_format import Message, TextFormatError, Word


def values(message: Message) -> list[tuple[str, object, int]]:
    return [(field.name, field.value, field.line) for field in message]


def test_every_form_of_a_value_is_read_with_its_line() -> None:
    text = """
    a: 1 b: -2.5e3, c: 'x' "y\\n"  # joined
    d: [1, 2]; e: FOO f: true
    g: 0x1F h: 1.5f i: -inf
    """
    assert values(text_format.parse(text)) == [
        ("a", 1, 2),
        ("b", -2500.0, 2),
        ("c", "xy\n", 2),
        ("d", 1, 3),
        ("d", 2, 3),
        ("e", Word("FOO"), 3),
        ("f", True, 3),
        ("g", 31, 4),
        ("h", 1.5, 4),
        ("i", float("-inf"), 4),
    ]


def test_blocks_nest_with_and_without_colon_and_in_angles() -> None:
    (outer,) = text_format.parse("a { b: { c < d: 1 > } }")
    (inner,) = outer.value
    (innermost,) = inner.value
    assert [inner.name, innermost.name] == ["b", "c"]
    assert values(innermost.value) == [("d", 1, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a {\n b: 1\n", r"line 3: the file ends inside the block of line 1; '}' is missing"),
        ("a: 'x\n'", "line 1: a text that does not end on its line"),
        ("a: 1\nb 2", "line 2: 2 after b; ':' or '{' belongs"),
        ("a: [1 2]", "line 1: 2 inside a list"),
        ("}", "line 1: } where a field's name belongs"),
        ("a: }", "line 1: } where a's value belongs"),
        ("a: 1 ?", r"line 1: '\?' cannot be read here"),
        ("a: 12abc", "line 1: '1' cannot be read here"),
        ("a: '\\377'", "is not UTF-8"),
        ("a {" * 60, "nested more than 50 deep"),
    ],
)
def test_errors_have_their_line(text: str, message: str) -> None:
    with pytest.raises(TextFormatError, match=message):
        text_format.parse(text)


def test_a_label_map_of_coco_is_read(tmp_path: Path) -> None:
    file = tmp_path / "map.pbtxt"
    file.write_text(
        'item { name: "/m/01g317" id: 1 display_name: "person" }\n'
        "item {\n  id: 3\n  name: 'd\\303\\266g'\n}\n"
    )
    labels = label_map.read(file)
    assert labels.labels == {1: "/m/01g317", 3: "dög"}
    assert labels.names == {1: "person", 3: "dög"}
    assert labels.ids == {"/m/01g317": 1, "dög": 3}
    assert labels.largest == 3


def test_a_written_label_map_can_be_read_again() -> None:
    labels = label_map.LabelMap({1: 'a "b"\n', 7: "c\\d\t"}, {7: "Größe"})
    assert label_map.parse(labels.to_text()) == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no item is in it"),
        ("item { id: 0 name: 'a' }", "line 1: id 0 of 'a': ids are 1 to"),
        ("item { id: 1 name: 'a' }\nitem { id: 1 name: 'b' }", "line 2: id 1 is 'a' already"),
        ("item { id: 1 name: 'a' } item { id: 2 name: 'a' }", "2 items are called 'a'"),
        ("item { name: 'a' }", "line 1: the item has no id"),
        ("item { id: 1 }", "line 1: the item has no name"),
        ("item {\n id: '1'\n name: 'a' }", "line 2: id must be a whole number"),
        ("item { id: true name: 'a' }", "line 1: id must be a whole number"),
        ("item { id: 1 nmae: 'a' }", "line 1: an item has no field nmae"),
        ("item { id: 1 id: 2 name: 'a' }", "line 1: id is there twice"),
        ("thing { id: 1 }", "line 1: thing where an item belongs"),
        ("item { id: 1", "line 1: the file ends inside the block"),
    ],
)
def test_an_invalid_label_map_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "map.pbtxt"
    file.write_text(text)
    with pytest.raises(ContractError, match=r"map\.pbtxt: ") as found:
        label_map.read(file)
    assert message in str(found.value)


def test_all_problems_of_a_label_map_are_reported_together() -> None:
    with pytest.raises(ValueError, match=r"line 1: .* line 2: .* line 3: "):
        label_map.parse("item { id: 0 name: 'a' }\nitem { id: 1 }\nthing {}")


def test_a_label_map_that_is_missing_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be read: No such file"):
        label_map.read(tmp_path / "none.pbtxt")
    (tmp_path / "binary.pbtxt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ContractError, match="not UTF-8"):
        label_map.read(tmp_path / "binary.pbtxt")
