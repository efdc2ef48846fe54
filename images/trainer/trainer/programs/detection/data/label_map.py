"""The label map: the classes' names by number, as the Object Detection API writes them.

    item {
      id: 1
      name: "cat"
    }

Numbers begin at 1; 0 is the background, and padding. There may be gaps (COCO's map has some).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.programs.detection import text_format
from trainer.programs.detection.text_format import Field, Message, TextFormatError, quoted

SHAPE = "a label map holds `item { id: 1 name: 'cat' }`, one for each class, ids from 1"
LARGEST_ID = 1_000_000
NAMES = ("name", "display_name")
IGNORED = ("keypoints", "ancestor_ids", "descendant_ids", "frequency", "instance_count")
"""Fields of the API's items that have no meaning for a detector of boxes."""


@dataclass(frozen=True)
class LabelMap:
    """`names` and `labels` by id; a label is the text in a record's image/object/class/text."""

    labels: Mapping[int, str]
    shown: Mapping[int, str]

    @property
    def names(self) -> dict[int, str]:
        """Returns the names to show: display names if there are any."""
        return {number: self.shown.get(number, label) for number, label in self.labels.items()}

    @property
    def ids(self) -> dict[str, int]:
        """Returns the number of each label."""
        return {label: number for number, label in self.labels.items()}

    @property
    def largest(self) -> int:
        return max(self.labels)

    def to_text(self) -> str:
        return "".join(item_text(number, self) for number in sorted(self.labels))


def item_text(number: int, labels: LabelMap) -> str:
    """Returns one item of a label map in text format."""
    lines = [f"  id: {number}", f"  name: {quoted(labels.labels[number])}"]
    if number in labels.shown:
        lines.append(f"  display_name: {quoted(labels.shown[number])}")
    return "\n".join(("item {", *lines, "}", ""))


def of_names(names: Iterable[str]) -> LabelMap:
    """Returns a label map with these names, numbered from 1 in their order."""
    return LabelMap(dict(enumerate(names, 1)), {})


def read(path: Path) -> LabelMap:
    """Return the label map in a file; ContractError names the line of each problem."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ContractError(
            f"label map {path} cannot be read: {problem.strerror}; {SHAPE}"
        ) from problem
    except UnicodeDecodeError as problem:
        raise ContractError(f"label map {path} is not UTF-8 text; {SHAPE}") from problem
    try:
        return parse(text)
    except ValueError as problem:
        raise ContractError(f"label map {path}: {problem}; {SHAPE}") from problem


def parse(text: str) -> LabelMap:
    """Return the label map of a text; ValueError lists all problems with their lines."""
    labels: dict[int, str] = {}
    shown: dict[int, str] = {}
    problems: list[str] = []
    for item in text_format.parse(text):
        try:
            number, label, display = read_item(item)
        except TextFormatError as problem:
            problems.append(str(problem))
            continue
        if number in labels:
            problems.append(f"line {item.line}: id {number} is {labels[number]!r} already")
            continue
        labels[number] = label
        if display:
            shown[number] = display
    for label, count in Counter(labels.values()).items():
        if count > 1:
            problems.append(f"{count} items are called {label!r}")
    if not labels and not problems:
        problems.append("no item is in it")
    if problems:
        raise ValueError("; ".join(problems))
    return LabelMap(labels, shown)


def read_item(item: Field) -> tuple[int, str, str]:
    """Returns (id, name, display name or "") of one `item { … }`."""
    if item.name != "item" or not isinstance(item.value, Message):
        raise TextFormatError(f"line {item.line}: {item.name} where an item belongs")
    values: dict[str, object] = {}
    for field in item.value:
        if field.name in IGNORED:
            continue
        if field.name not in ("id", *NAMES):
            raise TextFormatError(f"line {field.line}: an item has no field {field.name}")
        if field.name in values:
            raise TextFormatError(f"line {field.line}: {field.name} is there twice")
        right = int if field.name == "id" else str
        if not isinstance(field.value, right) or isinstance(field.value, bool):
            kind = "a whole number" if right is int else "a text in quotes"
            raise TextFormatError(f"line {field.line}: {field.name} must be {kind}")
        values[field.name] = field.value
    number, display = values.get("id"), str(values.get("display_name", ""))
    label = str(values.get("name", display))
    if not isinstance(number, int) or not label:
        missing = "name" if isinstance(number, int) else "id"
        raise TextFormatError(f"line {item.line}: the item has no {missing}")
    if not 1 <= number <= LARGEST_ID:
        raise TextFormatError(
            f"line {item.line}: id {number} of {label!r}: ids are 1 to {LARGEST_ID:,}; 0 is the"
            " background"
        )
    return number, label, display if display != label else ""
